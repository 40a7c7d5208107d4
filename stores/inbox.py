"""Inputs that wait for their thread: what the inbox promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from everthread.stores.identity import Identity

__all__ = ["Inbox"]


class Inbox(Protocol):
    """Inputs that were admitted and are not yet part of a thread; they survive a crash (R34)."""

    def admit(
        self,
        identity: Identity,
        thread_id: str,
        message_id: str,
        text: str,
        *,
        delivery: Literal["queue", "steer"] = "queue",
    ) -> bool:
        """Keep an input; False when this message id was admitted before, promoted or not. Binds the thread.
        AccessDenied if the thread is another user's, UsageError for another delivery."""

    def pending(self, identity: Identity, thread_id: str, *, steers_only: bool = False) -> list[tuple[str, str]]:
        """(message id, text) of what waits: every steer in the order of admission, else the oldest queued one alone;
        with `steers_only` no queued one (S19). AccessDenied if the thread is another user's."""

    def promote(self, identity: Identity, thread_id: str, message_ids: Sequence[str]) -> None:
        """Mark inputs as part of the thread; their text is dropped here. Ids that do not wait are passed over, so that
        a node may run again. AccessDenied if the thread is another user's."""
