"""The step that answers: assemble the request, call the model, run its tools."""

from everthread.nodes.reason.chain import memory_block, note_answer
from everthread.nodes.reason.citing import Cited, unmarked
from everthread.nodes.reason.memory_tools import memory_tools
from everthread.nodes.reason.node import Reason, calls_of, calls_tools, overflowed
from everthread.nodes.reason.offline import OfflineModel
from everthread.nodes.reason.providers import ContextProvider, Provided
from everthread.nodes.reason.request import request
from everthread.nodes.reason.tools import artifact_read, tool_node

__all__ = [
    "Cited",
    "ContextProvider",
    "OfflineModel",
    "Provided",
    "Reason",
    "artifact_read",
    "calls_of",
    "calls_tools",
    "memory_block",
    "memory_tools",
    "note_answer",
    "overflowed",
    "request",
    "tool_node",
    "unmarked",
]
