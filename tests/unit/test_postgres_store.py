from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from support.postgres import Postgres, in_database, replica_that_reads
from support.records import create, keep, learnt, write

from everthread import Identity, Scope
from everthread.errors import StoreError, UsageError
from everthread.stores import MemoryStore, PostgresStore, open_checkpointer, open_store
from everthread.stores.open import located, shown
from everthread.stores.postgres.address import where
from everthread.stores.postgres.database import migrations
from everthread.stores.record import Selection, now_utc


@pytest.fixture
def ana() -> Identity:
    return Identity(tenant="acme", user="ana")


def opened(url: str) -> MemoryStore:
    return open_store(url, embedder="none")


def asking(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


def test_many_that_start_at_once_make_the_schema_once(postgres: Postgres) -> None:
    with ThreadPoolExecutor(6) as workers:
        for store in workers.map(opened, [postgres.url] * 6):
            store.close()
    assert postgres.run("SELECT number FROM everthread.migrations ORDER BY number") == [
        (number,) for number in migrations()
    ]


def test_a_store_keeps_to_its_schema(postgres: Postgres) -> None:
    opened(asking(postgres.url, "schema=memory")).close()
    assert postgres.run("SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname !~ '^(pg_|information)'") == [
        ("memory",)
    ]


def test_options_in_the_url_reach_the_server(postgres: Postgres) -> None:
    ana = Identity(tenant="acme", user="ana")
    opened(postgres.url).close()
    with opened(asking(postgres.url, "options=-c%20default_transaction_read_only%3Don&schema=everthread")) as store:
        assert store.recall(ana, "anything").hits == ()
        with pytest.raises(StoreError, match="is read-only; name the primary server, not a replica"):
            store.set_consent(ana, "off")


def test_a_schema_of_something_else_is_left_alone(postgres: Postgres) -> None:
    postgres.run("CREATE SCHEMA everthread")
    postgres.run("CREATE TABLE everthread.invoices (id int)")
    with pytest.raises(UsageError, match="holds tables of another program"):
        opened(postgres.url)
    assert postgres.run("SELECT tablename FROM pg_tables WHERE schemaname = 'everthread'") == [("invoices",)]


@pytest.mark.parametrize("name", ['A b"c', "it's 100%", "a.b", "记忆", "x" * 63])
def test_a_schema_may_have_any_name(postgres: Postgres, ana: Identity, name: str) -> None:
    with PostgresStore(postgres.url, embedder="none", schema=name, partitions=1) as store:
        keep(store, ana, learnt("Ana likes tea."))
        assert [hit.statement for hit in store.recall(ana, "tea").hits] == ["Ana likes tea."]
        assert [finding for finding in store.doctor() if not finding.ok] == []
        assert store.erase(ana, Selection(scope=Scope(owner="user", owner_id="ana")), reason="asked for").verified


def test_a_name_that_postgresql_would_cut_or_read_as_another_is_refused(postgres: Postgres) -> None:
    for name in ("x" * 64, "记" * 22, "$user", "pg_memory"):
        with pytest.raises(UsageError, match=r"^schema .* give (a|another) name"):
            PostgresStore(postgres.url, schema=name)
    assert postgres.run("SELECT nspname FROM pg_namespace WHERE nspname ~ '^(xx|记|.user|pg_mem)'") == []


def test_a_newer_schema_is_refused(postgres: Postgres) -> None:
    opened(postgres.url).close()
    postgres.run("INSERT INTO everthread.migrations (number) VALUES (9000)")
    with pytest.raises(UsageError, match="newer everthread"):
        opened(postgres.url)


def test_another_encoding_is_refused(postgres: Postgres) -> None:
    name = f"everthread_latin_{uuid4().hex[:8]}"
    postgres.run("CREATE DATABASE {} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'", name)
    try:
        with pytest.raises(StoreError, match="encoding is LATIN1"):
            opened(in_database(postgres.url, name))
    finally:
        postgres.run("DROP DATABASE {} WITH (FORCE)", name)


def test_a_user_without_privileges_is_told_so(postgres: Postgres) -> None:
    role = postgres.guarded("a password of eight words")
    with pytest.raises(StoreError, match="may not do this") as caught:
        opened(postgres.url_of(role, "a password of eight words"))
    assert "password of" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        opened("postgresql://ana:secretword@127.0.0.1:1/nowhere?connect_timeout=2")
    assert "secretword" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ana:pw@db.local/mem", "postgresql://db.local:5432/mem?schema=everthread"),
        ("postgresql:///mem?host=/run/pg&schema=s", "postgresql://:5432/mem?host=/run/pg&schema=s"),
        ("postgresql://%2Frun%2Fpg:6432/mem", "postgresql://:6432/mem?host=/run/pg&schema=everthread"),
    ],
)
def test_a_store_is_named_by_a_url_that_leads_to_it(url: str, told: str) -> None:
    assert where(url) == where(told) == told


def test_a_server_that_lets_nobody_in_is_told_apart_from_one_that_is_not_there(postgres: Postgres) -> None:
    role = postgres.guarded("a password of eight words")
    for url, why in (
        (postgres.url_of(role, "another password"), f'password authentication failed for user "{role}"'),
        (postgres.url_of("nobody", ""), 'role "nobody" does not exist'),
        (in_database(postgres.url, "nothere"), 'database "nothere" does not exist'),
    ):
        with pytest.raises(StoreError) as caught:
            opened(url)
        said = f"{where(url)}: the server refuses the connection ({why}); check user, password and database"
        assert str(caught.value) == said


def test_a_pool_that_gets_no_connection_says_why(postgres: Postgres, ana: Identity) -> None:
    role = postgres.guarded("a password of eight words")
    postgres.run("GRANT CREATE ON DATABASE {} TO {}", str(conninfo_to_dict(postgres.url)["dbname"]), role)
    url = postgres.url_of(role, "a password of eight words")
    with PostgresStore(url, embedder="none", timeout=1) as store:
        postgres.run("ALTER ROLE {} PASSWORD 'changed'", role)
        postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", values=(role,))
        with pytest.raises(StoreError, match="password authentication failed"):
            store.set_consent(ana, "read")


def test_connections_that_the_server_ended_are_replaced(postgres: Postgres, ana: Identity) -> None:
    with opened(postgres.url) as store:
        store.set_consent(ana, "read")
        postgres.run(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert store.consent(ana) == "read"


def test_a_connection_that_ends_in_the_middle_of_a_write_leaves_nothing(postgres: Postgres, ana: Identity) -> None:
    def cutting() -> datetime:
        """The time, as it is asked for in the middle of a transaction."""
        postgres.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' "
            "AND datname = current_database()"
        )
        return now_utc()

    with PostgresStore(postgres.url, embedder="none", clock=cutting) as store:
        with pytest.raises(StoreError, match="cannot be reached"):
            write(store, ana, create(learnt("Ana likes tea")), key="k")
        assert store.records(ana) == []
        assert store.receipt_of(ana, "k") is None


def test_a_statement_that_takes_too_long_is_told(postgres: Postgres, ana: Identity) -> None:
    opened(postgres.url).close()
    with (
        psycopg.connect(postgres.url) as writer,
        opened(asking(postgres.url, "options=-cstatement_timeout%3D2000")) as store,
    ):
        writer.execute("LOCK TABLE everthread.consents")
        with pytest.raises(StoreError, match="longer than the server allows"):
            store.set_consent(ana, "off")


def test_two_stores_write_one_after_the_other(postgres: Postgres, ana: Identity) -> None:
    def commit(number: int) -> None:
        with opened(postgres.url) as store:
            for n in range(5):
                keep(store, ana, learnt(f"Fact {n} of writer {number}"))

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(commit, range(4)))
    with opened(postgres.url) as store:
        assert len(store.records(ana)) == 20
        assert store.verify_audit().detail == "chain of 20 entries verified"


def test_what_a_replica_still_reads_is_not_called_erased(postgres: Postgres, ana: Identity) -> None:
    with opened(postgres.url) as store:
        [tea, coffee] = keep(store, ana, learnt("Ana likes tea."), learnt("Ana likes coffee."))
        with replica_that_reads(postgres.url):
            receipt = store.erase(ana, Selection(record_ids=(tea.id,)), reason="asked for")
        assert not receipt.verified
        assert any("1 sessions, here or on replicas, still see the state before" in said for said in receipt.remains)
        assert store.erase(ana, Selection(record_ids=(coffee.id,)), reason="asked for").verified


TORN = "the URL cannot be read; write postgresql://USER:PASSWORD@HOST"


@pytest.mark.parametrize(
    "torn",
    ["ana:p@secretword@host/db", "ana:a/secretword@host/db", "ana:a?secretword@host/db", "ana:secretword%zz@h/db"],
)
def test_a_torn_url_is_refused_without_a_word_of_it(torn: str) -> None:
    for failing in (open_store, located):
        with pytest.raises(UsageError, match=TORN) as caught:
            failing(f"postgresql://{torn}")
        assert "secretword" not in str(caught.value)
    assert shown(f"postgresql://{torn}") == "postgresql://..."


def test_a_url_is_shown_without_user_and_password() -> None:
    url = "postgresql://ana:secretword@host:1/db?schema=team&partitions=2&password=secretword"
    assert shown(url) == "postgresql://host:1/db?schema=team"
    assert shown("sqlite:./data") == "sqlite:./data"


def test_a_url_may_name_its_server_in_the_options(postgres: Postgres, ana: Identity) -> None:
    parts = {name: value for name, value in conninfo_to_dict(postgres.url).items() if value}
    name = parts.pop("dbname")
    query = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in parts.items())
    with opened(f"postgresql:///{name}?schema=a%20b%2Bc&partitions=1&{query}") as store:
        keep(store, ana, learnt("Ana likes tea."))
    assert postgres.run("SELECT count(*) FROM {}.records", "a b+c") == [(1,)]


def test_a_server_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for named in ("host=localhost password=secretword", "postgres+psycopg://ana:secretword@host/db"):
        for failing in (open_store, open_checkpointer):
            with pytest.raises(UsageError) as caught:
                failing(named)
            assert "secretword" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
