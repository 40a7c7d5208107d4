"""A store's connections belong to the process that opened it: a fork of it would write into the same ones."""

from __future__ import annotations

import os

from everthread.errors import UsageError

__all__ = ["Origin"]


class Origin:
    """The process that opened a store."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether it is this one."""
        return os.getpid() == self._process

    def check(self, place: str) -> None:
        """UsageError in a fork of it, where answers would reach whoever reads first."""
        if not self.is_here:
            raise UsageError(f"{place} was opened before this process was forked; open it again here")
