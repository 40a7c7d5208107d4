"""An export as a document for a person: Markdown in which everything has its id, its source and its date.

What was said is data here: no text of it can become a heading, a link, a picture or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from everthread.stores.display import told
from everthread.stores.portable import USAGE, WRITTEN, Entry, plain
from everthread.stores.record import Provenance, Record

__all__ = ["document", "inert"]

MARKS = re.compile(r"([\\`*\[\]<>&|~$#!@]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.)")
"""What means something to Markdown within a line, and what makes an address into a link."""
OPENING = re.compile(r"^(\s*)([-+=]|\d+[.)])")
"""What means something at the beginning of one."""
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Control characters, marks of direction, what has no width, and half a surrogate pair."""
SHOWN = {
    "id", "revision", "statement", "content_type", "scope", "recorded_at", "ended_at", "provenance",
    "confirmed_by", "write_reason", "authority", "status", "relations", *WRITTEN,
}  # fmt: skip
"""Fields that a line says in its own words; the others follow it as they are."""
OVER = ("superseded", "expired", "archived", "rejected")
TITLES = {
    "Preferences": "What is preferred",
    "Decisions": "What was decided, and why",
    "Facts": "What is known, by subject",
    "Episodes": "What happened",
    "Procedures": "How things are done",
    "Summaries": "Summaries",
    "Waiting": "What waits for a review",
    "History": "What was, and holds no longer",
}
"""The sections of records, in the order of the document."""


def inert(text: str) -> str:
    """Text as one line of Markdown that shows it and does nothing; ends of lines become "⏎"."""
    line = " ⏎ ".join(part.strip() for part in text.splitlines() if part.strip())
    line = MARKS.sub(r"\\\1", UNSEEN.sub("\ufffd", line.replace("\t", " ")))
    return OPENING.sub(lambda found: f"{found[1]}{found[2][:-1]}\\{found[2][-1]}", line)


def document(header: Entry, read: Callable[..., Iterable[Entry]], log: Iterable[Entry]) -> Iterator[str]:
    """The document, line by line. `read` gives the entries of the types it is asked for, as often as it is called; the
    records are held in memory, everything else is written as it is read."""
    yield from _head(header)
    yield from _records(read("record"))
    yield from _section("Tasks", read("task"), _task)
    yield from _sources(read("thread", "evidence", "erased"))
    yield from _section("What else is kept", read(*OTHERS), lambda entry: OTHERS[entry["type"]](entry))
    yield from _section("What was done with it", read("receipt"), _receipt)
    yield from _section("The log", log, _logged)


def _head(header: Entry) -> Iterator[str]:
    scope = f", only the scope {_scope(header['scope'])}" if header["scope"] else ""
    counts = ", ".join(f"{count} × {inert(name)}" for name, count in header["counts"].items()) or "nothing"
    yield f"# What is remembered of {inert(header['user'])}\n\n"
    yield f"Tenant {inert(header['tenant'])}{scope}. Exported by {inert(header['by'])} on {_day(header['at'])}"
    yield f" as `{header['id']}`: {counts}.\n\n"
    erased = header["erased"]
    if any(erased.values()):
        yield f"Erased before: {erased['records']} records and {erased['messages']} messages. "
        yield "What they said is kept nowhere.\n\n"
    if header["left_out"]:
        left = ", ".join(f"{count} in {inert(scope)}" for scope, count in header["left_out"].items())
        yield f"Not in here, although {inert(header['user'])} wrote it: {left}. An export by a member of that scope, "
        yield "or by an admin, has it.\n\n"


# ------------------------------------------------------------------------------------------------------------ records


def _records(entries: Iterable[Entry]) -> Iterator[str]:
    found: dict[str, list[tuple[str, str, str]]] = {name: [] for name in TITLES}
    for entry in entries:
        newest = entry["revisions"][-1]
        subject = newest["subject"] or "" if _section_of(newest) == "Facts" else ""
        found[_section_of(newest)].append((subject, entry["revisions"][0]["recorded_at"], _told_record(entry)))
    for name, title in TITLES.items():
        if found[name]:
            yield f"## {title}\n\n"
        last = ""
        for subject, _, lines in sorted(found[name]):
            if subject != last:
                yield f"\n### About {inert(subject)}\n\n"
                last = subject
            yield lines
        if found[name]:
            yield "\n"


def _section_of(record: Mapping[str, Any]) -> str:
    if record["status"] == "pending":
        return "Waiting"
    if record["status"] in OVER:
        return "History"
    if "decision" in record["write_reason"]:
        return "Decisions"
    kinds = {"preference": "Preferences", "episodic": "Episodes", "procedural": "Procedures", "summary": "Summaries"}
    return kinds.get(record["content_type"], "Facts")


def _told_record(entry: Entry) -> str:
    """The line of a record, what else is known of it below, then its earlier revisions."""
    *earlier, newest = entry["revisions"]
    ended = f", ended {_day(newest['ended_at'])}" if newest["ended_at"] else ""
    lines = [
        f"- **{inert(newest['statement'])}** (`{entry['id']}`, {newest['content_type']} of {_scope(newest['scope'])}, "
        f"{newest['status']}{ended}, {newest['authority']})"
    ]
    lines.append(f"  - from {_source(newest['provenance'])}; kept because: {inert(newest['write_reason'])}")
    lines += [f"  - confirmed by {_source(source)}" for source in newest["confirmed_by"]]
    for edge in newest["relations"]:
        lines.append(f"  - {edge['kind']} `{_code(edge['target'])}`: {inert(edge['reason'])}")
    used = {name: entry[name] for name in sorted(USAGE) if entry[name]}
    if more := told(_beside(newest) | used):
        lines.append(f"  - {inert(more)}")
    for each in (*earlier, newest) if earlier else ():
        lines.append(
            f"  - revision {each['revision']}, {_day(each['recorded_at'])}, by {inert(each['actor'])}, "
            f"{each['status']}: {inert(each['statement'])} (because: {inert(each['change_reason'])}; "
            f"receipt `{_code(each['receipt'])}`)"
        )
    if not earlier:
        lines.append(
            f"  - recorded {_day(newest['recorded_at'])} by {inert(newest['actor'])} (because: "
            f"{inert(newest['change_reason'])}; receipt `{_code(newest['receipt'])}`)"
        )
    return "".join(f"{line}\n" for line in lines)


def _beside(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record says beside what its line shows, without what it says by saying nothing."""
    return {name: value for name, value in record.items() if name not in SHOWN and value != DEFAULTS.get(name)}


def _defaults() -> dict[str, Any]:
    fields = Record.model_fields
    return {name: plain(field.default) for name, field in fields.items() if not field.is_required()}


DEFAULTS = _defaults()


def _source(source: Mapping[str, Any]) -> str:
    """Who said it where and when: `user ana, thread t1 (m1), 2026-03-04 09:00`, and the rest of it."""
    parts = [f"{source['source']} {inert(source['actor'] or '')}".strip()]
    if source["thread_id"]:
        ids = ", ".join(f"`{_code(id)}`" for id in source["message_ids"])
        parts.append(f"thread `{_code(source['thread_id'])}`" + (f" ({ids})" if ids else ""))
    if source["artifact"]:
        revision = f" at {source['artifact_revision']}" if source["artifact_revision"] else ""
        parts.append(inert(f"{source['artifact']}{revision}"))
    parts += [_day(source["observed_at"]), inert(f"found by {source['extracted_by']}")]
    rest = {name: value for name, value in source.items() if name not in Provenance.model_fields or name == "authority"}
    return ", ".join([*parts, *([inert(told(rest))] if told(rest) else [])])


def _scope(scope: Mapping[str, Any]) -> str:
    within = told(scope["within"])
    return inert(f"{scope['owner']}:{scope['owner_id']}" + (f", only in {within}" if within else ""))


# ------------------------------------------------------------------------------------------------------------- others


def _section(title: str, entries: Iterable[Entry], line: Callable[[Entry], str]) -> Iterator[str]:
    """A section of a line each; nothing when there are none."""
    first = True
    for entry in entries:
        if first:
            yield f"## {title}\n\n"
        first = False
        yield line(entry)
    if not first:
        yield "\n"


def _task(task: Entry) -> str:
    due = f", due {_day(task['due_at'])}" if task["due_at"] else ""
    where = f", thread `{_code(task['thread_id'])}`" if task["thread_id"] else ""
    key = f", key {inert(task['key'])}" if task["key"] else ""
    result = f": {inert(task['result'])}" if task["result"] else ""
    made = f"`{_code(task['id'])}`, made {_day(task['created_at'])}{due}{where}{key}"
    waits = ", after " + " ".join(f"`{_code(id)}`" for id in task["after"]) if task["after"] else ""
    return f"- {inert(task['text'])} ({made}{waits}) **{task['status']}**{result}\n"


def _sources(entries: Iterable[Entry]) -> Iterator[str]:
    """The threads, each with all that was said in it."""
    threads: dict[str, Entry] = {}
    last: str | None = None
    for entry in entries:
        if entry["type"] == "thread":
            threads[entry["id"]] = entry
        else:
            if last is None:
                yield "## What was said\n"
            if entry["thread_id"] != last:
                last = str(entry["thread_id"])
                yield f"\n### Thread `{_code(last)}`\n\n{_told_thread(threads.pop(last))}\n"
            yield _said(entry)
    if last is None and threads:
        yield "## What was said\n"
    for id, thread in threads.items():
        yield f"\n### Thread `{_code(id)}`\n\n{_told_thread(thread)}"
    if last is not None or threads:
        yield "\n"


def _told_thread(thread: Entry) -> str:
    name = f"{inert(thread['name'])}; " if thread["name"] else ""
    because = f" ({inert(thread['memory_because'])})" if thread["memory_because"] else ""
    gone = (
        f"; erased {_day(thread['erased_at'])}: {inert(thread['erased_because'] or '')}" if thread["erased_at"] else ""
    )
    return f"{name}since {_day(thread['bound_at'])}; memory is {thread['memory']}{because}{gone}\n"


def _said(entry: Entry) -> str:
    if entry["type"] == "erased":
        return f"- (`{_code(entry['message_id'])}` was erased on {_day(entry['at'])})\n"
    who = f"{entry['role']} {inert(entry['speaker'] or '')}".strip()
    source = f", from {entry['source']}" if entry["source"] != entry["role"] else ""
    line = f"- `{_code(entry['message_id'])}` {_day(entry['at'])} **{who}**{source}: {inert(entry['text'])}\n"
    more = told(_beyond(entry))
    return line + (f"  - {inert(f'with: {more}')}\n" if more else "")


def _beyond(entry: Entry) -> Any:
    """What the original message says beyond its text and its id: tool calls, parts, marks."""
    whole = entry["payload"]
    data = whole.get("data") if isinstance(whole, dict) else None
    if not isinstance(data, dict) or data.get("content") != entry["text"]:
        return whole
    return {name: value for name, value in data.items() if name not in ("content", "id", "type") and told(value)}


OTHERS: dict[str, Callable[[Entry], str]] = {
    "consent": lambda entry: f"- Consent to memory: **{entry['memory']}**, since {_day(entry['at'])}\n",
    "artifact": lambda entry: (
        f"- {inert(entry['kind'])} `{entry['id']}` of {_day(entry['created_at'])}, in "
        f"{', '.join(f'thread `{_code(id)}`' if id else 'no thread' for id in entry['threads'])}: "
        f"{inert(entry['text'])}\n"
    ),
    "input": lambda entry: (
        f"- an input (`{_code(entry['message_id'])}`) of thread `{_code(entry['thread_id'])}`, {entry['delivery']}: "
        f"{inert(entry['text']) if entry['text'] is not None else 'it is in the thread'}\n"
    ),
    "job": lambda entry: (
        f"- a job (`{_code(entry['id'])}`), {inert(entry['kind'])}, {entry['status']}: "
        f"{inert(told(entry['payload']))}\n"
    ),
    "item": lambda entry: (
        f"- an item {inert('/'.join((*entry['namespace'], entry['key'])))} of {_day(entry['updated_at'])}: "
        f"{inert(told(entry['value']))}\n"
    ),
}


def _receipt(entry: Entry) -> str:
    where = f", thread `{_code(entry['thread_id'])}`" if entry["thread_id"] else ""
    lines = [f"- `{_code(entry['id'])}`, {_day(entry['at'])}{where}, key {inert(entry['key'])}"]
    for decision in entry["decisions"]:
        ids = " ".join(f"`{_code(decision[name])}`" for name in ("record_id", "target") if decision[name])
        rule, reason = inert(decision["rule"]), inert(decision["reason"])
        lines.append(f"  - {decision['outcome']} {ids} by the rule {rule}: {reason}".replace("  by", " by"))
    return "".join(f"{line}\n" for line in lines)


def _logged(entry: Entry) -> str:
    done = "; ".join(filter(None, (entry["action"], inert(told(entry["detail"])))))
    return f"- {entry['seq']}, {_day(entry['at'])}, {inert(entry['user'])}: {done}\n"


def _day(text: str) -> str:
    """A time for people, with its offset: `2026-03-04 09:30 +08:00`."""
    moment = datetime.fromisoformat(text)
    return f"{moment:%Y-%m-%d %H:%M} {text[-6:]}"


def _code(text: str | None) -> str:
    """An id between backticks; a backtick in it would end them."""
    return UNSEEN.sub("\ufffd", " ".join((text or "").split())).replace("`", "'")
