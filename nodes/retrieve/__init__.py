"""Second step of a turn: what does long-term memory know about this request?"""

from everthread.nodes.retrieve.checks import Verifier
from everthread.nodes.retrieve.node import Retrieve

__all__ = ["Retrieve", "Verifier"]
