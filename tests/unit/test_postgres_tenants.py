"""A tenant's rows lie in its partitions, and behind the second wall: what a role that is not the store's own sees."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support.full import ANA, fill
from support.postgres import Postgres
from support.records import keep, learnt

from everthread import Identity
from everthread.migrate.restore import restore
from everthread.stores import PostgresStore, open_store
from everthread.stores.postgres.database import PARTITIONS, Database
from everthread.stores.postgres.statements import KEYED
from everthread.stores.record import Selection
from everthread.stores.tables.recall import NEIGHBOURS
from everthread.stores.tables.rows import BODY, PERMITTED, permission
from everthread.stores.tables.search import ROWS, VERSIONS, record_space

UNSEEN = {"search", "search_versions"}
"""What is derived is shown to nobody."""
TENANTS = (*sorted(KEYED - UNSEEN - {"gates"}), "threads", "jobs")
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


def test_a_partition_that_is_asked_by_its_name_shows_nothing(postgres: Postgres, visitor: str) -> None:
    partitions = [name for name in tables(postgres) if name.endswith(f"_p{0:03}") or name.endswith("_p013")]
    assert len(partitions) == 2 * len(KEYED)
    for tenant in (ANA.tenant, "other"):
        assert {name: counted(visitor, name, tenant) for name in partitions} == dict.fromkeys(partitions, 0)


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


# ------------------------------------------------------------------------------------------------------- partitions


def test_tables_are_keyed_by_tenant_first_and_partitioned_by_its_hash(postgres: Postgres, visitor: str) -> None:
    found = postgres.run(
        "SELECT relname, pg_get_partkeydef(pg_class.oid), "
        "(SELECT count(*) FROM pg_inherits WHERE inhparent = pg_class.oid), "
        "split_part(split_part(pg_get_constraintdef(pg_constraint.oid), '(', 2), ',', 1) "
        "FROM pg_class JOIN pg_constraint ON conrelid = pg_class.oid AND contype = 'p' "
        "WHERE relnamespace = 'everthread'::regnamespace AND relkind = 'p' ORDER BY relname"
    )
    assert found == [(table, "HASH (tenant)", PARTITIONS, "tenant") for table in sorted(KEYED)]


def read_by(plan: Any) -> Iterator[str]:
    """The tables in which a plan looks for rows."""
    if isinstance(plan, dict) and plan.get("Node Type") != "ModifyTable":
        yield from (str(value) for key, value in plan.items() if key == "Relation Name")
    for part in plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ():
        yield from read_by(part)


def partition_of(postgres: Postgres, tenant: str) -> str:
    """The end of the names of the partitions that a tenant's rows lie in."""
    ((suffix,),) = postgres.run(
        "SELECT substr(tableoid::regclass::text, length('everthread.records') + 1) FROM everthread.records "
        "WHERE tenant = %s LIMIT 1",
        values=(tenant,),
    )
    return str(suffix)


ASKED = permission(ANA, "user", "ana", None)
SPACE = record_space(ANA.tenant, "user", "ana")


STATEMENTS: list[tuple[str, Any, set[str]]] = [
    (VERSIONS, (json.dumps([SPACE]),), {"search_versions"}),
    (ROWS, (SPACE, 0), {"search"}),
    (f"SELECT {BODY} FROM records WHERE {PERMITTED}", ASKED, {"records", "revisions"}),
    (NEIGHBOURS, {"ids": '["a", "b"]'}, {"relations"}),
    ("UPDATE revisions SET body = ? WHERE id = ?", ("", "a"), {"revisions"}),
    ("DELETE FROM search WHERE space = ?", (SPACE,), {"search"}),
]


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_erasure_and_an_import_wait_for_no_other_tenant(postgres: Postgres, tmp_path: Path, dry_run: bool) -> None:
    ana, other = Identity(tenant="acme", user="ana"), "other"
    with PostgresStore(postgres.url, embedder="none") as store:
        (tea,) = keep(store, ana, learnt("Ana likes tea"))
        file = tmp_path / "ana.jsonl"
        file.write_text("".join(store.export(ana)), encoding="utf-8")
        with ThreadPoolExecutor(1) as worker, store._database.write(other):  # in the middle of a write
            erase = partial(store.erase, reason="asked for", dry_run=dry_run)
            erased = worker.submit(erase, ana, Selection(record_ids=(tea.id,))).result(60)
            brought = worker.submit(restore, store, file, ana, dry_run=dry_run).result(60)
    assert erased.erased["records"] == 1
    assert brought.read == 1 + 1


def test_what_is_asked_for_a_tenant_reads_its_partitions_alone(postgres: Postgres, visitor: str) -> None:
    suffix, database = partition_of(postgres, ANA.tenant), Database(postgres.url)
    with database.write(ANA.tenant) as connection:
        for statement, values, tables in STATEMENTS:
            told, named = connection.translated(statement, values)
            ((plan,),) = connection.raw.execute(f"EXPLAIN (FORMAT JSON) {told}".encode(), named).fetchall()
            assert set(read_by(plan)) == {f"{table}{suffix}" for table in tables}, statement
    database.close()
