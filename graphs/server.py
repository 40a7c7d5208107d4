"""What `langgraph.json` names: the agent without saver or store, and our store and checkpointer for LangGraph's server.

The home is the folder in EVERTHREAD_HOME, else `~/.everthread`; the model is EVERTHREAD_MODEL (`provider:name`), else
the offline one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from everthread.graphs.agent import create_memory_agent
from everthread.nodes.models import load_model
from everthread.stores import MemoryStore, open_checkpointer, open_store

__all__ = ["agent", "checkpointer", "store"]


def agent() -> Any:
    """The agent graph as the server wants it: compiled, with neither saver nor store; the server adds them."""
    return create_memory_agent(_model()).compile()


@asynccontextmanager
async def store() -> AsyncIterator[MemoryStore]:
    """Long-term memory of the home, open while the server runs."""
    async with open_store(_url()) as opened:
        yield opened


@asynccontextmanager
async def checkpointer() -> AsyncIterator[Any]:
    """The threads of the home, open while the server runs."""
    async with open_checkpointer(_url()) as opened:
        yield opened


def _url() -> str:
    return f"sqlite:{os.environ.get('EVERTHREAD_HOME') or Path.home() / '.everthread'}"


def _model() -> BaseChatModel | None:
    spec = os.environ.get("EVERTHREAD_MODEL")
    return load_model(spec) if spec else None
