"""Whose fault it is, as a type.

Anything else that is raised (a bug, a full memory, KeyboardInterrupt) passes through untouched.
"""

from collections.abc import Sequence

__all__ = ["AccessDenied", "Conflict", "EverthreadError", "ModelReplyError", "StoreError", "UsageError"]


class EverthreadError(Exception):
    """Base of everything that everthread raises on purpose. The message names the thing and the remedy."""


class UsageError(EverthreadError, ValueError):
    """The caller asked for something that cannot be: the message says what to write instead."""


class AccessDenied(EverthreadError, PermissionError):
    """This identity may not do this. Nothing was read and nothing was written (R294: fail closed)."""


class StoreError(EverthreadError):
    """The backend failed (disk full, read-only, not our file). The driver's error is the `__cause__`."""


class ModelReplyError(EverthreadError):
    """A model answered, but not in a form that can be used. The input is kept for another try."""


class Conflict(EverthreadError):
    """Another writer was first. Nothing of ours was written."""

    def __init__(
        self,
        message: str,
        *,
        winner: int | str | None = None,
        thread_id: str | None = None,
        inputs: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.winner = winner
        """What the other writer left behind: a record's revision, or a thread's checkpoint id."""
        self.thread_id = thread_id
        """The thread that another run continued."""
        self.inputs = tuple(inputs)
        """Ids of the messages of this run's input, which wait in the inbox: the thread's next run answers them."""
