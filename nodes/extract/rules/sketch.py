"""What a rule found in a sentence, before it is tied to a message."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from everthread.stores.identity import Owner

__all__ = ["Sketch"]


class Sketch(NamedTuple):
    """A candidate in the making."""

    statement: str
    """Self-contained, in the speaker's language."""
    reason: str
    """Why it is worth keeping."""
    content_type: str = "fact"
    kind: str = "semantic"
    subject: str | None = None
    predicate: str | None = None
    value: str | None = None
    owner: Owner = "user"
    reach: str = "lasting"
    concerns: str | None = None
    due_at: datetime | None = None
    corrects: bool = False
    retracts: bool = False
    replaces: str | None = None
    """The old value that the speaker names while correcting it."""

    def fields(self) -> dict[str, Any]:
        """The fields that a candidate shares with it."""
        fields = self._asdict()
        fields.pop("replaces")
        return {"write_reason": fields.pop("reason"), **fields}
