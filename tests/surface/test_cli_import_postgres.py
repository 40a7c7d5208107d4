"""`everthread import postgresql://...`, against a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.postgres import PostgresStore
from support.foreign import mem0_export
from support.postgres import Postgres
from typer.testing import CliRunner, Result

from everthread import Identity
from everthread.cli import app
from everthread.stores import open_store
from everthread.stores.record import Authority, Provenance, Record

ANA = Identity(tenant="local", user="ana")
PASSWORD = "pepper/corn@tide%41"
PUTS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("memories", "ana"), "1", {"kind": "Memory", "content": {"content": "Ana prefers tea."}}),
    (("memories", "ana"), "2", {"content": "安娜喜欢简短的报告。"}),
    (("memories", "ana"), "3", {"content": "The key is AKIAIOSFODNN7EXAMPLE."}),
    (("memories", "ana", "deep"), "1", {"content": "Ana prefers trains."}),
    (("memories", "bob"), "1", {"content": "Bob prefers coffee."}),
]


def put(url: str, puts: Iterable[tuple[tuple[str, ...], str, Mapping[str, Any]]]) -> None:
    with PostgresStore.from_conn_string(url) as store:
        store.setup()
        for namespace, key, value in puts:
            store.put(namespace, key, dict(value))


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["import", *arguments, "--home", str(home), "--user", "ana"])


def report(home: Path, *arguments: str) -> dict[str, Any]:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.output
    read: dict[str, Any] = json.loads(result.stdout)
    return read


def records(home: Path) -> list[Record]:
    with open_store(home) as store:
        return store.records(ANA)


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path, postgres: Postgres) -> None:
    put(postgres.url, PUTS)
    result = run(tmp_path, postgres.url, "--from", "langmem", "--dry-run")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "would import from 5 items: 2 new, 0 to review, 0 changed, 0 confirmed, 0 already there; "
            "1 refused, 0 skipped",
            "for example: Ana prefers tea.",
            "for example: 安娜喜欢简短的报告。",
            "refused by\titems\tbecause",
            "secret\t1\tit holds a secret",
            "namespace without a map\titems",
            "memories/ana/deep\t1",
            "not this user's\titems",
            "user:bob\t1",
        ],
    )
    assert records(tmp_path) == []


def test_what_langgraphs_store_holds_comes_once_and_says_where_from(tmp_path: Path, postgres: Postgres) -> None:
    put(postgres.url, PUTS)
    with PostgresStore.from_conn_string(postgres.url) as store:
        item = store.get(("memories", "ana"), "1")
        assert item is not None
        written = item.updated_at
    first, second = (report(tmp_path, postgres.url, "--from", "langmem") for _ in range(2))
    assert [(each["read"], each["created"], each["already_there"]) for each in (first, second)] == [
        (5, 2, 0),
        (5, 0, 2),
    ]
    (tea,) = [record for record in records(tmp_path) if record.statement == "Ana prefers tea."]
    assert (tea.authority, tea.write_reason, tea.provenance) == (
        Authority.USER_IMPLIED,
        "imported from langmem",
        Provenance(
            source="import",
            actor="langmem",
            artifact="langmem:memories/ana/1",
            artifact_revision=written.astimezone(UTC).isoformat(),
            extracted_by="import/langmem",
            observed_at=written.astimezone(UTC),
        ),
    )


def test_a_mapping_file_is_used(tmp_path: Path, postgres: Postgres) -> None:
    put(postgres.url, [(("notes", "ana"), "n", {"body": {"text": "Ana prefers short reports."}})])
    maps = tmp_path / "map.toml"
    maps.write_text('[[map]]\nnamespace = ["notes", "{u}"]\nowner_id = "{u}"\ntext = "body.text"\n')
    report(tmp_path, postgres.url, "--from", "langgraph", "--map", str(maps))
    assert [record.statement for record in records(tmp_path)] == ["Ana prefers short reports."]


def test_nothing_is_written_to_the_source(tmp_path: Path, postgres: Postgres) -> None:
    put(postgres.url, PUTS)
    role = postgres.guarded(PASSWORD)
    postgres.run("GRANT SELECT ON store TO {}", role)
    before = postgres.run("SELECT prefix, key, value, created_at, updated_at, xmin::text FROM store ORDER BY 1, 2")
    assert report(tmp_path, postgres.url_of(role, PASSWORD), "--from", "langmem")["created"] == 2
    after = postgres.run("SELECT prefix, key, value, created_at, updated_at, xmin::text FROM store ORDER BY 1, 2")
    assert before == after
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres.run(tables) == [(2,)]  # `store` and `store_migrations`


def test_mem0s_collection_gives_what_its_export_gives(tmp_path: Path, postgres: Postgres) -> None:
    id, other = "0b7ff5c1-4c40-4a3a-9b9d-5a5a4f0f3a11", "1b7ff5c1-4c40-4a3a-9b9d-5a5a4f0f3a11"
    payloads = {
        id: {"data": "Ana prefers tea.", "user_id": "ana", "hash": "x", "created_at": "2025-05-01T00:00:00+00:00"},
        other: {"data": "Bob prefers coffee.", "user_id": "bob"},
    }
    postgres.run("CREATE EXTENSION vector")
    for table in ("mem0", "Odd; name"):
        postgres.run("CREATE TABLE {} (id UUID PRIMARY KEY, vector vector(2), payload JSONB)", table)
    for key, payload in payloads.items():
        postgres.run(
            "INSERT INTO mem0 VALUES (%s, '[1,0]', %s::jsonb)", values=(key, json.dumps(payload, ensure_ascii=False))
        )
    postgres.run("INSERT INTO {} VALUES (gen_random_uuid(), NULL, NULL)", "Odd; name")
    found = report(tmp_path, postgres.url, "--from", "mem0")
    assert (found["created"], found["others"]) == (1, {"user:bob": 1})
    export = [{"memory": value["data"], "id": key, **value} for key, value in payloads.items()]
    path = mem0_export(tmp_path / "m.json", export)
    assert report(tmp_path, str(path), "--from", "mem0")["already_there"] == 1
    odd = report(tmp_path, postgres.url, "--from", "mem0", "--collection", "Odd; name")
    assert odd["skipped"] == {"its value is not a JSON object": 1}


def test_a_wrong_password_is_refused_and_not_shown(tmp_path: Path, postgres: Postgres) -> None:
    put(postgres.url, PUTS)
    role = postgres.guarded(PASSWORD)
    wrong = "s3cret-" + PASSWORD
    result = run(tmp_path / "home", postgres.url_of(role, wrong), "--from", "langmem")
    assert (result.exit_code, result.stderr.count("\n"), "password authentication failed" in result.stderr) == (
        1,
        1,
        True,
    )
    assert [word for word in ("s3cret", "pepper", "corn", "tide") if word in result.output] == []
    assert not (tmp_path / "home").exists()


def test_the_password_is_in_nothing_that_is_kept(tmp_path: Path, postgres: Postgres) -> None:
    put(postgres.url, PUTS)
    role = postgres.guarded(PASSWORD)
    postgres.run("GRANT SELECT ON store TO {}", role)
    result = run(tmp_path, postgres.url_of(role, PASSWORD), "--from", "langmem", "--json")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()) + result.output.encode()
    assert [word for word in (b"pepper", b"corn@", b"corn%40", role.encode()) if word in kept] == []


def test_a_role_without_the_right_to_read_is_told_so(tmp_path: Path, postgres: Postgres) -> None:
    put(postgres.url, PUTS)
    role = postgres.guarded(PASSWORD)
    result = run(tmp_path / "home", postgres.url_of(role, PASSWORD), "--from", "langmem")
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: the role '{role}' may not read the table 'store'; GRANT SELECT on it to that role\n",
    )


def test_a_database_without_the_table_is_told_so_and_gets_none(tmp_path: Path, postgres: Postgres) -> None:
    result = run(tmp_path / "home", postgres.url, "--from", "langmem")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: the database has no table 'store'; is it another database, or a schema to be named by "
        "?options=-csearch_path%3DSCHEMA\n",
    )
    assert postgres.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
    assert not (tmp_path / "home").exists()


def test_a_schema_is_named_in_the_url(tmp_path: Path, postgres: Postgres) -> None:
    postgres.run("CREATE SCHEMA agents")
    url = postgres.url + ("&" if "?" in postgres.url else "?") + "options=-csearch_path%3Dagents"
    put(url, PUTS)
    assert report(tmp_path, url, "--from", "langmem")["created"] == 2


def test_another_table_of_that_name_is_told_so(tmp_path: Path, postgres: Postgres) -> None:
    postgres.run("CREATE TABLE store (id int, shelf text)")
    result = run(tmp_path / "home", postgres.url, "--from", "langgraph", "--map", str(_any_map(tmp_path)))
    assert (result.exit_code, result.stderr) == (
        2,
        "error: the table 'store' is not as langgraph makes it; choose another --from\n",
    )


def _any_map(folder: Path) -> Path:
    path = folder / "map.toml"
    path.write_text('[[map]]\nnamespace = ["{u}"]\nowner_id = "{u}"\ntext = "x"\n')
    return path


@pytest.mark.parametrize(
    ("source", "options", "code", "complaint"),
    [
        ("postgresql://ana:hunter2@127.0.0.1:1/x", (), 1, "error: PostgreSQL cannot be read (connection failed: "),
        ("postgresql://ana:hunter2@nowhere.invalid/x", (), 1, "error: PostgreSQL cannot be read (failed to resolve "),
        ("postgresql://ana:hun@ter2@127.0.0.1:1/x", (), 2, "error: the URL cannot be read; write postgresql://USER:"),
        ("postgresql://ana:hun#ter2@127.0.0.1:1/x", (), 1, "error: PostgreSQL cannot be read (connection failed: "),
        ("postgresql://ana:hun?ter2@127.0.0.1:1/x", (), 2, "error: the URL cannot be read; write postgresql://USER:"),
        ("postgresql://ana@acme:hunter2@127.0.0.1:1/x", (), 2, "error: the URL cannot be read; write postgresql://"),
        ("postgresql://ana:hun/ter2@127.0.0.1:1/x", (), 2, "error: the URL cannot be read; write postgresql://USER:"),
        ("postgresql://ana:hun%zzter2@127.0.0.1:1/x", (), 2, "error: the URL cannot be read; write postgresql://USER:"),
        ("postgresql://ana:hunter2@127.0.0.1:1/x?ssl=1", (), 2, "error: the URL cannot be read; write postgresql://"),
        ("postgresql+psycopg://ana:hunter2@h/x", (), 2, "error: only PostgreSQL is read by URL; write postgresql://"),
        ("dbname=x password=hunter2", (), 2, "error: only PostgreSQL is read by URL; write postgresql://USER:"),
        ("mysql://ana:hunter2@h/x", (), 2, "error: only PostgreSQL is read by URL; write postgresql://USER:"),
        (
            "postgresql://h/x",
            ("--collection", "c"),
            2,
            "error: a collection is mem0's; --from langmem reads the table ",
        ),
        ("old.db", ("--collection", "c"), 2, "error: --collection names a table in PostgreSQL; leave it out for a "),
    ],
)
def test_a_source_that_cannot_be_read_ends_with_one_line_without_the_password(
    tmp_path: Path, source: str, options: tuple[str, ...], code: int, complaint: str
) -> None:
    result = run(tmp_path / "home", source, "--from", "langmem", *options)
    assert (result.exit_code, result.stderr.count("\n"), result.stderr[: len(complaint)]) == (code, 1, complaint)
    assert [word for word in ("hunter2", "ter2", "hun@", "hun%") if word in result.output] == []
    assert not (tmp_path / "home").exists()


def test_without_psycopg_the_remedy_is_named(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules['psycopg'] = None\n"
        "from everthread.cli import main\n"
        f"sys.argv = ['everthread', 'import', 'postgresql://h/x', '--from', 'langmem', '--home', {str(tmp_path)!r}]\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (
        2,
        "error: PostgreSQL needs psycopg; pip install 'everthread[postgres]'\n",
    )
