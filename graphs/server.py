"""What `langgraph.json` names: the agent without saver or store, and our store and checkpointer for LangGraph's server.

The home is the folder in EVERTHREAD_HOME, else `~/.everthread`; the model is EVERTHREAD_MODEL (`provider:name`), else
the offline one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph_sdk.runtime import ServerRuntime

from everthread.errors import AccessDenied
from everthread.graphs.agent import create_memory_agent
from everthread.graphs.gate import gate
from everthread.nodes.models import load_model
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.identity import Identity, MemoryContext, identity_from, memory_context

__all__ = ["USER_KEY", "agent", "authenticated_agent", "checkpointer", "context_for", "store"]

USER_KEY = "everthread"
"""Where a user of LangGraph's `Auth` carries its identity: `{"identity": "...", "everthread": {"tenant": ...}}`."""


def agent(runtime: ServerRuntime[Any]) -> Any:
    """The agent graph as the server wants it: compiled, with neither saver nor store; the server adds them.

    On whose behalf a run works is said by its context, so this is for a server that only a trusted host reaches. Where
    the server authenticates users, it is theirs all the same: AccessDenied for a context that names somebody else.
    """
    return authenticated_agent(runtime) if _authenticated(runtime.user) else create_memory_agent(_model()).compile()


def authenticated_agent(runtime: ServerRuntime[Any]) -> Any:
    """The same for a server with `Auth`: every run works for the user that the server authenticated, and without one
    AccessDenied comes before anything is read or written (R294). See docs/server.md."""

    def whose(context: Any) -> MemoryContext:
        return context_for(runtime.user, context)

    return gate(create_memory_agent(_model()).compile(), whose=whose)


def context_for(user: Any, context: Any) -> MemoryContext:
    """The context of a run that an authenticated user asked for with `context`, which may be empty.

    The identity is the user's. A context may choose `memory` and `as_of`; AccessDenied when it names another identity,
    when nobody was authenticated, and when the user carries no identity.
    """
    if not _authenticated(user):
        raise AccessDenied("the server authenticated nobody; name an Auth in langgraph.json, see docs/server.md")
    identity = _identity_of(user)
    if not context:
        return MemoryContext(identity=identity)
    asked = memory_context({"identity": identity, **context} if isinstance(context, Mapping) else context)
    named = asked.identity.model_dump(exclude_unset=True)
    differing = [name for name, value in named.items() if value != getattr(identity, name)]
    if differing:
        raise AccessDenied(
            f"the run's context names another {' and '.join(differing)} than the authenticated user has; leave the "
            "identity out of it"
        )
    return asked.model_copy(update={"identity": identity})


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


def _authenticated(user: Any) -> bool:
    """Whether this is somebody. A server without `Auth` has a user too, without a name."""
    return user is not None and bool(user.is_authenticated and user.identity)


def _identity_of(user: Any) -> Identity:
    """The identity that a user carries; AccessDenied when it has none, as Studio's own user."""
    try:
        carried = user[USER_KEY]
    except (KeyError, TypeError):  # no such field, or no fields at all
        carried = None
    if not isinstance(carried, Mapping):
        raise AccessDenied(
            f"the authenticated user has no memory identity; let your Auth return it under {USER_KEY!r}: "
            '{"identity": "...", "everthread": {"tenant": "...", "user": "..."}}'
        )
    return identity_from({"identity": carried})


def _url() -> str:
    return f"sqlite:{os.environ.get('EVERTHREAD_HOME') or Path.home() / '.everthread'}"


def _model() -> BaseChatModel | None:
    spec = os.environ.get("EVERTHREAD_MODEL")
    return load_model(spec) if spec else None
