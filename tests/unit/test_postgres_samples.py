"""What a server samples of columns for its planner: an erasure leaves no words there either."""

from support.full import ANA, fill
from support.postgres import Postgres
from support.records import keep, learnt

from everthread import Scope
from everthread.stores import open_checkpointer, open_store
from everthread.stores.record import Selection

WORDS = ("zanzibar", b"zanzibar".hex())
SAMPLES = """
SELECT tablename, attname, concat(most_common_vals::text, histogram_bounds::text, most_common_elems::text)
FROM pg_stats WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
"""
SAMPLED = """
SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'everthread'::regnamespace AND relkind IN ('r', 'p')
    AND atttypid IN ('text'::regtype, 'bytea'::regtype) AND attnum > 0 AND attstattarget IS DISTINCT FROM 0
    AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND attnum = ANY (indkey))
"""


def where_words_are(postgres: Postgres) -> set[str]:
    postgres.run("ANALYZE")
    return {
        f"{table}.{name}" for table, name, held in postgres.run(SAMPLES) if any(word in str(held) for word in WORDS)
    }


def test_the_server_samples_no_column_that_holds_words(postgres: Postgres) -> None:
    with open_store(postgres.url, embedder="none") as store:
        fill(store)
        keep(store, ANA, *(learnt(f"The zanzibar garden {n}", subject=f"zanzibar{n}") for n in range(30)))
        for n in range(30):
            store.artifacts.put(ANA, "tool_result", f"zanzibar {n}")
            store.tasks.create(ANA, f"zanzibar {n}", thread_id="t1")
        assert where_words_are(postgres) == set()
    assert {table for table, _ in postgres.run(SAMPLED)} <= {"meta", "search_regions"}


def test_samples_that_an_older_schema_has_go_with_an_erasure(postgres: Postgres) -> None:
    with open_store(f"{postgres.url}{'&' if '?' in postgres.url else '?'}partitions=2", embedder="none") as store:
        keep(store, ANA, *(learnt(f"The zanzibar garden {n}", subject=f"zanzibar{n}") for n in range(30)))
        kept = "SELECT attname, attstorage::text FROM pg_attribute WHERE attrelid = 'everthread.revisions'::regclass"
        stored = postgres.run(kept)
        for column in ("body", "subject"):
            table = "revisions" if column == "body" else "records"
            postgres.run("ALTER TABLE everthread.{} ALTER COLUMN {} SET STATISTICS 100", table, column)
        assert {place.partition("_")[0] for place in where_words_are(postgres) if "_p" not in place} == {
            "revisions.body",
            "records.subject",
        }
        for column in ("body", "subject"):
            table = "revisions" if column == "body" else "records"
            postgres.run("ALTER TABLE everthread.{} ALTER COLUMN {} SET STATISTICS 0", table, column)
        assert where_words_are(postgres) != set()
        everything = Selection(scope=Scope(owner="user", owner_id="ana"))
        assert store.erase(ANA, everything, reason="asked for").verified
        assert where_words_are(postgres) == set()
        assert postgres.run(kept) == stored
        assert [finding for finding in store.doctor() if not finding.ok] == []


def test_samples_of_what_others_are_computed_from_do_not_hold_an_erasure_up(postgres: Postgres) -> None:
    with open_store(f"{postgres.url}{'&' if '?' in postgres.url else '?'}partitions=2", embedder="none") as store:
        (record,) = keep(store, ANA, learnt("The zanzibar garden"))
        postgres.run("ALTER TABLE everthread.audit ALTER COLUMN detail SET STATISTICS 100")
        postgres.run("ANALYZE everthread.audit")
        postgres.run("ALTER TABLE everthread.audit ALTER COLUMN detail SET STATISTICS 0")
        assert store.erase(ANA, Selection(record_ids=(record.id,)), reason="asked for").verified


def test_the_server_samples_no_values_of_threads(postgres: Postgres) -> None:
    sampled = (
        "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        "WHERE relname LIKE 'checkpoint%' AND atttypid IN ('bytea'::regtype, 'jsonb'::regtype) "
        "AND attstattarget IS DISTINCT FROM 0"
    )
    with open_checkpointer(postgres.url) as saver:
        assert postgres.run(sampled) == []
        postgres.run("ALTER TABLE checkpoint_blobs ALTER COLUMN blob SET STATISTICS 100")
        postgres.run(
            "INSERT INTO checkpoint_blobs (thread_id, channel, version, type, blob) "
            "SELECT 't', 'c', n::text, 'bytes', convert_to('zanzibar ' || n, 'UTF8') FROM generate_series(1, 30) AS n"
        )
        assert where_words_are(postgres) == {"checkpoint_blobs.blob"}
        postgres.run("DELETE FROM checkpoint_blobs")
        assert where_words_are(postgres) == {"checkpoint_blobs.blob"}  # of an empty table, new ones are not taken
        saver.scrub()  # type: ignore[attr-defined]
        assert where_words_are(postgres) == set()
        assert postgres.run(sampled) == []
