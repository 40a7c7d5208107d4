"""Last step of a turn, when it is due: the background pass over long-term memory."""

from everthread.nodes.consolidate.handlers import job_handlers
from everthread.nodes.consolidate.node import Consolidate, Expire, Merge

__all__ = ["Consolidate", "Expire", "Merge", "job_handlers"]
