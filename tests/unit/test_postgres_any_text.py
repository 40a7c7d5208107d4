"""What only SQLite can hold is met on PostgreSQL: it is read past, or named, and is never in the way of the rest."""

import json
import re
from pathlib import Path

import apsw
import pytest
from support.full import ANA, fill
from support.postgres import Postgres
from support.records import create, learnt, write

from everthread import Identity, Scope
from everthread.errors import UsageError
from everthread.stores import open_store
from everthread.stores.record import Selection
from everthread.stores.transfer import copy

ODD = (
    "nul \0 inside",
    "half \ud83d of a pair",
    "the other \ude00 half",
    r"no \u0000 escape",
    r"nor \\u0000",
    "whole 😀 中文",
)


@pytest.fixture
def ana() -> Identity:
    return Identity(tenant="acme", user="ana", roles=frozenset({"admin"}))


def test_json_of_any_text_is_read(postgres: Postgres) -> None:
    open_store(postgres.url, embedder="none").close()
    for odd in ODD:
        for body in (json.dumps([odd]), json.dumps({"a": odd})):
            read = "SELECT everthread.json_extract(%s, %s), (SELECT value FROM everthread.json_each(%s))"
            ((one, each),) = postgres.run(read, values=(body, "$.a", json.dumps([odd])))
            shown = odd.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            assert (one, each) == (shown if body.startswith("{") else None, shown)


def test_a_record_that_has_a_nul_is_in_nobody_s_way(postgres: Postgres, tmp_path: Path, ana: Identity) -> None:
    here = tmp_path / "here"
    with open_store(str(here), embedder="none") as source:
        write(source, ana, create(learnt("Ana likes tea", subject="ana", predicate="likes", value="tea")))
    spoil(here, r"""UPDATE revisions SET body = replace(body, '"value":"tea"', '"value":"t\u0000ea"')""")
    with open_store(str(here), embedder="none") as source, open_store(postgres.url, embedder="none") as target:
        copy(source, target)
        ((record,)) = target.records(ana)
        assert record.value == "t\0ea"
        assert target.records(ana) == source.records(ana)
        assert target.profile(ana) == []
        assert target.learnt_from(ana, "t1", ["m1"]) == [record]
        assert [finding for finding in target.doctor() if not finding.ok] == []
        everything = Selection(scope=Scope(owner="user", owner_id="ana"))
        assert target.erase(ana, everything, reason="asked for", with_source=True).verified
        assert target.records(ana) == []


def test_a_row_that_cannot_be_copied_is_named_and_the_copy_goes_on_without_its_nul(
    postgres: Postgres, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    with open_store(str(here), embedder="none") as source:
        fill(source)
        source.tasks.create(ANA, "call back", key="call")
    spoil(here, "UPDATE tasks SET key = 'ca' || char(0) || 'll' WHERE key = 'call'")
    with open_store(str(here), embedder="none") as source, open_store(postgres.url, embedder="none") as target:
        with pytest.raises(UsageError) as error:
            copy(source, target)
        who, _, what = str(error.value).partition(" has ")
        assert re.fullmatch(r"the row of tasks with tenant 'acme', user 'ana', id '\w+', key 'ca.x00ll', seq \d+", who)
        assert what == (
            "a NUL character in key, which PostgreSQL cannot hold; "
            "erase it where it comes from or take the character out there, and copy again"
        )
    spoil(here, "UPDATE tasks SET key = 'call' WHERE instr(key, char(0))")
    with open_store(str(here), embedder="none") as source, open_store(postgres.url, embedder="none") as target:
        copy(source, target)
        assert target.tasks.of(ANA) == source.tasks.of(ANA)


def spoil(home: Path, statement: str) -> None:
    """Change a store behind its back, as an older version may have left it."""
    connection = apsw.Connection(str(home / "memory.db"))
    connection.execute(statement)
    connection.close()
