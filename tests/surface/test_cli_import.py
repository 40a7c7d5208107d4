"""`everthread import` and docs/migrating.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.foreign import history_db, langgraph_db, mem0_export
from typer.testing import CliRunner, Result

from everthread import Identity
from everthread.cli import app
from everthread.stores import open_store

DOCUMENT = Path(__file__).parents[2] / "docs" / "migrating.md"
PUTS: Any = [
    (("memories", "ana"), "1", {"kind": "Memory", "content": {"content": "Ana prefers tea."}}),
    (("memories", "ana"), "2", {"kind": "Memory", "content": {"content": "The key is AKIAIOSFODNN7EXAMPLE."}}),
    (("memories", "bob"), "1", {"kind": "Memory", "content": {"content": "Bob prefers coffee."}}),
    (("projects", "billing", "notes"), "1", {"note": "Billing runs on PostgreSQL."}),
    (("scratch", "ana"), "1", {"guess": "Ana owns a cat."}),
    (("theme", "ana"), "1", {"dark": True}),
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return langgraph_db(tmp_path / "old.db", PUTS)


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["import", *arguments, "--home", str(home), "--user", "ana"])


def blocks() -> dict[str, str]:
    """The files that the document shows, by the name above each."""
    if not DOCUMENT.exists():
        pytest.skip("the documents are not part of a source distribution")
    return dict(re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S))


def test_a_dry_run_shows_what_would_come(tmp_path: Path, source: Path) -> None:
    result = run(tmp_path / "home", str(source), "--from", "langmem", "--dry-run")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "would import from 6 items: 1 new, 0 to review, 0 changed, 0 confirmed, 0 already there; "
            "1 refused, 0 skipped",
            "for example: Ana prefers tea.",
            "refused by\titems\tbecause",
            "secret\t1\tit holds a secret",
            "namespace without a map\titems",
            "projects/billing/notes\t1",
            "scratch/ana\t1",
            "theme/ana\t1",
            "not this user's\titems",
            "user:bob\t1",
        ],
    )
    with open_store(tmp_path / "home") as store:
        assert store.records(Identity(tenant="local", user="ana")) == []


def test_what_was_imported_is_listed_and_comes_once(tmp_path: Path, source: Path) -> None:
    first, second = (json.loads(run(tmp_path, str(source), "--from", "langmem", "--json").stdout) for _ in range(2))
    assert [(report["created"], report["already_there"]) for report in (first, second)] == [(1, 0), (0, 1)]
    listed = CliRunner().invoke(app, ["list", "--json", "--home", str(tmp_path), "--user", "ana"])
    (record,) = json.loads(listed.stdout)
    assert (record["statement"], record["provenance"]["source"], record["authority"]) == (
        "Ana prefers tea.",
        "import",
        "user_implied",
    )


def test_the_documents_map_runs(tmp_path: Path, source: Path) -> None:
    map_file = tmp_path / "map.toml"
    map_file.write_text(blocks()["map.toml"])
    options = ("--from", "langgraph", "--map", str(map_file), "--project", "billing", "--json")
    report = json.loads(run(tmp_path, str(source), *options).stdout)
    assert (report["created"], report["pending"], report["unmapped"]) == (1, 2, {"theme/ana": 1})


def test_the_documents_map_of_a_history_runs(tmp_path: Path) -> None:
    map_file = tmp_path / "history.json"
    map_file.write_text(blocks()["history.json"])
    path = history_db(
        tmp_path / "h.db", [("m1", "Ana prefers tea.", "ADD", "2025-05-01T00:00:00+00:00", None, 0, "user")]
    )
    report = json.loads(run(tmp_path, str(path), "--from", "mem0", "--map", str(map_file), "--json").stdout)
    assert (report["read"], report["created"]) == (1, 1)


def test_the_documents_code_runs(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = blocks()
    Path("map.toml").write_text(files["map.toml"])
    exec(compile(files["many.py"], "migrating.md", "exec"), {})
    assert capsys.readouterr().out == "2 new; 1 refused; not mapped: {'theme/ana': 1}\n"
    with open_store("sqlite:./data") as store:
        (record,) = store.records(Identity(tenant="acme", user="bob"))
        assert record.statement == "Bob prefers coffee."


def test_mem0s_export_needs_no_map(tmp_path: Path) -> None:
    memories = [
        {"id": "1", "memory": "Ana prefers tea.", "user_id": "ana", "created_at": "2025-05-01T00:00:00+00:00"},
        {"id": "2", "memory": "Bob prefers coffee.", "user_id": "bob"},
    ]
    path = mem0_export(tmp_path / "m.json", {"results": memories})
    report = json.loads(run(tmp_path, str(path), "--from", "mem0", "--json").stdout)
    assert (report["created"], report["others"]) == (1, {"user:bob": 1})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--from", "zep"), "error: --from 'zep' is not known; choose from langgraph, langmem, mem0\n"),
        (("--from", "langgraph"), "error: --map is missing: "),
        (("--from", "mem0"), "has no table 'history' as mem0 makes it; choose another --from\n"),
        (("--from", "langgraph", "--map", "nowhere.toml"), "error: nowhere.toml cannot be read: "),
    ],
)
def test_a_wrong_call_ends_with_2_and_one_line(
    tmp_path: Path, source: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    result = run(tmp_path / "home", str(source), *arguments)
    assert (result.exit_code, result.stderr.count("\n"), complaint in result.stderr) == (2, 1, True)
    assert not (tmp_path / "home").exists()
