"""What the search index keeps in memory: bounded, never stale, and no different from what it would read."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from everthread.stores.encoding import Bounds, Document, encode
from everthread.stores.identity import Scope
from everthread.stores.scoring import Corpus, Query
from everthread.stores.sqlite.database import Database
from everthread.stores.tables.search import ENTRY_BYTES, SearchIndex, SearchRow, versions_of

SPACE = "acme/records/user/ana"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(str(tmp_path / "memory.db"), synchronous="OFF")
    yield database
    database.close()


ALWAYS = Bounds()


def row(id: str, text: str = "green tea", *, group: str = "", bounds: Bounds = ALWAYS) -> SearchRow:
    chance = np.random.default_rng(list(f"{id} {text}".encode()))
    return SearchRow(id, group, None, encode(Document(id, text), chance.normal(size=(1, 16))), 1, bounds)


def put(database: Database, index: SearchIndex, *rows: SearchRow, space: str = SPACE) -> None:
    with database.write() as connection:
        index.put(connection, space, rows)


def read(database: Database, index: SearchIndex, *spaces: str) -> Corpus:
    with database.read() as connection:
        return index.corpus(connection, spaces or (SPACE,))


def test_what_another_process_writes_is_seen(database: Database) -> None:
    ours, other = SearchIndex(), SearchIndex()
    put(database, other, row("a"), row("b"))
    assert read(database, ours).ids == ["a", "b"]
    put(database, other, row("c"))
    with database.write() as connection:
        other.delete(connection, SPACE, ["a"])
    assert read(database, ours).ids == ["b", "c"]
    with database.write() as connection:
        other.clear(connection, SPACE)
    put(database, other, row("d"))
    assert read(database, ours).ids == ["d"]


def everything(scope: Scope, reach: str | None) -> bool:
    return True


def test_what_is_kept_is_right_until_a_version_says_otherwise(database: Database) -> None:
    ours, other = SearchIndex(), SearchIndex()
    put(database, other, row("a"))
    assert ours.kept([SPACE], allows=everything, now=0) is None
    read(database, ours)
    kept = ours.kept([SPACE], allows=everything, now=0)
    assert kept is not None
    assert kept.corpus.ids == ["a"]

    def is_still() -> bool:
        with database.read() as connection:
            return kept.is_still([SPACE], versions_of(ours.versions(connection, [SPACE])))

    assert is_still()
    put(database, other, row("b"))
    assert not is_still()


def test_what_this_process_has_changed_is_not_kept_until_it_is_read_again(database: Database) -> None:
    index = SearchIndex()
    put(database, index, row("a"))
    read(database, index)
    put(database, index, row("b"))
    assert index.kept([SPACE], allows=everything, now=0) is None
    read(database, index)
    kept = index.kept([SPACE], allows=everything, now=0)
    assert kept is not None
    assert kept.corpus.ids == ["a", "b"]


def test_a_row_that_is_written_again_stays_in_its_place(database: Database) -> None:
    index = SearchIndex()
    put(database, index, *(row(id, group="t") for id in "abc"))
    read(database, index)
    put(database, index, row("b", "coffee", group="t"))
    put(database, index, row("b", "cocoa", group="t"), row("d", group="t"))
    for each in (index, SearchIndex()):
        found = read(database, each)
        assert found.ids == ["a", "b", "c", "d"]
        assert (found.score(Query.of("cocoa")).keyword > 0).tolist() == [False, True, False, False]


def test_a_write_that_is_rolled_back_was_never_there(database: Database) -> None:
    index = SearchIndex()
    put(database, index, row("a"))
    read(database, index)
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        index.put(connection, SPACE, [row("b")])
        raise ZeroDivisionError
    put(database, index, row("c"))
    assert read(database, index).ids == ["a", "c"]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_is_what_would_be_read(database: Database, seed: int) -> None:
    chance, kept = Random(seed), SearchIndex()
    spaces = [SPACE, "acme/records/project/p"]
    for n in range(60):
        space = chance.choice(spaces)
        known = read(database, SearchIndex(), space).ids
        action = chance.choice(["put", "put", "replace", "delete"]) if known else "put"
        if action == "delete":
            with database.write() as connection:
                kept.delete(connection, space, chance.sample(known, 1))
        else:
            ids = [f"{n}-{i}" for i in range(chance.randint(1, 5))] if action == "put" else chance.sample(known, 1)
            put(database, kept, *(row(id, f"tea {id} w{chance.randrange(5)}") for id in ids), space=space)
        for wanted in ([space], spaces):
            found, fresh = read(database, kept, *wanted), read(database, SearchIndex(), *wanted)
            assert found.ids == fresh.ids
            query = Query.of("tea w1 w2", np.ones(16))
            for one, other in zip(found.score(query), fresh.score(query), strict=True):
                assert one.tolist() == pytest.approx(other.tolist(), abs=2e-5)


def test_what_is_kept_is_bounded_in_bytes(database: Database) -> None:
    index = SearchIndex(cache_bytes=20 * ENTRY_BYTES)
    for n in range(40):
        put(database, index, *(row(f"{n}-{i}") for i in range(20)), space=f"acme/records/user/u{n}")
        assert len(read(database, index, f"acme/records/user/u{n}")) == 20
        assert index.nbytes <= 20 * ENTRY_BYTES
    index.forget()
    assert index.nbytes == 0


def test_one_space_may_be_larger_than_the_bound(database: Database) -> None:
    index = SearchIndex(cache_bytes=1)
    put(database, index, *(row(str(n)) for n in range(50)))
    assert read(database, index).ids == [str(n) for n in range(50)]


def test_what_does_not_hold_counts_nowhere(database: Database) -> None:
    index = SearchIndex()
    put(
        database,
        index,
        row("now"),
        row("later", bounds=Bounds(since=100)),
        row("before", bounds=Bounds(until=50)),
        row("others", bounds=Bounds(reach='{"readers": ["ben"]}')),
    )
    with database.read() as connection:
        found = index.corpus(connection, [SPACE], allows=lambda scope, reach: reach is None, now=60)
        later = index.corpus(connection, [SPACE], allows=lambda scope, reach: scope.owner_id == "ana", now=100)
        nothing = index.corpus(connection, [SPACE], allows=lambda scope, reach: False, now=60)
    assert (found.ids, later.ids, nothing.ids) == (["now"], ["now", "later", "others"], [])
