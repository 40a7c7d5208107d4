"""What stops a stale writer: a run may go on writing to a thread only while nobody else has.

Loading the latest checkpoint marks the run: the mark, in the loaded tuple's config, counts the writes that the thread
had seen. LangGraph hands it back with every write, and a write passes when there was none since, or when the last one
was the run's own. So of two runs that loaded the same checkpoint, the first to write anything wins, and the other gets
a Conflict before any of its words are in the thread. (The checkpoint's id alone does not tell: the writes of both would
lie on one checkpoint, and a DeltaChannel would replay the loser's.) A load by checkpoint id is a fork and passes. So
does whoever calls the saver without a graph, such as a tool that moves threads: it says itself where it writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from langgraph._internal._constants import CONFIG_KEY_REPLAY_STATE, CONFIG_KEY_RUNTIME

from everthread.errors import Conflict, StoreError

SCHEMA = """
CREATE TABLE IF NOT EXISTS writers (
    thread_id     TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    run           TEXT NOT NULL,      -- who wrote last
    writes        INTEGER NOT NULL,   -- how often anyone has written
    PRIMARY KEY (thread_id, checkpoint_ns)
) WITHOUT ROWID
"""

MARK = "__everthread_mark"
"""In `configurable`. LangGraph never stores keys that begin with two underscores."""

FIRST = "first"
"""The run that began the thread: there was nothing to load, so it has no mark. There is only one."""


class Last(NamedTuple):
    """What was written last to a thread's namespace."""

    run: str = ""
    writes: int = 0


class Writer(NamedTuple):
    """Who writes, as its config tells."""

    kind: Literal["run", "first", "fork"]
    run: str = ""
    seen: int = 0
    """How many writes there had been when it loaded the head."""


FORK = Writer("fork")


def mark(last: Last, namespace: str) -> str:
    """A new run's mark; `last` is what was written last when it loaded the head."""
    return f"{uuid4().hex}/{last.writes}/{namespace}"


def writer_of(config: Mapping[str, Any]) -> Writer:
    """Who is writing with this config."""
    configurable = config["configurable"]
    begins = not configurable.get("checkpoint_id")
    if MARK in configurable:
        if configurable[MARK] is None:
            return FORK
        run, seen, namespace = configurable[MARK].split("/", 2)
        # A subgraph inherits its host's config; what the host loaded is not what it loaded.
        if namespace == configurable.get("checkpoint_ns", ""):
            # A marked run has loaded a checkpoint. Without a parent, it copies the thread's first one.
            return FORK if begins else Writer("run", run, int(seen))
    if configurable.get(CONFIG_KEY_REPLAY_STATE):  # a subgraph of a replay
        return FORK
    # Only a loop carries a runtime; anyone else who names a parent checkpoint chose it. A graph's config is complete,
    # even where it updates a state without a loop; whoever writes with a bare one has loaded nothing that could be old.
    of_graph = CONFIG_KEY_RUNTIME in configurable or (begins and "recursion_limit" in config)
    return Writer("first", FIRST) if of_graph else FORK


def passes(writer: Writer, last: Last, *, begins_again: bool = False) -> bool:
    """Whether `writer` may write after `last`.

    `begins_again`: it writes a first checkpoint, and the thread has one.
    """
    if writer.kind == "fork":
        return True
    if writer.kind == "first":
        return last.run in ("", FIRST) and not begins_again
    return last.run == writer.run or last.writes == writer.seen


def check(
    thread_id: str, writer: Writer, last: Last, *, head: str | None, new: str | None, begins_again: bool = False
) -> None:
    """Raise Conflict when `writer` may not write after `last`, to a thread whose latest checkpoint is `head`.

    `new`: the id of the checkpoint that it saves, if it saves one; StoreError when its clock is behind.
    """
    if not passes(writer, last, begins_again=begins_again):
        raise overtaken(thread_id, head, f"was continued by another run, up to checkpoint {head}")
    if new is not None and head is not None and new < head:
        # Ids are times. Stored, this checkpoint would be older than the head, and never seen again.
        raise StoreError(
            f"thread {thread_id!r}: this machine's clock is behind the thread's head checkpoint {head}; "
            "set the clock, then run the input again"
        )


def overtaken(thread_id: str, head: str | None, why: str) -> Conflict:
    """What a run gets that may no longer write."""
    return Conflict(
        f"thread {thread_id!r} {why}; nothing more of this run was stored: run its input again, or compile with "
        "everthread.graphs.gate so that runs wait",
        winner=head,
        thread_id=thread_id,
    )
