"""How transcripts and their search rows stay together in SQLite."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from numpy.typing import NDArray

from everthread import Evidence, Identity
from everthread.stores.embedding import Embedder, resolve_embedder
from everthread.stores.scoring import Corpus, Document, Query
from everthread.stores.sqlite.database import Database
from everthread.stores.tables.indexing import Indexer
from everthread.stores.tables.jobs import Jobs
from everthread.stores.tables.search import SearchIndex, evidence_space
from everthread.stores.tables.transcripts import INDEXED_CHARACTERS, Transcripts

NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)


class Unreachable:
    """An embedder whose server is down."""

    id = "unreachable"
    dims = 8

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ConnectionError("no route to host")

    def embed_query(self, text: str) -> NDArray[np.float32]:
        raise ConnectionError("no route to host")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(str(tmp_path / "memory.db"))
    yield database
    database.close()


def transcripts_of(database: Database, embedder: Embedder | None = None) -> Transcripts:
    return Transcripts(database, SearchIndex(), Indexer(database, embedder))


def said(message_id: str, text: str, thread_id: str = "t1") -> Evidence:
    return Evidence(
        thread_id=thread_id, message_id=message_id, role="user", speaker="Ana", text=text, at=NOON, source="user"
    )


def corpus_of(database: Database, identity: Identity) -> Corpus:
    with database.read() as connection:
        return SearchIndex().corpus(connection, [evidence_space(identity)])


def best(database: Database, transcripts: Transcripts, identity: Identity, query: str) -> Evidence:
    """What a search for the query's words puts first."""
    corpus = corpus_of(database, identity)
    key = corpus.ids[int(np.argmax(corpus.score(Query.of(query)).keyword))]
    with database.read() as connection:
        (found,) = transcripts.lookup(connection, [key])
    assert found is not None
    return found


def test_a_message_is_found_by_words_speaker_and_date(database: Database, ana: Identity, ben: Identity) -> None:
    transcripts = transcripts_of(database)
    tea, kite = said("m1", "我喜欢绿茶"), said("m2", "We flew kites in Brno")
    transcripts.append(ana, [tea, kite])
    assert best(database, transcripts, ana, "绿茶") == tea
    assert best(database, transcripts, ana, "flying a kite") == kite
    assert all(corpus_of(database, ana).score(Query.of("Ana, 8 May 2026")).keyword)
    assert corpus_of(database, ben).ids == []


def test_vectors_are_there_as_soon_as_the_message_is(database: Database, ana: Identity) -> None:
    embedder = resolve_embedder(None)
    assert embedder is not None
    transcripts_of(database, embedder).append(ana, [said("m1", "The physician treats patients in a hospital.")])
    scores = corpus_of(database, ana).score(Query.of("doctor", embedder.embed_query("doctor")))
    assert scores.keyword.tolist() == [0]
    assert scores.cosine[0] > 0.2


def test_a_failing_embedder_costs_no_message_and_leaves_a_job(database: Database, ana: Identity) -> None:
    transcripts = transcripts_of(database, Unreachable())
    kite = said("m1", "We flew kites in Brno")
    assert transcripts.append(ana, [kite]) == 1
    assert best(database, transcripts, ana, "kites") == kite
    job = Jobs(database).claim()
    assert job is not None
    assert (job.kind, job.payload) == ("embed", {"space": evidence_space(ana)})


def test_words_that_sqlite_cannot_hold_do_not_keep_a_message_from_being_found(
    database: Database, ana: Identity
) -> None:
    transcripts = transcripts_of(database, resolve_embedder(None))
    odd = said("m1", "kites\x00\ud800 over Brno").model_copy(update={"speaker": "A\ud800\x00na"})
    transcripts.append(ana, [odd])
    assert best(database, transcripts, ana, "kites") == odd


def test_only_the_beginning_of_a_huge_message_is_searched(database: Database, ana: Identity) -> None:
    transcripts = transcripts_of(database, resolve_embedder(None))
    huge = said("m1", "kites " + "x" * INDEXED_CHARACTERS + " balloons")
    transcripts.append(ana, [huge])
    assert best(database, transcripts, ana, "kites") == huge
    assert not any(corpus_of(database, ana).score(Query.of("balloons")).keyword)


def test_a_message_without_words_has_no_row(database: Database, ana: Identity) -> None:
    transcripts = transcripts_of(database, resolve_embedder(None))
    transcripts.append(ana, [said("m1", ""), said("m2", " \n\x00"), said("m3", "words")])
    assert len(corpus_of(database, ana).ids) == 1
    assert best(database, transcripts, ana, "words").message_id == "m3"


def test_everything_can_be_indexed_anew_and_nothing_that_was_erased(
    database: Database, ana: Identity, ben: Identity
) -> None:
    transcripts = transcripts_of(database)
    transcripts.append(ana, [said("m1", "one"), said("m2", "two"), said("m3", ""), said("m4", "four")])
    transcripts.append(ben, [said("m1", "of Ben", thread_id="t2")])
    transcripts.erase_messages(ana, "t1", ["m2"])
    expected = {
        evidence_space(ana): [
            Document("1", "one", speaker="Ana", date=NOON, group="t1"),
            Document("4", "four", speaker="Ana", date=NOON, group="t1"),
        ],
        evidence_space(ben): [Document("5", "of Ben", speaker="Ana", date=NOON, group="t2")],
    }
    assert dict(transcripts.all_documents()) == expected
    assert corpus_of(database, ana).ids == ["1", "4"]
    with database.read() as connection:
        assert transcripts.documents(connection, ["4", "2", "1", "99"]) == expected[evidence_space(ana)][::-1]
        found = transcripts.lookup(connection, ["4", "2", "1", "99"])
        assert [said and said.message_id for said in found] == ["m4", None, "m1", None]


def test_erased_words_are_in_no_file_after_scrubbing(database: Database, ana: Identity, tmp_path: Path) -> None:
    transcripts = transcripts_of(database)
    secret = said("m1", "The password is Xyzzyplugh").model_copy(update={"payload": {"content": "Xyzzyplugh"}})
    transcripts.append(ana, [secret, said("m2", "kept: Plover")])
    transcripts.erase_messages(ana, "t1", ["m1"])
    database.scrub()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (b"Xyzzyplugh" in stored, b"Plover" in stored) == (False, True)


def test_two_writers_of_the_same_messages_keep_each_once(database: Database, ana: Identity) -> None:
    messages = [said(f"m{n}", f"text {n}") for n in range(50)]
    other = Database(database.path)
    counts: list[int] = []
    writers = [
        Thread(target=lambda db=each: counts.extend(transcripts_of(db).append(ana, [m]) for m in messages))
        for each in (database, other)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sum(counts) == 50
    assert transcripts_of(database).read(ana, "t1") == messages
    assert len(corpus_of(database, ana).ids) == 50
    other.close()
