"""A home is its owner's alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.threads import echo_graph, on, say

from everthread import Identity
from everthread.errors import StoreError
from everthread.stores import open_checkpointer, open_store


def test_new_files_are_readable_by_their_owner_alone(tmp_path: Path, ana: Identity) -> None:
    home = tmp_path / "home"
    with open_store(f"sqlite:{home}") as store, open_checkpointer(f"sqlite:{home}") as saver:
        graph = echo_graph().compile(checkpointer=saver, store=store)
        graph.invoke(say("hello"), on("t"), context=ana)
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in [home, *home.iterdir()]}
    assert modes.pop("home") == "0o700"
    assert set(modes) >= {"memory.db", "memory.db-wal", "threads.db", "threads.db-wal"}
    assert set(modes.values()) == {"0o600"}


def test_a_file_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path}").close()
    (tmp_path / "memory.db").chmod(0o640)
    open_store(f"sqlite:{tmp_path}").close()
    assert oct((tmp_path / "memory.db").stat().st_mode & 0o777) == "0o640"


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for open_it in (open_store, open_checkpointer):
        with pytest.raises(StoreError, match="choose another home"):
            open_it(f"sqlite:{tmp_path}/file/home")


OPEN_AT = """
import sys, time
from everthread.stores import open_checkpointer, open_store
time.sleep(max(0, float(sys.argv[2]) - time.time()))
with open_store(sys.argv[1], embedder="none"), open_checkpointer(sys.argv[1]):
    pass
"""


def test_many_processes_may_make_one_home_at_the_same_moment(tmp_path: Path) -> None:
    moment = str(time.time() + 1)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AT, f"sqlite:{tmp_path}", moment], stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    assert [process.communicate()[1] for process in processes] == [""] * 4
