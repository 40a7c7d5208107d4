"""Everything said, as it was said: a thread as it is listed, and what its transcript promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import AwareDatetime

from everthread.stores.identity import Frozen, Identity
from everthread.stores.record import Evidence

__all__ = ["ThreadInfo", "Transcripts"]


class ThreadInfo(Frozen):
    """One thread, as `everthread threads` lists it."""

    thread_id: str
    """Its id."""
    name: str | None
    """The name it was given, when it has one."""
    messages: int
    """How many messages the transcript holds."""
    first_at: AwareDatetime | None
    """Time of the oldest message."""
    last_at: AwareDatetime | None
    """Time of the newest message."""
    memory: Literal["on", "read", "off"] = "on"
    """Whether this thread reads and writes memory (R288)."""
    memory_because: str | None = None
    """Why, when it was not the user's own choice."""


class Transcripts(Protocol):
    """Everything said, as it was said: the raw evidence across threads. Append only, idempotent by message id.

    A thread that nobody has used yet reads as empty. One of another user is refused, in the same words whichever user
    or tenant that is.
    """

    def bind(self, identity: Identity, thread_id: str, *, name: str | None = None) -> None:
        """Make the thread this identity's at first use; AccessDenied if it is another user's (R23)."""

    def append(self, identity: Identity, evidence: Sequence[Evidence]) -> int:
        """Add what is new, in this order, and return how many were; binds the threads. All or nothing. A message that
        was erased is not added again. When the embedder fails, the messages are kept and found by keywords, and a job
        embeds them later.

        Raises AccessDenied when one of the threads is another user's, or memory is not `on` for it or for the user, so
        that no transcript is kept (R288, R289); UsageError when a payload is not plain JSON.
        """

    def read(
        self,
        identity: Identity,
        thread_id: str,
        *,
        ids: Sequence[str] | set[str] | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[Evidence]:
        """The thread's messages in the order they were appended: all, or the first `limit` after the message `after`;
        with `ids` those of these alone, however long the thread is. Raises AccessDenied if the thread is another
        user's, UsageError if it has never had a message `after`."""

    def threads(self, identity: Identity) -> list[ThreadInfo]:
        """This user's threads, the most recent first; one that was erased is listed again when it is used again."""

    def set_memory(
        self, identity: Identity, thread_id: str, memory: Literal["on", "read", "off"], *, because: str | None = None
    ) -> None:
        """Choose whether this thread reads and writes memory, only reads it, or neither (R288); binds the thread.
        `because` says why, without a word of what was said, when it is not the user who chooses."""

    def memory_of(self, identity: Identity, thread_id: str) -> Literal["on", "read", "off"]:
        """What was chosen for this thread; `on` when nothing was. AccessDenied if it is another user's."""

    def erase(self, identity: Identity, thread_id: str, *, reason: str) -> int:
        """Erase the thread's transcript and its index, and its artifacts, tasks and waiting inputs; returns how many
        messages are gone. The thread stays bound to its user, and what was erased is not appended again."""

    def erase_thread(self, identity: Identity, thread_id: str, *, reason: str) -> dict[str, int]:
        """The same in one transaction, and how many of each kind are gone: evidence, index, artifacts, tasks, inbox.
        The threads of its sub-agents, and of theirs, go with it. AccessDenied if it is another user's."""

    def erase_messages(self, identity: Identity, thread_id: str, message_ids: Sequence[str]) -> int:
        """Erase these messages, whole, and their index rows; returns how many are gone. They are not appended again.
        AccessDenied if the thread is another user's."""
