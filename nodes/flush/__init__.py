"""Before older messages leave the window: they are written down and learnt from, so nothing rests on a summary."""

from everthread.nodes.flush.node import Flush

__all__ = ["Flush"]
