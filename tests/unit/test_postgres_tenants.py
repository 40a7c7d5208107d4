"""The second wall: what a role that is not the store's own sees by raw SQL."""

import psycopg
import pytest
from psycopg import sql
from support.full import ANA, fill
from support.postgres import Postgres
from support.records import keep, learnt

from everthread import Identity
from everthread.stores import open_store

TENANTS = (
    "records",
    "receipts",
    "audit",
    "outbox",
    "consents",
    "threads",
    "artifacts",
    "artifact_uses",
    "tasks",
    "jobs",
)
"""Tables whose rows say whose they are."""


@pytest.fixture
def visitor(postgres: Postgres) -> str:
    """The URL of a role that may read every table of a store that two tenants use."""
    with open_store(postgres.url, embedder="none") as store:
        fill(store)
        other = Identity(tenant="other", user="eve")
        keep(store, other, learnt("Eve keeps a secret garden", owner_id="eve"))
        store.tasks.create(other, "water the garden", thread_id="eve-1")
    role = postgres.guarded("a password of eight words")
    postgres.run("GRANT USAGE ON SCHEMA everthread TO {}", role)
    postgres.run("GRANT ALL ON ALL TABLES IN SCHEMA everthread TO {}", role)
    return postgres.url_of(role, "a password of eight words")


def tables(postgres: Postgres) -> list[str]:
    found = postgres.run("SELECT tablename FROM pg_tables WHERE schemaname = 'everthread' ORDER BY tablename")
    return [str(name) for (name,) in found]


def counted(url: str, table: str, tenant: str | None) -> int:
    with psycopg.connect(url) as connection:
        if tenant is not None:
            connection.execute("SELECT set_config('everthread.tenant', %s, true)", (tenant,))
        query = sql.SQL("SELECT count(*) FROM everthread.{}").format(sql.Identifier(table))
        ((count,),) = connection.execute(query).fetchall()
        return int(count)


def test_a_role_that_sets_no_tenant_sees_nothing(postgres: Postgres, visitor: str) -> None:
    for tenant in (None, "", "nobody"):
        assert {table: counted(visitor, table, tenant) for table in tables(postgres)} == dict.fromkeys(
            tables(postgres), 0
        )


def test_a_role_sees_the_tenant_that_it_sets_and_no_other(postgres: Postgres, visitor: str) -> None:
    with psycopg.connect(visitor) as connection:
        connection.execute("SELECT set_config('everthread.tenant', %s, true)", (ANA.tenant,))
        for table in TENANTS:
            query = sql.SQL("SELECT DISTINCT tenant FROM everthread.{}").format(sql.Identifier(table))
            assert connection.execute(query).fetchall() == [(ANA.tenant,)], table
        bodies = connection.execute("SELECT body FROM everthread.revisions").fetchall()
        assert bodies
        assert not [body for (body,) in bodies if "garden" in body]
    assert counted(visitor, "revisions", "other") == 1
    assert counted(visitor, "messages", "other") == 0
    assert counted(visitor, "messages", ANA.tenant) > 0


def test_every_table_has_the_wall(postgres: Postgres, visitor: str) -> None:
    open_to_all = postgres.run(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'everthread' AND NOT rowsecurity ORDER BY tablename"
    )
    assert open_to_all == []


def test_a_role_that_is_not_the_owner_writes_nothing(visitor: str) -> None:
    with psycopg.connect(visitor) as connection:
        connection.execute("SELECT set_config('everthread.tenant', %s, true)", (ANA.tenant,))
        assert connection.execute("UPDATE everthread.records SET author = 'mallory'").rowcount == 0
        assert connection.execute("DELETE FROM everthread.threads").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("INSERT INTO everthread.consents VALUES ('acme', 'ana', 'off', 0)")
