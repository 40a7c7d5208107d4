"""`everthread export`, `everthread import` of an export, `everthread copy`, and what docs/moving.md shows."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.full import fill
from support.records import create, keep, learnt
from typer.testing import CliRunner, Result

from everthread import Identity
from everthread.cli import app
from everthread.errors import StoreError, UsageError
from everthread.stores import open_store
from everthread.stores.files import write_private
from everthread.stores.record import Selection

ANA = Identity(tenant="local", user="ana")
FULL = Identity(
    tenant="local",
    user="ana",
    application="desk",
    agent="helper",
    project="billing",
    team="core",
    organization="acme",
    roles=frozenset({"curator"}),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with open_store(tmp_path / "home") as store:
        fill(store, FULL)
    return tmp_path / "home"


def run(*arguments: str | Path, home: Path) -> Result:
    user = [] if "--user" in arguments else ["--user", "ana"]
    return CliRunner().invoke(app, [*map(str, arguments), "--home", str(home), *user])


def failed(result: Result) -> str:
    assert result.exit_code != 0
    assert "Traceback" not in result.output
    return result.stderr


# ------------------------------------------------------------------------------------------------------------- export


def test_an_export_goes_to_standard_output(home: Path) -> None:
    lines = [json.loads(line) for line in run("export", home=home).stdout.splitlines()]
    assert (lines[0]["format"], lines[0]["user"], lines[-1]["type"]) == ("everthread-export", "ana", "end")
    assert lines[-1]["lines"] == len(lines) - 1


def test_an_export_can_be_read_by_its_owner_alone(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "ana.jsonl"
    result = run("export", "--output", file, home=home)
    size = file.stat().st_size
    assert result.stdout == f"exported 54 lines, {size} bytes, to {file}; only you can read it\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ana.jsonl", "home"]


def test_what_is_left_out_is_said(home: Path, tmp_path: Path) -> None:
    result = run("export", "--output", tmp_path / "a", home=home)
    assert "left out: 1 record in project:billing" in result.stderr
    result = run("export", "--output", tmp_path / "b", "--project", "billing", home=home)
    assert "project:billing" not in result.stderr


def test_the_report_of_an_export_as_json(home: Path, tmp_path: Path) -> None:
    report = json.loads(run("export", "--output", tmp_path / "a", "--json", home=home).stdout)
    assert (report["format"], report["counts"]["thread"], report["counts"]["evidence"]) == ("jsonl", 2, 4)
    (entry,) = json.loads(run("audit", "--action", "export", "--json", home=home).stdout)["entries"]
    assert entry["detail"]["export"] == report["export"]


def test_a_document_is_written_for_a_person(home: Path, tmp_path: Path) -> None:
    run("export", "--format", "markdown", "--output", tmp_path / "ana.md", home=home)
    document = (tmp_path / "ana.md").read_text("utf-8")
    assert document.startswith("# What is remembered of ana\n")
    assert "**Ana likes reports of one page.**" in document


def test_a_document_on_standard_output_is_the_one_in_a_file(home: Path, tmp_path: Path) -> None:
    run("export", "--format", "markdown", "--output", tmp_path / "ana.md", home=home)
    shown = run("export", "--format", "markdown", home=home).stdout
    written = (tmp_path / "ana.md").read_text("utf-8")
    assert (
        shown[shown.index("## What is preferred") : shown.index("## The log")]
        == (written[written.index("## What is preferred") : written.index("## The log")])
    )


def test_one_scope_can_be_exported(home: Path) -> None:
    result = run("export", "--scope", "project:billing", "--project", "billing", home=home)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["export", "record", "receipt", "end"]
    assert "error: scope team:core is not open to user ana" in failed(run("export", "--scope", "team:core", home=home))


def test_a_file_is_not_replaced_without_being_told(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("mine")
    assert "exists already" in failed(run("export", "--output", file, home=home))
    assert file.read_text() == "mine"
    assert run("export", "--output", file, "--force", home=home).exit_code == 0
    assert "everthread-export" in file.read_text("utf-8")


@pytest.mark.parametrize(
    ("output", "says"),
    [("", "exists already"), ("no/such/folder/file", "cannot be written (No such file or directory)")],
)
def test_a_place_that_cannot_be_written_is_named(home: Path, tmp_path: Path, output: str, says: str) -> None:
    assert says in failed(run("export", "--output", tmp_path / output, home=home))


def test_an_unknown_format_is_refused(home: Path) -> None:
    assert "choose from jsonl, markdown" in failed(run("export", "--format", "yaml", home=home))


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("what was there")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        for file, force in ((tmp_path / "new", False), (kept, True)):
            with pytest.raises(StoreError, match="cannot be written"):
                write_private(file, ("x" * 1000 + "\n" for _ in range(100)), force=force)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text() == "what was there"


def test_an_export_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "one\n"
        raise StoreError("the disk is gone")

    with pytest.raises(StoreError, match="the disk is gone"):
        write_private(tmp_path / "file", lines())
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("theirs")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(UsageError, match="exists already"):
        write_private(link, ["x"])
    write_private(link, ["x"], force=True)
    assert (target.read_text(), link.is_symlink(), link.read_text()) == ("theirs", False, "x")


# ------------------------------------------------------------------------------------------------------------- import


def test_an_export_comes_back_into_another_store(home: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "ana.jsonl", tmp_path / "other"
    run("export", "--output", file, home=home)
    foreseen = run("import", file, "--as-is", "--dry-run", home=other)
    assert foreseen.stdout.splitlines()[1] == (
        "would bring back 38 of 38 entries; 0 are here already, 0 were erased here and stay away, "
        "0 are other things here, 0 refused"
    )
    result = run("import", file, "--as-is", home=other)
    assert result.stdout.splitlines()[0].endswith("; taken as it is, as you say")
    listed = json.loads(run("list", "--json", home=other).stdout)
    assert listed == json.loads(run("list", "--json", home=home).stdout)
    found = json.loads(run("recall", "Where does Ana live, Hamburg?", "--json", home=other).stdout)
    assert [hit["statement"] for hit in found["hits"]][:1] == ["Hamburg"]


def test_an_export_comes_back_into_its_own_store(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "ana.jsonl"
    run("export", "--output", file, home=home)
    report = json.loads(run("import", file, "--json", home=home).stdout)
    assert (report["proof"], report["new"], report["other"]) == ("sealed", {}, {})


def test_what_nothing_proves_is_said(home: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "ana.jsonl", tmp_path / "other"
    run("export", "--output", file, home=home)
    result = run("import", file, home=other)
    assert "nothing proves that this store wrote it" in result.stdout
    assert "unproven-job\t1\tit would be run on the user's behalf" in result.stdout
    file.write_text(file.read_text("utf-8").replace("Hamburg", "Hanburg"), "utf-8")
    assert "and it was edited since" in run("import", file, home=tmp_path / "third").stdout
    assert "not as it was exported" in failed(run("import", file, "--as-is", home=tmp_path / "third"))


def test_conflicts_are_named(home: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "ana.jsonl", tmp_path / "other"
    run("export", "--output", file, home=home)
    with open_store(home) as store, open_store(other) as there:
        id = store.current(FULL, "ana", "city")[0].id
        keep(there, ANA, learnt("Bremen", id=id))
    assert f"left alone, something else has this id: record {id}" in run("import", file, "--as-is", home=other).stderr


def test_what_goes_with_which_source_is_said(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "ana.jsonl"
    run("export", "--output", file, home=home)
    (tmp_path / "x.json").write_text("[]")
    assert "say with --from" in failed(run("import", tmp_path / "x.json", home=home))
    assert "--from is missing" in failed(run("import", "postgresql://a:secret@b/c", home=home))
    assert "secret" not in failed(run("import", "postgresql://a:secret@b/c", home=home))
    assert "--as-is is for an export" in failed(run("import", file, "--from", "mem0", "--as-is", home=home))
    assert "go with --from" in failed(run("import", file, "--map", tmp_path / "x.json", home=home))
    assert "user ana, not of ben" in failed(run("import", file, "--user", "ben", home=home))


# --------------------------------------------------------------------------------------------------------------- copy


def test_a_store_is_copied_whole(home: Path, tmp_path: Path) -> None:
    result = run("copy", home, tmp_path / "copy", home=home)
    assert result.exit_code == 0, result.output
    assert re.match(r"copied \d+ rows; both stores were compared, the audit log is whole\n", result.stdout)
    assert run("list", home=tmp_path / "copy").stdout == run("list", home=home).stdout
    assert run("doctor", home=tmp_path / "copy").exit_code == 0
    assert "have the same" in run("copy", home, tmp_path / "copy", home=home).stdout


def test_places_that_cannot_be_copied_are_named(home: Path, tmp_path: Path) -> None:
    assert "there is no store at" in failed(run("copy", tmp_path / "none", tmp_path / "copy", home=home))
    assert not (tmp_path / "none").exists()
    assert "are the same store" in failed(run("copy", home, f"sqlite:{home}/../home", home=home))
    with open_store(tmp_path / "full") as store:
        keep(store, ANA, learnt("mine"))
    assert "holds other memory" in failed(run("copy", home, tmp_path / "full", home=home))


KILLED = """
import os, signal, sys
from everthread.stores import open_store
from everthread.stores.transfer import copy

with open_store(sys.argv[1]) as source, open_store(sys.argv[2]) as target:
    copy(source, target, advance=lambda count: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_copy_that_was_killed_is_finished_by_the_next(home: Path, tmp_path: Path) -> None:
    with open_store(home) as store:
        store.commit(ANA, [create(learnt(f"fact number {n}")) for n in range(1000)], key="many")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(home), str(tmp_path / "copy")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert "run the same `everthread copy` again" in run("doctor", home=tmp_path / "copy").stdout
    report = json.loads(run("copy", home, tmp_path / "copy", "--json", home=home).stdout)
    assert report["resumed_at"] == 1000
    assert run("doctor", home=tmp_path / "copy").exit_code == 0


# ------------------------------------------------------------------------------------------------------- the document

MOVING = Path(__file__).parents[2] / "docs" / "moving.md"


def test_the_commands_of_the_document_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not MOVING.exists():
        pytest.skip("the documents are not part of a source distribution")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERTHREAD_HOME", "data")
    with open_store("data") as store:
        keep(store, ANA, learnt("Ana likes tea"))
    commands = re.findall(r"^    everthread (.+?)(?: +#.*)?$", MOVING.read_text("utf-8"), re.M)
    assert len(commands) >= 6
    for command in commands:
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, (command, result.output)


def test_an_export_holds_what_is_erased_later(home: Path, tmp_path: Path) -> None:
    """As docs/moving.md says: it is a copy. What comes back from it does not bring that back."""
    file = tmp_path / "ana.jsonl"
    run("export", "--output", file, home=home)
    with open_store(home) as store:
        id = store.current(FULL, "ana", "city")[0].id
        store.erase(FULL, Selection(record_ids=(id,)), reason="asked")
    assert "Hamburg" in file.read_text("utf-8")
    report: dict[str, Any] = json.loads(run("import", file, "--json", home=home).stdout)
    assert report["erased"] == {"record": 1}
    assert os.path.exists(file)
