"""The command line: what it prints, for people, for pipes and as JSON, and how it ends."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.imports import FIXTURES
from typer.testing import CliRunner, Result

from everthread import Authority, Identity, Record, Scope
from everthread.cli import app
from everthread.cli.reports import DoctorReport, IngestReport
from everthread.stores import open_store
from everthread.stores.record import Change, ErasureReceipt, Provenance, Recall
from everthread.stores.threads import thread_id_for

ANA = Identity(tenant="local", user="ana")
SAID_AT = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)


def run(home: Path, *arguments: str, user: str = "ana") -> Result:
    """`everthread ARGUMENTS --home HOME --user USER`, in this process."""
    return CliRunner().invoke(app, [*arguments, "--home", str(home), "--user", user])


def run_json(home: Path, *arguments: str, user: str = "ana") -> Any:
    """What a command prints with `--json`; it must end with 0."""
    result = run(home, *arguments, "--json", user=user)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`everthread ARGUMENTS` in a process of its own, its output in a pipe."""
    program = [sys.executable, "-c", "from everthread.cli import main; main()"]
    return subprocess.run(
        [*program, *arguments], capture_output=True, text=True, encoding="utf-8", env=os.environ | environment
    )


def remember(home: Path, statement: str, *, subject: str | None = None) -> Record:
    """A record of Ana's."""
    record = Record(
        statement=statement,
        subject=subject,
        scope=Scope(owner="user", owner_id="ana"),
        provenance=Provenance(source="user", actor="ana", extracted_by="test/1", observed_at=SAID_AT),
        write_reason="she said so",
        authority=Authority.USER_EXPLICIT,
    )
    change = Change(action="create", record=record, rule="explicit", reason="she said so")
    with open_store(f"sqlite:{home}") as store:
        decision = store.commit(ANA, [change], key=f"test:{record.id}").decisions[0]
        found = store.record(ANA, decision.record_id or "")
    assert found is not None
    return found


def test_what_is_ingested_is_recalled_as_evidence(tmp_path: Path) -> None:
    report = IngestReport.model_validate(run_json(tmp_path, "ingest", str(FIXTURES / "locomo.json")))
    assert (report.read, report.added, report.already_there, report.threads) == (4, 4, 0, 3)
    assert report.formats["locomo"].model_dump() == {"files": 1, "read": 4, "skipped": {}}
    found = Recall.model_validate(run_json(tmp_path, "recall", "greyhound", "--sources", "evidence"))
    hit = found.hits[0]
    assert (hit.source, hit.thread_id, hit.message_ids, hit.statement, hit.speaker) == (
        "evidence",
        thread_id_for(ANA, "talk-1/session_1"),
        ("D1:1",),
        "I adopted a greyhound.",
        "Iris",
    )


def test_a_second_ingest_adds_nothing(tmp_path: Path) -> None:
    first = run_json(tmp_path, "ingest", str(FIXTURES))
    second = run_json(tmp_path, "ingest", str(FIXTURES))
    assert first["added"] == first["read"] > 30
    assert (second["read"], second["added"], second["already_there"]) == (first["read"], 0, first["read"])
    assert second["skipped"] == first["skipped"]


def test_ingest_of_nothing_that_can_be_read_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no conversation\n")
    assert run(tmp_path, "ingest", str(tmp_path / "notes.txt")).exit_code == 1
    assert run(tmp_path, "import", str(tmp_path / "nowhere.jsonl")).stderr == (
        f"error: {tmp_path}/nowhere.jsonl does not exist; give a file, or postgresql://...\n"
    )


def test_help_folds_whole_paragraphs() -> None:
    told = CliRunner().invoke(app, ["import", "--help"], env={"COLUMNS": "300"}).stdout
    assert "Secrets, personal numbers, orders and sensitive facts are refused and counted." in told
    assert "everthread threads [OPTIONS] [NAME]" in CliRunner().invoke(app, ["threads", "--help"]).stdout


def test_ingest_says_what_it_skipped_and_which_lines_it_could_not_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a conversation")
    report = run_json(tmp_path / "home", "ingest", str(FIXTURES / "chat.jsonl"), str(tmp_path / "notes.txt"))
    assert report["skipped"] == {"system prompt": 1, "role 'oracle' not known": 1}
    why = "format not known; --format says which it is"
    assert report["skipped_files"] == [{"path": str(tmp_path / "notes.txt"), "line": None, "why": why}]
    broken = {"path": str(FIXTURES / "chat.jsonl"), "line": 3, "why": "is not JSON: Unterminated string starting at"}
    assert report["problems"] == [broken]
    plain = run(tmp_path / "home", "ingest", str(FIXTURES / "chat.jsonl"), str(tmp_path / "notes.txt"))
    assert f"{FIXTURES / 'chat.jsonl'}:3\tis not JSON: Unterminated string starting at" in plain.stdout
    assert "jsonl: 1 file, 5 messages; skipped: 1 role 'oracle' not known; 1 system prompt" in plain.stdout


def test_ingest_keeps_the_thread_in_the_order_of_the_file(tmp_path: Path) -> None:
    run_json(tmp_path, "ingest", str(FIXTURES / "codex.jsonl"))
    with open_store(f"sqlite:{tmp_path}") as store:
        said = store.transcripts.read(ANA, thread_id_for(ANA, "codex/5f0c"))
    assert [(evidence.message_id, evidence.role, evidence.source) for evidence in said] == [
        ("msg-1", "user", "user"),
        ("fc-1", "tool", "assistant"),
        ("c1/result", "tool", "tool"),
        ("ws-1", "tool", "assistant"),
        ("msg-2", "assistant", "assistant"),
    ]


def test_ingest_takes_text_that_stores_choke_on(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    lines = [r'{"role": "user", "content": "nul \u0000 and \ud83d"}', '{"role": "user", "content": "مرحبا 🧵"}']
    path.write_text("\n".join([*lines, json.dumps({"role": "user", "content": "word " * 500_000})]))
    report = run_json(tmp_path / "home", "ingest", str(path), "--format", "jsonl")
    assert (report["read"], report["added"], report["problems"]) == (3, 3, [])


def test_another_user_sees_nothing(tmp_path: Path) -> None:
    run_json(tmp_path, "ingest", str(FIXTURES / "locomo.json"))
    record = remember(tmp_path, "Ana likes tea.")
    assert run_json(tmp_path, "threads", user="ben") == []
    assert run_json(tmp_path, "list", user="ben") == []
    assert run_json(tmp_path, "recall", "greyhound", "--sources", "evidence", user="ben")["hits"] == []
    assert run(tmp_path, "show", record.id, user="ben").exit_code == 2


def test_threads_are_listed_by_name_with_their_ids(tmp_path: Path) -> None:
    run_json(tmp_path, "ingest", str(FIXTURES / "longmemeval.json"))
    assert [(t["name"], t["messages"], t["thread_id"]) for t in run_json(tmp_path, "threads")] == [
        ("s2", 1, thread_id_for(ANA, "s2")),
        ("s1", 2, thread_id_for(ANA, "s1")),
    ]
    plain = run(tmp_path, "threads").stdout.splitlines()
    assert plain[0] == "name\tmessages\tfirst\tlast\tmemory\tid"
    assert plain[1] == f"s2\t1\t2023-05-21 03:00\t2023-05-21 03:00\ton\t{thread_id_for(ANA, 's2')}"


def test_a_recall_that_finds_nothing_ends_well_and_says_why(tmp_path: Path) -> None:
    result = run(tmp_path, "recall", "anything at all")
    assert result.exit_code == 0
    assert result.stdout.startswith("nothing found: ")
    assert Recall.model_validate(run_json(tmp_path, "recall", "anything at all")).hits == ()


def test_recall_takes_all_of_its_options(tmp_path: Path) -> None:
    remember(tmp_path, "Ana prefers tea over coffee.")
    run_json(tmp_path, "ingest", str(FIXTURES / "chat.jsonl"))
    both = run_json(tmp_path, "recall", "tea", "--sources", "records,evidence", "--limit", "5", "--explain")
    assert {hit["source"] for hit in both["hits"]} == {"records", "evidence"}
    assert run_json(tmp_path, "recall", "tea", "--as-of", "2001-01-01")["hits"] == []
    assert run_json(tmp_path, "recall", "tea", "--floor", "1000")["hits"] == []
    thread = run_json(tmp_path, "threads")[0]["name"]
    assert run_json(tmp_path, "recall", "tea", "--thread", thread)["hits"][0]["statement"].startswith("Ana prefers")


def test_records_are_listed_shown_and_followed(tmp_path: Path) -> None:
    record = remember(tmp_path, "Ana lives in Porto.\nSince May.")
    assert [Record.model_validate(one) for one in run_json(tmp_path, "list")] == [record]
    assert Record.model_validate(run_json(tmp_path, "show", record.id)) == record
    assert [Record.model_validate(one) for one in run_json(tmp_path, "history", record.id)] == [record]
    listed = run(tmp_path, "list").stdout.splitlines()
    assert listed[1].split("\t")[0] == "Ana lives in Porto. Since May."
    assert listed[1].split("\t")[-1] == record.id
    shown = run(tmp_path, "show", record.id).stdout.splitlines()
    assert f"id: {record.id}" in shown
    assert "provenance.actor: ana" in shown
    assert run_json(tmp_path, "list", "--status", "archived") == []
    assert len(run_json(tmp_path, "list", "--scope", "user:ana")) == 1


def test_forget_erases_with_a_receipt(tmp_path: Path) -> None:
    record = remember(tmp_path, "Ana's locker code starts with a seven.")
    receipt = ErasureReceipt.model_validate(run_json(tmp_path, "forget", record.id, "--yes"))
    assert (receipt.record_ids, receipt.verified) == ((record.id,), True)
    assert run_json(tmp_path, "list") == []
    assert run(tmp_path, "show", record.id).exit_code == 2


def test_forget_takes_a_thread_a_subject_or_a_scope(tmp_path: Path) -> None:
    remember(tmp_path, "The heron nests by the lake.", subject="heron")
    remember(tmp_path, "The otter sleeps by the river.", subject="otter")
    run_json(tmp_path, "forget", "--subject", "heron", "--yes")
    assert [record["subject"] for record in run_json(tmp_path, "list")] == ["otter"]
    run_json(tmp_path, "forget", "--scope", "user:ana", "--yes")
    assert run_json(tmp_path, "list") == []
    run_json(tmp_path, "ingest", str(FIXTURES / "longmemeval.json"))
    run_json(tmp_path, "forget", "--thread", "s1", "--with-source", "--yes")
    assert [thread["name"] for thread in run_json(tmp_path, "threads") if thread["messages"]] == ["s2"]
    again = run_json(tmp_path, "ingest", str(FIXTURES / "longmemeval.json"))
    assert (again["read"], again["added"]) == (3, 0)


def test_forget_asks_first_and_never_in_a_script(tmp_path: Path) -> None:
    record = remember(tmp_path, "Ana likes tea.")
    result = run(tmp_path, "forget", record.id)
    assert (result.exit_code, result.stderr) == (
        2,
        "error: erasing cannot be undone; add --yes to do it without being asked\n",
    )
    assert len(run_json(tmp_path, "list")) == 1


def test_doctor_names_findings_versions_and_where_data_goes(tmp_path: Path) -> None:
    report = DoctorReport.model_validate(run_json(tmp_path, "doctor"))
    assert report.ok and report.findings
    assert report.environment["python"].startswith(sys.version.split()[0])
    assert {flow.to for flow in report.data_flow} == {"this machine", "those tools"}
    told = DoctorReport.model_validate(run_json(tmp_path, "doctor", "--model", "openai:gpt-4o-mini"))
    sent = {flow.step for flow in told.data_flow if flow.to == "openai"}
    assert sent == {"reason", "extract, worker --model"}


def test_doctor_ends_with_1_when_the_file_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"this is no database, and it is long enough to look like one" * 100)
    result = run(tmp_path, "doctor", "--json")
    report = DoctorReport.model_validate_json(result.stdout)
    assert (result.exit_code, report.ok) == (1, False)
    broken = run(tmp_path, "list")
    assert broken.exit_code == 1
    assert broken.stderr.startswith("error: ") and broken.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("recall", "x", "--sources", "dreams"), "error: --sources 'dreams' is not known; write records, evidence"),
        (("recall", "x", "--as-of", "soon"), "error: time 'soon' not understood; write one like"),
        (("list", "--status", "lost"), "error: --status 'lost' is not known; choose from pending, active"),
        (("list", "--scope", "ana"), "error: scope 'ana' is not OWNER:ID, such as user:ana; owners are session, user"),
        (("show", "mem_none"), "error: there is no record mem_none for user"),
        (("history", "mem_none"), "error: there is no record mem_none for user"),
        (("forget", "--yes"), "error: nothing selected; give ids, --thread, --subject or --scope"),
        (("ingest", "/no/such/file"), "error: /no/such/file does not exist; give a file or a folder"),
        (("ingest", str(FIXTURES), "--format", "yaml"), "error: format 'yaml' is not known; choose one of jsonl"),
        (("list", "--tenant", " "), "error: --tenant must not be empty"),
        (("list", "--store", "mongo:here"), "error: "),
    ],
)
def test_a_wrong_call_ends_with_2_and_one_line(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    result = run(tmp_path, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(complaint)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_home_that_cannot_be_made_ends_with_1_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    result = run(tmp_path / "file", "list")
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: {tmp_path / 'file'} cannot be made (File exists); choose another home\n",
    )


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "memory.db")) as database:
        database.execute("CREATE TABLE theirs (x)")
    result = run(tmp_path, "list")
    assert result.exit_code == 2
    assert "is a SQLite database of another program; choose another home or file" in result.stderr


def test_an_empty_user_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "list", user="")
    assert (result.exit_code, result.stderr) == (2, "error: --user must not be empty\n")


def test_an_unknown_option_ends_with_2(tmp_path: Path) -> None:
    assert run(tmp_path, "list", "--colour").exit_code == 2


def test_what_was_said_cannot_steer_the_terminal(tmp_path: Path) -> None:
    remember(tmp_path, "red \x1b[31malert\x07 and \u202eback")
    assert "red \ufffd[31malert\ufffd and \ufffdback\t" in run(tmp_path, "list").stdout


def test_a_pipe_gets_plain_text_with_whole_ids(tmp_path: Path) -> None:
    record = remember(tmp_path, "Ana keeps a very long statement " + "about tea " * 60)
    result = process("list", "--home", str(tmp_path), "--user", "ana", COLUMNS="40", LC_ALL="C")
    assert (result.returncode, result.stderr) == (0, "")
    header, row = result.stdout.splitlines()
    assert header == "statement\ttype\tscope\tstatus\tauthority\trecorded\tid"
    assert row.split("\t")[0] == record.statement.strip()
    assert row.split("\t")[-1] == record.id


def test_the_home_may_come_from_the_environment(tmp_path: Path) -> None:
    chinese = process("ingest", str(FIXTURES / "group_chat.json"), "--json", EVERTHREAD_HOME=str(tmp_path))
    assert json.loads(chinese.stdout)["added"] == 2
    found = process("recall", "周五发布", "--sources", "evidence", EVERTHREAD_HOME=str(tmp_path), LC_ALL="C")
    assert "我们周五发布。" in found.stdout
    assert (tmp_path / "memory.db").is_file()


def test_help_names_what_an_option_takes_and_nothing_for_a_switch() -> None:
    commands = [command.name or "" for command in app.registered_commands]
    lines = [line for name in commands for line in CliRunner().invoke(app, [name, "--help"]).stdout.splitlines()]
    lines += CliRunner().invoke(app, ["--help"]).stdout.splitlines()
    assert [line for line in lines if " --" in line and "<" in line] == []


def test_help_has_examples_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from everthread.cli import app\n"
        "try: app(['--help'])\n"
        "finally: print(sorted({'langgraph', 'langchain_core', 'numpy', 'apsw', 'pydantic'} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"
    assert "Examples:" in result.stdout
    for command in ("ingest", "recall", "list", "show", "history", "forget", "threads", "doctor"):
        assert "Examples:" in CliRunner().invoke(app, [command, "--help"]).stdout


def test_completion_is_offered() -> None:
    result = process("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_EVERTHREAD_COMPLETE=complete_bash" in result.stdout
