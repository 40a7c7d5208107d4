"""Items as they stand in PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from support.postgres import Postgres

from everthread.errors import StoreError
from everthread.migrate import Item, Skipped, postgres_items

MAY = datetime(2025, 5, 8, 12, 0, tzinfo=UTC)
TABLE = (
    "CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value jsonb NOT NULL, created_at timestamptz, "
    "updated_at timestamptz, expires_at timestamptz, ttl_minutes int, PRIMARY KEY (prefix, key))"
)


def items(url: str, **options: Any) -> list[Item | Skipped]:
    with postgres_items(url, "langgraph", **options) as source:
        found = list(source.items)
    assert source.total == len(found)
    return found


def insert(
    postgres: Postgres, key: str, value: str, updated_at: str | None = None, expires_at: str | None = None
) -> None:
    postgres.run(
        "INSERT INTO store VALUES ('a.b', %s, %s::jsonb, '2025-05-08 12:00:00+00', %s, %s)",
        values=(key, value, updated_at, expires_at),
    )


def test_times_are_read_whatever_the_role_prefers(postgres: Postgres) -> None:
    postgres.run(TABLE)
    (name,) = postgres.run("SELECT current_database()")[0]
    postgres.run("ALTER DATABASE {} SET datestyle = 'German, DMY'", str(name))
    postgres.run("ALTER DATABASE {} SET timezone = 'Asia/Kolkata'", str(name))
    insert(postgres, "k", "{}", "2025-05-08T12:00:00Z", "2025-05-08T12:00:00Z")
    assert items(postgres.url) == [Item(("a", "b"), "k", {}, MAY, MAY)]


def test_hostile_values_cost_nothing_but_themselves(postgres: Postgres) -> None:
    postgres.run(TABLE)
    insert(postgres, "a", '"text"')
    insert(postgres, "b", '{"x": ' + "[" * 3000 + "]" * 3000 + "}")
    insert(postgres, "c", '{"x": ' + "9" * 6000 + "}")
    insert(postgres, "d", '{"x": "\'; DROP TABLE store; --"}', "infinity", "infinity")
    insert(postgres, "e", "{}", "4000-01-01 BC")
    insert(postgres, "f", "{}", "294000-01-01")
    skipped = Skipped("its value is not a JSON object")
    found = items(postgres.url)
    assert [found[0], found[2]] == [skipped, skipped]
    assert found[3:] == [
        Item(("a", "b"), "d", {"x": "'; DROP TABLE store; --"}, None, None),
        Item(("a", "b"), "e", {}, None),
        Item(("a", "b"), "f", {}, None),
    ]


def test_a_table_of_the_first_version_has_no_expiry(postgres: Postgres) -> None:
    postgres.run(
        "CREATE TABLE store (prefix text, key text, value jsonb, created_at timestamptz, updated_at timestamptz)"
    )
    postgres.run("INSERT INTO store VALUES ('a', 'k', '{\"x\": 1}', '2025-05-08 12:00:00+00', NULL)")
    assert items(postgres.url) == [Item(("a",), "k", {"x": 1}, MAY)]


def test_torn_text_costs_nothing_but_itself(postgres: Postgres) -> None:
    (name,) = postgres.run("SELECT current_database()")[0]
    torn = f"{name}_torn"
    postgres.run("CREATE DATABASE {} TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'", torn)
    try:
        other = Postgres(postgres.url.replace(str(name), torn))
        other.run("CREATE TABLE store (prefix text, key text, value jsonb)")
        other.run("INSERT INTO store VALUES ('a', E'k\\xff', '{}'), ('b', 'k', '{}')")
        assert items(other.url) == [Item(("a",), "k\ufffd", {}), Item(("b",), "k", {})]
    finally:
        postgres.run("DROP DATABASE {} WITH (FORCE)", torn)


def test_rows_come_a_few_at_a_time_from_one_moment(postgres: Postgres) -> None:
    postgres.run(TABLE)
    postgres.run("INSERT INTO store SELECT 'a', lpad(n::text, 4, '0'), '{}' FROM generate_series(1, 1000) AS n")
    with postgres_items(postgres.url, "langgraph") as source:
        first = next(source.items)
        postgres.run("DELETE FROM store")
        assert (first, source.total, sum(1 for _ in source.items)) == (Item(("a",), "0001", {}), 1000, 999)


def test_a_server_that_goes_away_is_told_with_the_remedy(postgres: Postgres) -> None:
    postgres.run(TABLE)
    postgres.run("INSERT INTO store SELECT 'a', n::text, '{}' FROM generate_series(1, 1000) AS n")
    with pytest.raises(StoreError, match=r"^PostgreSQL failed \(.*\); run it again"):
        with postgres_items(postgres.url, "langgraph") as source:
            next(source.items)
            postgres.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'everthread import'"
            )
            list(source.items)


def test_the_source_is_read_only_even_for_its_owner(postgres: Postgres) -> None:
    # a view stands for whatever of the source could write when it is read
    postgres.run("CREATE TABLE touched (n int)")
    postgres.run(
        "CREATE FUNCTION touch() RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO touched VALUES (1); RETURN 'k'; END $$"
    )
    postgres.run("CREATE VIEW store AS SELECT 'a'::text AS prefix, touch() AS key, '{}'::jsonb AS value")
    with pytest.raises(StoreError, match="read-only transaction"):
        items(postgres.url)
    assert postgres.run("SELECT * FROM touched") == []


def test_an_error_of_the_reader_is_left_alone(postgres: Postgres) -> None:
    postgres.run(TABLE)
    with pytest.raises(psycopg.errors.UndefinedTable, match="mine"):
        with postgres_items(postgres.url, "langgraph"):
            raise psycopg.errors.UndefinedTable("mine")
