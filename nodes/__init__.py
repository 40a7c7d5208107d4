"""One room per step of a turn, in the order of the turn. Each node runs in our graphs, in yours, or alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everthread.nodes.compact import Compact as Compact
    from everthread.nodes.compact import Track as Track
    from everthread.nodes.compact import resume_task as resume_task
    from everthread.nodes.compact import summaries_of as summaries_of
    from everthread.nodes.consolidate import Consolidate as Consolidate
    from everthread.nodes.consolidate import job_handlers as job_handlers
    from everthread.nodes.delegation import Report as Report
    from everthread.nodes.delegation import adelegate as adelegate
    from everthread.nodes.delegation import agent_jobs as agent_jobs
    from everthread.nodes.delegation import delegate as delegate
    from everthread.nodes.delegation import delegate_later as delegate_later
    from everthread.nodes.delegation import sub_thread as sub_thread
    from everthread.nodes.extract import Extract as Extract
    from everthread.nodes.extract.correction import archive as archive
    from everthread.nodes.extract.correction import correct as correct
    from everthread.nodes.extract.correction import unarchive as unarchive
    from everthread.nodes.extract.correction import unverified as unverified
    from everthread.nodes.extract.correction import verify as verify
    from everthread.nodes.extract.door import door as door
    from everthread.nodes.extract.promotion import promote as promote
    from everthread.nodes.extract.promotion import propose_policy as propose_policy
    from everthread.nodes.extract.review import review as review
    from everthread.nodes.extract.review import waiting as waiting
    from everthread.nodes.flush import Flush as Flush
    from everthread.nodes.node import as_agent as as_agent
    from everthread.nodes.node import identity_of as identity_of
    from everthread.nodes.node import runtime_for as runtime_for
    from everthread.nodes.reason import ContextProvider as ContextProvider
    from everthread.nodes.reason import Provided as Provided
    from everthread.nodes.reason import Reason as Reason
    from everthread.nodes.reason import memory_block as memory_block
    from everthread.nodes.reason import memory_tools as memory_tools
    from everthread.nodes.reason import note_answer as note_answer
    from everthread.nodes.reason import request as request
    from everthread.nodes.reason import unmarked as unmarked
    from everthread.nodes.restore import Restore as Restore
    from everthread.nodes.retrieve import Retrieve as Retrieve
    from everthread.nodes.state import MemoryState as MemoryState
    from everthread.nodes.state import Reference as Reference

_HOMES = {
    "Compact": "everthread.nodes.compact",
    "Consolidate": "everthread.nodes.consolidate",
    "ContextProvider": "everthread.nodes.reason",
    "Extract": "everthread.nodes.extract",
    "Flush": "everthread.nodes.flush",
    "MemoryState": "everthread.nodes.state",
    "Provided": "everthread.nodes.reason",
    "Reason": "everthread.nodes.reason",
    "Reference": "everthread.nodes.state",
    "Report": "everthread.nodes.delegation",
    "Restore": "everthread.nodes.restore",
    "Retrieve": "everthread.nodes.retrieve",
    "Track": "everthread.nodes.compact",
    "adelegate": "everthread.nodes.delegation",
    "agent_jobs": "everthread.nodes.delegation",
    "archive": "everthread.nodes.extract.correction",
    "as_agent": "everthread.nodes.node",
    "correct": "everthread.nodes.extract.correction",
    "delegate": "everthread.nodes.delegation",
    "delegate_later": "everthread.nodes.delegation",
    "door": "everthread.nodes.extract.door",
    "identity_of": "everthread.nodes.node",
    "job_handlers": "everthread.nodes.consolidate",
    "memory_block": "everthread.nodes.reason",
    "memory_tools": "everthread.nodes.reason",
    "note_answer": "everthread.nodes.reason",
    "promote": "everthread.nodes.extract.promotion",
    "propose_policy": "everthread.nodes.extract.promotion",
    "request": "everthread.nodes.reason",
    "resume_task": "everthread.nodes.compact",
    "review": "everthread.nodes.extract.review",
    "runtime_for": "everthread.nodes.node",
    "sub_thread": "everthread.nodes.delegation",
    "summaries_of": "everthread.nodes.compact",
    "unarchive": "everthread.nodes.extract.correction",
    "unmarked": "everthread.nodes.reason",
    "unverified": "everthread.nodes.extract.correction",
    "verify": "everthread.nodes.extract.correction",
    "waiting": "everthread.nodes.extract.review",
}
__all__ = [
    "Compact",
    "Consolidate",
    "ContextProvider",
    "Extract",
    "Flush",
    "MemoryState",
    "Provided",
    "Reason",
    "Reference",
    "Report",
    "Restore",
    "Retrieve",
    "Track",
    "adelegate",
    "agent_jobs",
    "archive",
    "as_agent",
    "correct",
    "delegate",
    "delegate_later",
    "door",
    "identity_of",
    "job_handlers",
    "memory_block",
    "memory_tools",
    "note_answer",
    "promote",
    "propose_policy",
    "request",
    "resume_task",
    "review",
    "runtime_for",
    "sub_thread",
    "summaries_of",
    "unarchive",
    "unmarked",
    "unverified",
    "verify",
    "waiting",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
