"""Files as older versions left them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from everthread.stores.sqlite.database import APPLICATION_ID, migrations, run_script

__all__ = ["old_file"]


def old_file(path: Path, version: int, *statements: str) -> None:
    """A memory file of this schema version, with what these statements put into it."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        for number, script in migrations().items():
            if number <= version:
                run_script(connection, script)
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={version}")
