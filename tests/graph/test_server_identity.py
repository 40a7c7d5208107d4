"""Whose a run is where LangGraph's server authenticates users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.memory import InMemoryStore
from langgraph_sdk.auth.types import StudioUser
from langgraph_sdk.runtime import ServerRuntime, _ReadRuntime

from everthread import Identity, MemoryContext
from everthread.errors import AccessDenied
from everthread.graphs.gate import unmirrored
from everthread.graphs.server import agent, authenticated_agent, context_for
from everthread.stores import open_checkpointer, open_store

ANA = {"tenant": "acme", "user": "ana", "project": "billing"}
NAMED_NOBODY = {"identity": "", "everthread": ANA}


class User(dict[str, Any]):
    """A user as the server hands it over: fields by name, some of them as attributes too."""

    is_authenticated = True

    @property
    def identity(self) -> str:
        return str(self["identity"])


def user(carried: object = ANA) -> User:
    return User(identity="u-1", everthread=carried)


def server_runtime(asking: Any) -> ServerRuntime[Any]:
    return _ReadRuntime(access_context="threads.read", user=asking, store=InMemoryStore())


@pytest.mark.parametrize(
    "context",
    [None, {}, {"identity": ANA}, {"identity": {"tenant": "acme", "user": "ana"}}, Identity.model_validate(ANA)],
)
def test_the_identity_is_the_authenticated_users_whether_the_context_names_it_or_not(context: object) -> None:
    assert context_for(user(), context) == MemoryContext(identity=Identity.model_validate(ANA))


def test_a_context_chooses_what_is_its_own_to_choose(ana: Identity) -> None:
    assert context_for(user(), {"memory": "read"}) == MemoryContext(identity=ana, memory="read")


@pytest.mark.parametrize(
    ("named", "differing"),
    [
        ({"tenant": "acme", "user": "ben"}, "user"),
        ({"tenant": "other", "user": "ana"}, "tenant"),
        ({"tenant": "acme", "user": "ana", "project": "payroll"}, "project"),
        ({"tenant": "acme", "user": "ana", "roles": ["admin"], "team": "core"}, "team and roles"),
    ],
)
def test_a_context_that_names_another_identity_is_refused(named: dict[str, Any], differing: str) -> None:
    for context in ({"identity": named}, Identity.model_validate(named)):
        with pytest.raises(AccessDenied, match=f"names another {differing} than"):
            context_for(user(), context)


@pytest.mark.parametrize(
    ("asking", "complaint"),
    [
        (None, "authenticated nobody"),
        (User(NAMED_NOBODY), "authenticated nobody"),
        (User(identity="u-1"), "has no memory identity"),
        (StudioUser("studio", is_authenticated=True), "has no memory identity"),
        (user("ana"), "has no memory identity"),
        (user({"tenant": "acme"}), "user: Field required"),
        (user({"tenant": "acme", "user": ""}), "user: must not be empty"),
    ],
)
def test_without_an_authenticated_identity_nobody_is_asking(asking: Any, complaint: str) -> None:
    for context in (None, {"identity": ANA}, Identity.model_validate(ANA)):
        with pytest.raises(AccessDenied, match=complaint):
            context_for(asking, context)


async def test_runs_and_updates_of_a_thread_are_its_own_users(tmp_path: Path) -> None:
    ben = user({"tenant": "acme", "user": "ben"})
    config: RunnableConfig = {"configurable": {"thread_id": "a"}}
    async with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:

        def served(asking: Any, make: Any = authenticated_agent) -> Any:
            return make(server_runtime(asking)).copy({"store": store, "checkpointer": saver})

        async def messages() -> list[AnyMessage]:
            kept: list[AnyMessage] = (await served(user()).aget_state(config)).values["messages"]
            return kept

        await served(user()).ainvoke({"messages": [("user", "I prefer tea over coffee.")]}, config)
        served(user()).update_state(config, {"messages": [("user", "One more thing.")]})
        before = await messages()
        assert [message.text for message in before[::2]] == ["I prefer tea over coffee.", "One more thing."]

        for asking, make in [(ben, authenticated_agent), (None, authenticated_agent), (ben, agent)]:
            other = served(asking, make)
            with pytest.raises(AccessDenied):
                await other.ainvoke({"messages": [("user", "Mine.")]}, config)
            with pytest.raises(AccessDenied):
                other.invoke({"messages": [("user", "Mine.")]}, config)
            with pytest.raises(AccessDenied):
                await other.aupdate_state(config, {"messages": [("user", "Mine.")]})
            with pytest.raises(AccessDenied):
                other.update_state(config, {"messages": [("user", "Mine.")]})
        assert await messages() == before


async def test_a_server_without_authentication_takes_the_context_and_one_with_it_does_not(
    tmp_path: Path, ben: Identity
) -> None:
    said: Any = {"messages": [("user", "I prefer tea over coffee.")]}
    config: RunnableConfig = {"configurable": {"thread_id": "a"}}
    async with open_store(f"sqlite:{tmp_path}") as store:
        given = {"store": store, "checkpointer": False}
        for nobody in (None, User(NAMED_NOBODY)):
            await agent(server_runtime(nobody)).copy(given).ainvoke(said, config, context=ben)
        with pytest.raises(AccessDenied, match="names another user"):
            await agent(server_runtime(user())).copy(given).ainvoke(said, config, context=ben)


def test_what_the_server_repeats_of_the_context_does_not_reach_the_checkpoints() -> None:
    context = {"identity": ANA, "memory": "read", "thread_id": "a"}
    config: RunnableConfig = {
        "configurable": {"identity": ANA, "memory": "on", "thread_id": "a"},
        "metadata": {"identity": ANA, "memory": "read", "run_id": "r"},
        "tags": ["identity"],
    }
    assert unmirrored(config, context) == {
        "configurable": {"memory": "on", "thread_id": "a"},
        "metadata": {"run_id": "r"},
        "tags": ["identity"],
    }
    assert unmirrored(config, MemoryContext.model_validate({"identity": ANA})) is config
    assert unmirrored(None, context) is None
