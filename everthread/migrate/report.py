"""What a migration did, or would do."""

from __future__ import annotations

from everthread.stores.identity import Frozen

__all__ = ["MigrationReport", "RefusedCount"]


class RefusedCount(Frozen):
    """What one rule refused."""

    rule: str
    """Name of the rule."""
    reason: str
    """Why, in a sentence that holds no word of it."""
    count: int
    """How many items."""


class MigrationReport(Frozen):
    """What became of the items of a source; the numbers add up to `read`."""

    layout: str
    """How the source is laid out."""
    dry_run: bool
    """Whether nothing was written. What was erased here before is then not known: it is refused when it is written."""
    read: int
    """Items in the source."""
    created: int
    """New records in use."""
    pending: int
    """New records that wait for review."""
    revised: int
    """Records of an earlier import whose text has changed in the source."""
    confirmed: int
    """Items that say what was known from elsewhere: one more source of it."""
    already_there: int
    """Items that an earlier import brought, whatever became of them since."""
    refused: tuple[RefusedCount, ...]
    """What a rule refused, the most frequent first."""
    skipped: dict[str, int]
    """What cannot be imported, by reason, the most frequent first."""
    unmapped: dict[str, int]
    """Namespaces that no map fits, with the number of their items."""
    others: dict[str, int]
    """Scopes that are not the identity's, such as another user's, with the number of their items."""
    examples: tuple[str, ...]
    """Of a dry run: some statements that would be written. All of them passed the rules."""
