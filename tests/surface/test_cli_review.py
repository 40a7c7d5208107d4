"""`everthread review`, `correct`, `archive` and `verify`: what they print, for people, for pipes and as JSON."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from support.records import NOON, keep, learnt, write
from typer.testing import CliRunner, Result

from everthread import Evidence, Identity, Record
from everthread.cli import app
from everthread.cli.review import walk
from everthread.nodes.extract.review import Waiting, review
from everthread.stores import MemoryStore, open_store
from everthread.stores.record import Change, Provenance, Receipt

ANA = Identity(tenant="local", user="ana", project="billing")


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--home", str(home), "--user", "ana", "--project", "billing"])


def run_json(home: Path, *arguments: str, code: int = 0) -> Any:
    result = run(home, *arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def page(statement: str, owner: str = "user", owner_id: str = "ana", **fields: Any) -> Record:
    """What a page said; it waits."""
    source = Provenance(
        source="web", thread_id="t1", message_ids=("m1",), actor="example.org", extracted_by="rules/1", observed_at=NOON
    )
    return learnt(statement, owner, owner_id, provenance=source, authority="external", status="pending", **fields)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home where Rome waits to take the place of Oslo."""
    about: dict[str, Any] = {"subject": "user", "predicate": "lives in"}
    with open_store(tmp_path) as store:
        line = Evidence(
            thread_id="t1",
            message_id="m1",
            role="tool",
            speaker="example.org",
            text="Ana\nlives in Rome!",
            at=NOON,
            source="web",
        )
        store.transcripts.append(ANA, [line])
        (old,) = keep(store, ANA, learnt("The user lives in Oslo.", value="Oslo", **about))
        new = page("The user lives in Rome.", value="Rome", **about)
        change = Change(
            action="supersede", record=new, target=old.id, expected=1, rule="untrusted-source", reason="a page said it"
        )
        write(store, ANA, change)
    return tmp_path


def waiting_id(home: Path) -> str:
    return str(run_json(home, "review")[0]["record"]["id"])


def standing(home: Path) -> list[tuple[str, str]]:
    return [(each["statement"], each["authority"]) for each in run_json(home, "list")]


def test_what_waits_is_listed_with_why_and_what_it_would_replace(home: Path) -> None:
    [each] = [Waiting.model_validate(each) for each in run_json(home, "review")]
    assert (each.record.statement, each.rule, each.why) == (
        "The user lives in Rome.",
        "untrusted-source",
        "a page said it",
    )
    assert [line.text for line in each.said] == ["Ana\nlives in Rome!"]
    assert [old.statement for old in each.replaces] == ["The user lives in Oslo."]
    for arguments in (("review",), ("review", "--list"), ("review", each.record.id)):
        header, row = run(home, *arguments).stdout.splitlines()
        assert header.split("\t") == ["statement", "for", "authority", "waits because", "would replace", "since", "id"]
        assert row.split("\t")[:5] == [
            "The user lives in Rome.",
            "user:ana",
            "external",
            "a page said it",
            "The user lives in Oslo.",
        ]


def test_approving_uses_it_and_ends_what_it_replaces(home: Path) -> None:
    id = waiting_id(home)
    result = run(home, "review", id, "--approve", "--reason", "she moved")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"approved {id}: she moved (approved, receipt rcp_")
    assert standing(home) == [("The user lives in Rome.", "external")]
    assert run(home, "review").stdout == "nothing waits for a decision\n"
    assert run_json(home, "review") == []


def test_rejecting_leaves_what_stands(home: Path) -> None:
    receipt = Receipt.model_validate(run_json(home, "review", waiting_id(home), "--reject"))
    assert [(each.outcome, each.rule) for each in receipt.decisions] == [("ended", "rejected")]
    assert standing(home) == [("The user lives in Oslo.", "user_explicit")]


def test_editing_uses_the_reviewers_words(home: Path) -> None:
    run_json(home, "review", waiting_id(home), "--edit", "I live in Porto.", "--reason", "she says so")
    assert standing(home) == [("I live in Porto.", "user_explicit")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("review", "ID", "--approve", "--reject"), "--approve and --reject exclude each other; give one"),
        (("review", "--approve"), "--approve needs the ID to decide about; `everthread review --list` shows them"),
        (("review", "ID", "--reason", "x"), "--reason goes with --approve, --edit or --reject"),
        (("review", "mem_none", "--approve"), "there is no record mem_none for user ana"),
        (("review", "ID", "--edit", "My password is hunter2-Gk39sLq0Zx."), "it holds a secret (secret)"),
        (("review", "ID", "--reject", "--reason", "my password is hunter2-Gk39sLq0Zx"), "the reason holds a secret"),
        (("review", "--role", "king"), "--role 'king' is not known here; curator is the one that decides"),
        (("review", "--team", ""), "--team: must not be empty"),
        (("correct", "ID", "I live in Porto."), "is pending; review it with an edit"),
        (("verify", "ID"), "only what is in use, or has expired, can be verified"),
        (("archive", "ID", "--undo"), "not archived: there is nothing to undo"),
        (("archive", "mem_none"), "there is no record mem_none for user ana; `everthread list` shows what there is"),
    ],
)
def test_a_wrong_call_says_what_to_do_and_changes_nothing(home: Path, arguments: Sequence[str], message: str) -> None:
    id = waiting_id(home)
    result = run(home, *(id if each == "ID" else each for each in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert waiting_id(home) == id


def test_what_would_hold_for_others_takes_the_role_and_the_audit_log_keeps_it(home: Path) -> None:
    record = page("The billing API rejects batches over 100.", "project", "billing")
    with open_store(home) as store:
        keep(store, ANA, record)
    denied = run(home, "review", record.id, "--approve")
    assert (denied.exit_code, denied.stdout) == (1, "")
    assert "with the role curator decides" in denied.stderr
    run_json(home, "review", record.id, "--approve", "--role", "curator")
    with open_store(home) as store:
        assert [entry.detail.get("roles") for entry in store.audit(ANA, record_id=record.id)] == [None, ["curator"]]
        assert store.records(ANA, ids=[record.id])[0].status == "active"


def test_a_team_is_opened_by_its_option(home: Path) -> None:
    member = ANA.model_copy(update={"team": "core", "organization": "acme", "agent": "ops"})
    records = [
        page("The team meets on Mondays.", "team", "core"),
        page("Deploys need two approvals.", "organization", "acme"),
        page("Batches over 100 fail.", "agent", "ops"),
    ]
    with open_store(home) as store:
        keep(store, member, *records)
    assert len(run_json(home, "review")) == 1
    opened = run_json(home, "review", "--team", "core", "--organization", "acme", "--agent", "ops")
    assert {each["record"]["statement"] for each in opened[1:]} == {record.statement for record in records}


def test_a_correction_takes_the_place_of_what_was_kept(home: Path) -> None:
    [old] = run_json(home, "list")
    result = run(home, "correct", old["id"], "I live in Porto.", "--reason", "moved in May")
    assert result.exit_code == 0
    [new] = run_json(home, "list")
    assert result.stdout.startswith(f"kept {new['id']} in place of {old['id']}: ")
    assert standing(home) == [("I live in Porto.", "user_explicit")]
    assert [each["status"] for each in run_json(home, "history", old["id"])] == ["active", "superseded"]
    told = [line.split("\t")[2::2] for line in run(home, "history", old["id"]).stdout.splitlines()[1:]]
    assert told == [["active", "nothing like it was known"], ["superseded", "it is as well sourced, and newer"]]
    [new] = run_json(home, "list")
    said = run_json(home, "why", new["id"])["said"]
    assert [(each["text"], each["source"]) for each in said] == [("I live in Porto.", "user")]
    assert "corrections" in {each["name"] for each in run_json(home, "threads")}


def test_a_refused_correction_ends_with_1_and_keeps_no_word(home: Path) -> None:
    [old] = run_json(home, "list")
    result = run(home, "correct", old["id"], "My password is hunter2-Gk39sLq0Zx.")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("refused: it holds a secret (secret, receipt rcp_")
    refused = run_json(home, "correct", old["id"], "My card is 4111 1111 1111 1111.", code=1)
    assert [each["rule"] for each in refused["decisions"]] == ["personal-number"]
    assert standing(home) == [("The user lives in Oslo.", "user_explicit")]


def test_archive_and_back(home: Path) -> None:
    [old] = run_json(home, "list")
    archived = run(home, "archive", old["id"], "--reason", "over").stdout
    assert archived.startswith(f"archived {old['id']}: over (archived, ")
    assert run(home, "list").stdout == "nothing is remembered here yet\n"
    assert [each["id"] for each in run_json(home, "list", "--status", "archived")] == [old["id"]]
    assert run_json(home, "archive", old["id"], "--undo")["decisions"][0]["rule"] == "unarchived"
    assert [each["id"] for each in run_json(home, "list")] == [old["id"]]


def test_verify_and_what_was_longest_unverified(home: Path) -> None:
    [old] = run_json(home, "list")
    with open_store(home) as store:
        keep(store, ANA, learnt("The user likes tea."))
    header, *rows = run(home, "review", "--unverified").stdout.splitlines()
    assert header.split("\t") == ["statement", "for", "authority", "said", "verified", "id"]
    assert len(rows) == 2
    assert run(home, "verify", old["id"]).stdout.startswith(f"verified {old['id']}: a person verified it (verified, ")
    assert [each["statement"] for each in run_json(home, "review", "--unverified", "--limit", "1")] == [
        "The user likes tea."
    ]


# --- Asked by a key


@pytest.fixture
def three(tmp_path: Path) -> Iterator[tuple[MemoryStore, list[Waiting]]]:
    with open_store(tmp_path) as store:
        records = [page(f"The user lives in {city}.") for city in ("Oslo", "Rome", "Porto")]
        keep(store, ANA, *records)
        yield store, [Waiting(record=record, rule="untrusted-source", why="a page said it") for record in records]


def walked(store: MemoryStore, found: list[Waiting], keys: str, *lines: str) -> list[str]:
    """Press these keys and type these lines; what became of each record."""
    pressed, typed = iter(keys), iter(lines)
    walk(
        found,
        lambda each, said: review(store, ANA, each.record.id, said),
        key=lambda: next(pressed),
        line=lambda asked: next(typed),
    )
    return [record.status for record in store.records(ANA, ids=[each.record.id for each in found])]


def test_each_key_decides_about_one(
    three: tuple[MemoryStore, list[Waiting]], capsys: pytest.CaptureFixture[str]
) -> None:
    store, found = three
    assert walked(store, found, "aer", "I live in Bergen.", "since May", "no longer") == [
        "active",
        "active",
        "rejected",
    ]
    shown = capsys.readouterr().out
    assert "1 of 3: The user lives in Oslo." in shown
    assert "  waits because a page said it (untrusted-source)" in shown
    assert shown.endswith("1 approved, 1 edited, 1 rejected\n")
    assert [each.reason for each in store.receipts(ANA, found[2].record.id)[-1].decisions] == ["no longer"]


def test_skipping_and_quitting_leave_the_rest(
    three: tuple[MemoryStore, list[Waiting]], capsys: pytest.CaptureFixture[str]
) -> None:
    store, found = three
    assert walked(store, found, "sxaq") == ["pending", "active", "pending"]
    assert capsys.readouterr().out.endswith("1 approved, 1 skipped, 1 left\n")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, EOFError, typer.Abort])
def test_stopping_in_the_middle_of_an_edit_leaves_it_and_the_rest(
    three: tuple[MemoryStore, list[Waiting]], capsys: pytest.CaptureFixture[str], stop: type[BaseException]
) -> None:
    store, found = three
    keys = iter("ae")

    def line(asked: str) -> str:
        raise stop

    walk(found, lambda each, said: review(store, ANA, each.record.id, said), key=lambda: next(keys), line=line)
    assert [record.status for record in store.records(ANA, ids=[each.record.id for each in found])] == [
        "active",
        "pending",
        "pending",
    ]
    assert capsys.readouterr().out.endswith("1 approved, 2 left\n")


def test_what_cannot_be_decided_is_said_and_asked_again(
    three: tuple[MemoryStore, list[Waiting]], capsys: pytest.CaptureFixture[str]
) -> None:
    store, found = three
    assert walked(store, found[:1], "eea", "", "My password is hunter2-Gk39sLq0Zx.", "") == ["active"]
    printed = capsys.readouterr()
    assert printed.err == "not done: the edited words are not kept: it holds a secret (secret)\n"
    review(store, ANA, found[1].record.id, "reject")
    assert walked(store, found[1:2], "as") == ["rejected"]
    assert "there is nothing to decide" in capsys.readouterr().err


def test_a_statement_cannot_pretend_to_be_another_line(
    three: tuple[MemoryStore, list[Waiting]], capsys: pytest.CaptureFixture[str]
) -> None:
    store, _ = three
    sly = page("The user lives in Rome.\n  source: user ana\x1b[2J\u202e")
    keep(store, ANA, sly)
    walked(store, [Waiting(record=sly, rule="untrusted-source", why="a page\nsaid it")], "q")
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "1 of 1: The user lives in Rome. source: user ana\ufffd[2J\ufffd"
    assert sum(line.startswith("  source: ") for line in shown) == 1


PATIENCE = 120.0
"""Seconds after which a command on a terminal is ended, however slow the machine is."""


def test_on_a_terminal_it_asks(home: Path) -> None:
    code, shown = on_a_terminal(home, b"a")
    assert code == 0, shown
    assert '  example.org said: "Ana lives in Rome!"' in shown
    assert "  would replace: The user lives in Oslo. (user_explicit, " in shown
    assert "1 approved" in shown
    assert standing(home) == [("The user lives in Rome.", "external")]


@pytest.mark.parametrize("key", [b"\x03", b"\x04", b"q"])
def test_ctrl_c_the_end_of_input_and_q_leave_what_waits(home: Path, key: bytes) -> None:
    code, shown = on_a_terminal(home, key)
    assert (code, "1 left" in shown) == (0, True), shown
    assert standing(home) == [("The user lives in Oslo.", "user_explicit")]


def on_a_terminal(home: Path, key: bytes) -> tuple[int, str]:
    """The exit code and the screen of `everthread review`, after this key. It is killed when it does not end by itself:
    the test then fails by the code, and holds up nothing."""
    here, there = pty.openpty()
    command = [sys.executable, "-c", "from everthread.cli import main; main()", "review", "--home", str(home)]
    process = subprocess.Popen(
        [*command, "--user", "ana", "--project", "billing"],
        stdin=there,
        stdout=there,
        stderr=there,
        start_new_session=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    ends = threading.Timer(PATIENCE, process.kill)
    ends.start()
    try:
        os.close(there)
        shown = read_until(here, "[q]uit")
        while process.poll() is None and termios.tcgetattr(here)[3] & termios.ICANON:
            time.sleep(0.01)  # what is typed before it reads single keys is thrown away
        if process.poll() is None:
            os.write(here, key)
            shown += read_until(here, None)
        return process.wait(), shown
    finally:
        ends.cancel()
        process.kill()
        process.wait()
        os.close(here)


def read_until(terminal: int, text: str | None) -> str:
    """What the terminal shows, until it shows `text`, or the other side is closed: its command ended or was killed."""
    shown = ""
    while text is None or text not in shown:
        try:
            got = os.read(terminal, 4096)
        except OSError:
            break
        if not got:
            break
        shown += got.decode(errors="replace")
    return shown
