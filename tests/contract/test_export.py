"""What an export has: everything of one user and nothing of another's; for machines and for people."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from markdown_it import MarkdownIt
from support.full import ANA, BEN, STATUSES, everything, fill, other_users
from support.records import keep, learnt, said_by, write

from everthread import Evidence, Identity, Record, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.portable import plain
from everthread.stores.record import Change, Governance, now_utc

ADMIN = Identity(tenant="acme", user="root", roles=frozenset({"admin"}))


@pytest.fixture
def full(store: MemoryStore) -> MemoryStore:
    fill(store)
    other_users(store)
    return store


def exported(store: MemoryStore, who: Identity = ANA, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in store.export(who, **options)]


def of(lines: list[dict[str, Any]], type: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == type]


def test_the_fullest_record_leaves_no_field_at_its_default() -> None:
    fields = everything()
    left = {name for name, field in Record.model_fields.items() if getattr(fields, name) == field.default}
    assert left == {"revision", "status", "covers", "usage_count", "last_used_at", "ended_at", "temporal_scope"}


def test_every_revision_of_every_record_is_exported_whole(full: MemoryStore) -> None:
    lines = of(exported(full), "record")
    known = {record.id for record in full.records(ANA, statuses=STATUSES) if "BEN-ONLY" not in record.statement}
    assert {line["id"] for line in lines} - known == {
        record.id for record in full.records(ANA, thread_id="t1") if record.scope.owner == "session"
    }
    assert {line["id"] for line in lines} >= known
    for line in lines:
        history = full.history(ANA, line["id"])
        told = [
            {**revision, "usage_count": line["usage_count"], "last_used_at": line["last_used_at"]}
            for revision in line["revisions"]
        ]
        for revision, record in zip(told, history, strict=True):
            written = {name: revision.pop(name) for name in ("actor", "receipt", "change_reason")}
            assert written["actor"] == "ana"
            expected = plain(record)
            if record.revision < len(history):
                expected |= {"usage_count": line["usage_count"], "last_used_at": line["last_used_at"]}
            assert revision == expected
    assert {line["revisions"][-1]["status"] for line in lines} == set(STATUSES)


def test_everything_else_of_the_user_is_exported(full: MemoryStore) -> None:
    lines = exported(full)
    threads = of(lines, "thread")
    assert [(line["id"], line["name"], line["memory"]) for line in threads] == [
        ("t1", "第一个 | first", "on"),
        ("t2", None, "read"),
    ]
    said = [said for thread in ("t1", "t2") for said in full.transcripts.read(ANA, thread)]
    assert [{"type": "evidence", **plain(each)} for each in said] == of(lines, "evidence")
    assert [(line["thread_id"], line["message_id"]) for line in of(lines, "erased")] == [("t2", "m2")]
    receipts = {id: full.receipt(ANA, id) for id in (line["id"] for line in of(lines, "receipt"))}
    assert of(lines, "receipt") == [{"type": "receipt", **plain(receipt)} for receipt in receipts.values()]
    decided = [decision["outcome"] for line in of(lines, "receipt") for decision in line["decisions"]]
    assert "refused" in decided
    tasks = [{"type": "task", **plain(task), "blocked_by": []} for task in reversed(full.tasks.of(ANA))]
    assert [{**line, "blocked_by": []} for line in of(lines, "task")] == [
        {**task, "key": key} for task, key in zip(tasks, ["check", None, None], strict=True)
    ]
    assert [line["after"] for line in of(lines, "task")] == [[], [], [tasks[0]["id"]]]
    artifacts = of(lines, "artifact")
    assert artifacts == [
        {"type": "artifact", **_without_thread(full, line["id"]), "threads": line["threads"]} for line in artifacts
    ]
    assert [line["threads"] for line in artifacts] == [[""], ["t1", "t2"]]
    assert [(line["message_id"], line["text"]) for line in of(lines, "input")] == [("m9", "还有一件事"), ("m8", None)]
    assert [(line["kind"], line["payload"]) for line in of(lines, "job")] == [("later", {"thread_id": "t1"})]
    assert [(line["namespace"], line["value"]) for line in of(lines, "item")] == [
        (["notes", "a"], {"text": "备注", "n": 1})
    ]
    assert [line["memory"] for line in of(lines, "consent")] == ["on"]
    assert of(lines, "audit") == [{"type": "audit", **plain(entry)} for entry in full.audit(ANA)]


def _without_thread(store: MemoryStore, id: str) -> dict[str, Any]:
    found: dict[str, Any] = plain(store.artifacts.get(ANA, id))
    del found["thread_id"]
    return found


def test_the_first_line_says_what_it_is_and_how_much(full: MemoryStore) -> None:
    header, *lines, end = exported(full)
    told = {name: header[name] for name in ("type", "format", "version", "by", "tenant", "user", "scope", "left_out")}
    assert told == {
        "type": "export",
        "format": "everthread-export",
        "version": 1,
        "by": "ana",
        "tenant": "acme",
        "user": "ana",
        "scope": None,
        "left_out": {},
    }
    types = dict.fromkeys(line["type"] for line in lines)
    assert header["counts"] == {type: len(of(lines, type)) for type in types if type != "erased"}
    assert header["erased"] == {"messages": 1, "records": 1}
    assert end["lines"] == len(lines) + 1


def test_an_export_has_no_word_of_another_user(full: MemoryStore) -> None:
    for format in ("jsonl", "markdown"):
        text = "".join(full.export(ANA, format=format))
        assert "Hamburg" in text
        assert "-ONLY" not in text


def test_what_was_erased_is_in_no_export(full: MemoryStore) -> None:
    for format in ("jsonl", "markdown"):
        assert "will be erased" not in "".join(full.export(ANA, format=format))


def test_two_exports_differ_in_the_first_line_and_the_log_alone(full: MemoryStore) -> None:
    first, second = (exported(full) for _ in range(2))
    assert [line for line in first[1:-1] if line["type"] != "audit"] == [
        line for line in second[1:-1] if line["type"] != "audit"
    ]


def test_lines_are_utf8_and_times_have_offset_and_microseconds(full: MemoryStore) -> None:
    text = "".join(full.export(ANA))
    assert text.encode().decode() == text
    assert "安娜喜欢简短的报告" in text
    assert "2026-03-04T09:30:00.000000+08:00" in text
    assert "2026-03-04T09:01:00.000007-05:30" in text


def test_an_export_is_noted_in_the_log(full: MemoryStore) -> None:
    header = exported(full)[0]
    (entry,) = full.audit(ANA, action="export")
    assert (entry.user, entry.detail) == ("ana", {"export": header["id"], "format": "jsonl", "of": "ana"})


def test_another_user_is_exported_by_an_admin_alone(full: MemoryStore) -> None:
    before = len(full.audit(ADMIN))
    with pytest.raises(AccessDenied, match="ana may not export"):
        full.export(ANA, user="ben")
    assert len(full.audit(ADMIN)) == before
    lines = exported(full, ADMIN, user="ben")
    assert (lines[0]["by"], lines[0]["user"]) == ("root", "ben")
    statements = {line["revisions"][-1]["statement"] for line in of(lines, "record")}
    assert statements == {"BEN-ONLY", "BEN-ONLY of the project"}
    assert [line["text"] for line in of(lines, "evidence")] == ["BEN-ONLY"]


def test_an_admin_of_another_tenant_finds_nothing(full: MemoryStore) -> None:
    foreign = Identity(tenant="other", user="root", roles=frozenset({"admin"}))
    assert [line["type"] for line in exported(full, foreign, user="ben")[1:-1]] == []


def test_what_a_user_wrote_where_the_identity_does_not_belong_is_counted(full: MemoryStore) -> None:
    lines = exported(full, Identity(tenant="acme", user="ana"))
    assert lines[0]["left_out"] == {
        "agent:helper": 1,
        "organization:acme": 1,
        "project:billing": 1,
        "team:core": 1,
    }
    owners = {line["revisions"][-1]["scope"]["owner"] for line in of(lines, "record")}
    assert owners == {"user", "session"}, "also what holds only in an application or a project"


def test_what_a_user_may_not_read_is_left_out_and_counted(store: MemoryStore) -> None:
    keep(store, ANA, learnt("for curators", governance=Governance(readable_by=("role:curator",))))
    plain_ana = Identity(tenant="acme", user="ana")
    assert exported(store, plain_ana)[0]["left_out"] == {"user:ana": 1}
    assert "for curators" in "".join(store.export(ADMIN, user="ana"))


def test_a_revision_of_when_it_was_another_s_is_left_out(store: MemoryStore) -> None:
    (record,) = keep(store, ANA, learnt("shared", "project", "billing", governance=Governance(readable_by=("ana",))))
    opened = record.model_copy(update={"statement": "open to all", "governance": Governance()})
    write(store, ANA, Change(action="revise", record=opened, target=record.id, expected=1, rule="r", reason="x"))
    assert "shared" not in "".join(store.export(BEN, scope=record.scope))
    assert "open to all" in "".join(store.export(BEN, scope=record.scope))


def test_a_scope_can_be_exported_alone(full: MemoryStore) -> None:
    lines = exported(full, ANA, scope=Scope(owner="project", owner_id="billing"))
    assert {line["type"] for line in lines} == {"export", "record", "receipt", "end"}
    assert {line["revisions"][-1]["statement"] for line in of(lines, "record")} == {
        "Billing runs on PostgreSQL because of row-level security.",
        "BEN-ONLY of the project",
    }
    narrowed = Scope.model_validate({"owner": "user", "owner_id": "ana", "within": {"application": "desk"}})
    assert [line["revisions"][-1]["predicate"] for line in of(exported(full, ANA, scope=narrowed), "record")] == [
        "length of reports"
    ]


def test_a_scope_of_others_cannot_be_exported(full: MemoryStore) -> None:
    with pytest.raises(AccessDenied, match="user:ben"):
        full.export(ANA, scope=Scope(owner="user", owner_id="ben"))
    with pytest.raises(AccessDenied, match="team:core"):
        full.export(BEN, scope=Scope(owner="team", owner_id="core"))


def test_an_unknown_format_is_refused(full: MemoryStore) -> None:
    format: Any = "yaml"
    with pytest.raises(UsageError, match="yaml"):
        full.export(ANA, format=format)


def test_the_store_can_be_used_while_lines_are_taken(full: MemoryStore) -> None:
    lines = full.export(ANA)
    next(lines)
    keep(full, ANA, learnt("written meanwhile"))
    assert full.records(ANA, limit=1)[0].statement == "written meanwhile"
    assert "written meanwhile" not in "".join(lines)


def test_a_store_that_is_closed_while_lines_are_taken_says_so(reopen: Any) -> None:
    store = reopen()
    fill(store)
    lines = store.export(ANA)
    next(lines)
    store.close()
    with pytest.raises(UsageError, match="closed"):
        list(lines)


def test_lines_that_nobody_takes_leave_nothing_open(store: MemoryStore) -> None:
    fill(store)
    lines: Any = store.export(ANA)
    next(lines)
    lines.close()
    assert store.records(ANA) != []


# ----------------------------------------------------------------------------------------------------------- Markdown

HOSTILE = (
    "# Heading\n\n<img src=x onerror=alert(1)> [click](javascript:x) ![p](http://evil.example/p.png) | a | b |\n"
    "```\ncode\n``` *bold* __bold__ ~~gone~~ https://evil.example www.evil.example a@evil.example $x$ \u202etxet\n---"
)


def tokens(markdown: str) -> list[Any]:
    """What a renderer sees, at every depth."""
    parsed = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    return [each for token in parsed for each in (token, *(token.children or ()))]


def test_the_document_shows_everything_with_id_source_and_date(full: MemoryStore) -> None:
    document = "".join(full.export(ANA, format="markdown"))
    for line in exported(full)[1:-1]:
        name = line.get("id") or line.get("message_id")
        assert name is None or f"`{name}`" in document
    for shown in (
        "Ana likes reports of one page.",
        "安娜喜欢简短的报告。 Ana likes short reports.",
        "from artifact ana, thread `t1` (`m1`, `m2`), wiki/Ana at 7, 2026-03-04 09:30 +08:00, found by rules/1",
        "supersedes",
        "superseded, ended",
        "sensitivity: personal",
        "检查报告",
        "refused by the rule secret: it holds a secret",
        "Consent to memory: **on**",
    ):
        assert shown in document


def test_what_a_message_says_beyond_its_text_is_shown_and_its_text_once(store: MemoryStore) -> None:
    call = {"name": "lookup", "args": {"city": "上海"}, "id": "call-1"}
    for id, extra in (("m1", {}), ("m2", {"tool_calls": [call]})):
        payload = {"type": "ai", "data": {"content": "Hello there.", "type": "ai", "id": id, **extra}}
        said = Evidence(
            thread_id="t", message_id=id, role="assistant", text="Hello there.", at=now_utc(), source="assistant",
            payload=payload,
        )  # fmt: skip
        store.transcripts.append(ANA, [said])
    document = "".join(store.export(ANA, format="markdown"))
    assert document.count("Hello there.") == 2
    assert [line for line in document.splitlines() if "with:" in line] == [
        "  - with: tool_calls: (name: lookup, args: city: 上海, id: call-1)"
    ]


def test_decisions_stand_with_their_reason_and_date(store: MemoryStore) -> None:
    keep(
        store,
        ANA,
        learnt("We use PostgreSQL for row-level security.", write_reason="a decision that was made", subject="billing"),
    )
    document = "".join(store.export(ANA, format="markdown"))
    (section,) = [part for part in document.split("\n## ") if part.startswith("What was decided")]
    assert "We use PostgreSQL for row-level security." in section
    assert "2026-05-08 12:00 +00:00" in section


def test_no_text_can_break_the_document(store: MemoryStore) -> None:
    record = learnt(HOSTILE, subject=HOSTILE, predicate="x", value=HOSTILE, tags=(HOSTILE,), write_reason=HOSTILE)
    keep(store, ANA, record)
    said = [
        Evidence(
            thread_id="t`1", message_id="m`1", role="user", speaker=HOSTILE, text=HOSTILE, at=now_utc(), source="user"
        )
    ]
    store.transcripts.append(ANA, said)
    store.transcripts.bind(ANA, "t`1", name=HOSTILE)
    store.tasks.create(ANA, HOSTILE, key=HOSTILE)
    store.artifacts.put(ANA, "summary", HOSTILE)
    store.bound(ANA).put((HOSTILE.replace(".", ""),), HOSTILE, {"text": HOSTILE})
    document = "".join(store.export(ANA, format="markdown"))
    found = tokens(document)
    forbidden = {"html_inline", "html_block", "link_open", "image", "fence", "code_block", "table_open", "em_open"}
    assert {token.type for token in found} & (forbidden | {"s_open", "hr", "hardbreak"}) == set()
    assert [token.tag for token in found if token.type == "heading_open"].count("h1") == 1
    titles = [after.content for token, after in pairwise(found) if token.tag == "h2" and token.nesting == 1]
    assert titles == [
        "What is known, by subject",
        "Tasks",
        "What was said",
        "What else is kept",
        "What was done with it",
        "The log",
    ]
    assert not re.search(r"(?<!\\)://|www(?!\\)\.|(?<!\\)@|(?<!\\)\$", document), "no address becomes a link"
    assert "\u202e" not in document


def test_the_document_of_nobody_is_short(store: MemoryStore) -> None:
    lines = "".join(store.export(Identity(tenant="acme", user="nobody"), format="markdown"))
    assert lines.startswith("# What is remembered of nobody\n")
    assert [line for line in lines.splitlines() if line.startswith("## ")] == ["## The log"]


def test_a_session_of_another_user_is_in_no_export(store: MemoryStore) -> None:
    keep(store, ANA, learnt("mine", "session", "t1", provenance=said_by("ana", "t1")), thread_id="t1")
    assert "mine" in "".join(store.export(ANA, scope=Scope(owner="session", owner_id="t1")))
    assert "mine" not in "".join(store.export(BEN, scope=Scope(owner="session", owner_id="t1")))
