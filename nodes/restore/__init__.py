"""First step of a turn: whose thread is this, and what happened since it was last seen?"""

from everthread.nodes.restore.instructions import ProjectInstructions
from everthread.nodes.restore.node import Restore

__all__ = ["ProjectInstructions", "Restore"]
