"""Texts that checkpoints name by the hash of their content: what one is, and what a keeper of them promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import AwareDatetime

from everthread.stores.identity import Frozen, Identity

__all__ = ["Artifact", "ArtifactKind", "Artifacts"]


ArtifactKind = Literal["summary", "coverage", "task_state", "instructions", "tool_result", "original", "answered"]
"""What a kept text is. `coverage` says which messages a summary stands for, `answered` that a sub-agent was given a
person's answer, and not which."""


class Artifact(Frozen):
    """A text kept by the hash of its content: a summary, an instruction baseline, an evicted tool result."""

    id: str
    """`sha256:...` of the text: the same text has the same id."""
    kind: ArtifactKind
    """What it is."""
    text: str
    """The text, whole."""
    thread_id: str | None
    """The thread it was made in."""
    created_at: AwareDatetime
    """When it was first put."""


class Artifacts(Protocol):
    """Texts by content hash, so that checkpoints hold ids instead of texts."""

    def put(
        self,
        identity: Identity,
        kind: ArtifactKind,
        text: str,
        *,
        thread_id: str | None = None,
    ) -> str:
        """Keep `text` and return its id; the same text again returns the same id and writes nothing. With a `thread_id`
        it goes when that thread is erased, unless it was put in another one, or in none, as well. AccessDenied if the
        thread is another user's, UsageError for another kind."""

    def get(self, identity: Identity, artifact_id: str) -> Artifact | None:
        """The artifact, or None when it does not exist for this tenant and user. Its `thread_id` is the first thread
        that it was put in and that still stands."""

    def of_thread(
        self, identity: Identity, thread_id: str, *, kinds: Sequence[ArtifactKind] | None = None
    ) -> list[Artifact]:
        """What was put in a thread, of these kinds or of any, the oldest first; AccessDenied if the thread is another
        user's."""

    def erase(self, identity: Identity, artifact_ids: Sequence[str]) -> int:
        """Erase these artifacts of this user, in whatever threads they were put; returns how many are gone."""
