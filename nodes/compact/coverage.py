"""Which messages a summary stands for, and which summary stands for a message (R59, S17)."""

from __future__ import annotations

from pydantic import AwareDatetime, ValidationError

from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Frozen, Identity

__all__ = ["Coverage", "ThreadSummary", "summaries_of"]


class Coverage(Frozen):
    """What a summary adds to the one that it was made from. Kept beside it, as an artifact of the thread: each message
    is named once, however often a thread is compacted."""

    summary: str
    """Artifact id of the summary."""
    generator: str
    """What wrote it, with its version."""
    messages: tuple[str, ...]
    """Ids of the messages that it stands for and no earlier one does, in order."""
    previous: str | None = None
    """Artifact id of the coverage of the summary that it was made from; it stands for those messages as well."""


class ThreadSummary(Frozen):
    """A summary of a thread's older part."""

    id: str
    """Artifact id of the text: `window.summary` while it stands in the requests."""
    text: str
    """What it says."""
    generator: str
    """What wrote it, with its version."""
    made_at: AwareDatetime
    """When."""
    messages: tuple[str, ...]
    """Ids of all messages that it stands for, in order; `store.transcripts.read` has them as they were said."""


def summaries_of(
    store: MemoryStore, identity: Identity, thread_id: str, *, message_id: str | None = None
) -> list[ThreadSummary]:
    """The summaries that a thread's compactions made, the oldest first; with a `message_id` those that stand for this
    message, none while it was always shown verbatim. AccessDenied when the thread is another user's."""
    kept = {each.id: each for each in store.artifacts.of_thread(identity, thread_id, kinds=("summary", "coverage"))}
    found = []
    for each in kept.values():
        covers = _read(each.text) if each.kind == "coverage" else None
        if covers is None or covers.summary not in kept:  # erased with a message that it stood for
            continue
        messages = covers.messages
        before = covers.previous
        while before in kept and (earlier := _read(kept[before].text)):
            messages, before = (*earlier.messages, *messages), earlier.previous
        if message_id in (None, *messages):
            found.append(
                ThreadSummary(
                    id=covers.summary,
                    text=kept[covers.summary].text,
                    generator=covers.generator,
                    made_at=each.created_at,
                    messages=messages,
                )
            )
    return found


def _read(text: str) -> Coverage | None:
    try:
        return Coverage.model_validate_json(text)
    except ValidationError:  # written by a version that had other fields
        return None
