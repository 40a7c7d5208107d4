"""Large scopes on PostgreSQL: found by the indexes of their partition, scored as if all of it were read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from support.postgres import Postgres
from support.records import create, keep, learnt

from everthread import Identity, Scope
from everthread.stores import PostgresStore
from everthread.stores.encoding import Document
from everthread.stores.identity import Within
from everthread.stores.record import Selection
from everthread.stores.tables.search import record_space

Floats = NDArray[np.float32]
DIMS = 32
RECORDS, FAR = 10_000, 2_000
ANA = Identity(tenant="far", user="ana")
OTHER = Identity(tenant="near", user="ben")
TO_THE_ONE_SIDE = np.eye(DIMS, dtype=np.float32)[0]


class Known:
    """Each text has the vector that is written for it here."""

    id = "known/1"
    dims = DIMS

    def __init__(self) -> None:
        self.vectors: dict[str, Floats] = {}

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        return np.stack([self.vectors[text] for text in texts])

    def embed_query(self, text: str) -> Floats:
        return self.vectors[text]


def around(middle: Floats, count: int, chance: np.random.Generator) -> Floats:
    vectors = middle + 0.15 * chance.standard_normal((count, DIMS)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None], np.float32)


def text(n: int) -> str:
    return f"note {n} about subject {n % 97} in month {n % 12}"


def filled(store: PostgresStore, embedder: Known, vectors: Floats) -> None:
    for n, vector in enumerate(vectors):
        embedder.vectors[text(n)] = vector
    for start in range(0, FAR, 500):
        changes = [create(learnt(text(n))) for n in range(start, start + 500)]
        store.commit(ANA, changes, key=f"batch-{start}")
    # what another tenant has in its index is enough to stand in the way
    space = record_space(OTHER.tenant, "user", OTHER.user)
    for start in range(FAR, RECORDS, 2_000):
        documents = [Document(f"other-{n}", text(n)) for n in range(start, start + 2_000)]
        prepared = store._indexer.prepare(documents)
        with store._database.write(OTHER.tenant) as connection:
            store._search.put(connection, space, store._indexer.settle(connection, prepared))


def by_one_index_over_all(url: str, vectors: Floats, asked: Floats) -> int:
    """How many rows of the far tenant a global HNSW index finds when they are filtered afterwards."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE plain (tenant text, vector vector({DIMS}))".encode())
        with connection.cursor().copy("COPY plain FROM STDIN") as copy:
            for n, vector in enumerate(vectors):
                copy.write_row((ANA.tenant if n < FAR else OTHER.tenant, str(vector.tolist())))
        connection.execute("CREATE INDEX ON plain USING hnsw (vector vector_cosine_ops)")
        connection.execute("SET hnsw.ef_search = 40; SET hnsw.iterative_scan = off; SET enable_seqscan = off")
        found = connection.execute(
            "SELECT 1 FROM plain WHERE tenant = %s ORDER BY vector <=> %s::vector LIMIT 10",
            (ANA.tenant, str(asked.tolist())),
        ).fetchall()
        return len(found)


def recalled(store: PostgresStore, questions: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    return [
        [(hit.record_id, round(hit.score, 3)) for hit in store.recall(ANA, question, limit=10).hits]
        for question in questions
    ]


def test_a_tenant_far_from_the_question_is_found_as_if_all_were_read(postgres: Postgres) -> None:
    chance = np.random.default_rng(7)
    vectors = np.concatenate([around(-TO_THE_ONE_SIDE, FAR, chance), around(TO_THE_ONE_SIDE, RECORDS - FAR, chance)])
    embedder, url = Known(), f"{postgres.url}{'&' if '?' in postgres.url else '?'}partitions=1"
    questions = [f"what of subject {n} in the notes?" for n in range(20)]
    embedder.vectors |= dict(zip(questions, around(TO_THE_ONE_SIDE, len(questions), chance), strict=True))
    with PostgresStore(url, embedder=embedder, exact_up_to=1_000) as indexed:
        filled(indexed, embedder, vectors)
        assert indexed.jobs.drain(indexed.handlers()) == 2
        found = recalled(indexed, questions)
        assert indexed._search.nbytes == 0  # nothing was read whole
    with PostgresStore(url, embedder=embedder) as exact:
        expected = recalled(exact, questions)
        assert exact._search.nbytes > 0
    same = [len({id for id, _ in one} & {id for id, _ in other}) for one, other in zip(found, expected, strict=True)]
    assert [len(hits) for hits in expected] == [10] * len(questions)
    assert sum(same) / (10 * len(questions)) >= 0.99
    assert by_one_index_over_all(postgres.url, vectors, embedder.vectors[questions[0]]) == 0


SMALL = 600


def test_what_changes_in_a_large_scope_is_scored_as_if_all_were_read(postgres: Postgres) -> None:
    chance, embedder = np.random.default_rng(8), Known()
    vectors = around(TO_THE_ONE_SIDE, SMALL, chance)
    embedder.vectors |= {text(n): vector for n, vector in enumerate(vectors)}
    questions = [f"what of subject {n} in the notes?" for n in range(12)]
    embedder.vectors |= dict(zip(questions, around(TO_THE_ONE_SIDE, len(questions), chance), strict=True))
    url = f"{postgres.url}{'&' if '?' in postgres.url else '?'}partitions=2"
    with (
        PostgresStore(url, embedder=embedder, exact_up_to=100, half_precision=True) as indexed,
        PostgresStore(url, embedder=embedder) as exact,
    ):
        indexed.commit(ANA, [create(learnt(text(n))) for n in range(400)], key="first")
        assert indexed.jobs.drain(indexed.handlers()) == 1
        assert recalled(indexed, questions) == recalled(exact, questions)
        indexed.commit(ANA, [create(learnt(text(n))) for n in range(400, SMALL)], key="second")
        gone = [str(hit.record_id) for hit in indexed.recall(ANA, questions[0], limit=5).hits]
        indexed.erase(ANA, Selection(record_ids=tuple(gone)), reason="asked for")
        narrowed = learnt("a note about subject 3 for billing alone").model_copy(
            update={"scope": Scope(owner="user", owner_id="ana", within=Within(project="billing"))}
        )
        embedder.vectors["a note about subject 3 for billing alone"] = embedder.vectors[questions[3]]
        indexed.commit(ANA.model_copy(update={"project": "billing"}), [create(narrowed)], key="third")
        found = recalled(indexed, questions)
        assert found == recalled(exact, questions)
        assert not {id for hits in found for id, _ in hits} & {*gone, narrowed.id}
        assert indexed.jobs.waiting() == 0
        same = (
            "SELECT count(*) FROM everthread.search_wide JOIN everthread.search_versions USING (tenant, space, version)"
        )
        assert postgres.run(same) == [(1,)]


def test_where_pgvector_is_too_old_every_scope_is_searched_exactly_and_doctor_says_so(postgres: Postgres) -> None:
    postgres.run("CREATE EXTENSION vector")
    postgres.run("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    chance, embedder = np.random.default_rng(9), Known()
    embedder.vectors |= {text(n): vector for n, vector in enumerate(around(TO_THE_ONE_SIDE, 50, chance))}
    embedder.vectors["which note?"] = embedder.vectors[text(7)]
    with PostgresStore(postgres.url, embedder=embedder, exact_up_to=10) as store:
        store.commit(ANA, [create(learnt(text(n))) for n in range(50)], key="k")
        assert store.jobs.waiting() == 0
        assert store.recall(ANA, "which note?", limit=1).hits[0].statement == text(7)
        (versions,) = [finding.detail for finding in store.doctor() if finding.check == "versions"]
        assert versions.endswith(
            "no pgvector of 0.8 or newer (CREATE EXTENSION vector): every scope is searched exactly"
        )


def test_a_role_that_may_not_have_pgvector_opens_a_store_without_it(postgres: Postgres) -> None:
    role = postgres.guarded("a password of eight words")
    postgres.run("GRANT CREATE ON DATABASE {} TO {}", postgres.url.split("/")[3].split("?")[0], role)
    with PostgresStore(postgres.url_of(role, "a password of eight words"), embedder="none") as store:
        (versions,) = [finding.detail for finding in store.doctor() if finding.check == "versions"]
        assert versions.endswith(": every scope is searched exactly")


def test_a_space_that_has_become_large_is_left_to_one_job(postgres: Postgres) -> None:
    with PostgresStore(postgres.url, exact_up_to=10, partitions=1) as store:
        keep(store, ANA, *(learnt(f"Ana wrote note {n}") for n in range(12)))
        assert store.jobs.kinds() == {"index": 1}
        job = store.jobs.claim(["index"])
        assert job is not None
        keep(store, ANA, learnt("Ana wrote one more"))  # its worker has not begun
        assert store.jobs.kinds() == {}
        store.handlers()["index"](job)
        store.jobs.complete(job)
        keep(store, ANA, learnt("Ana wrote the last one"))
        assert store.jobs.kinds() == {}
        assert len(store.recall(ANA, "note one last", limit=20).hits) == 14
