"""What langgraph.json names: the agent for authenticated users, and where its memory and its threads are."""

from everthread.graphs.server import authenticated_agent, checkpointer, store

__all__ = ["authenticated_agent", "checkpointer", "store"]
