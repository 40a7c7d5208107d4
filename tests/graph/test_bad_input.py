"""What a host can do wrong with nodes, graphs and the middleware: an error when it is built where that can be told,
else at the first run, and always with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError
from support.models import FakeModel
from typing_extensions import TypedDict

from everthread import Identity, MemoryContext, MemoryState
from everthread.errors import AccessDenied, UsageError
from everthread.graphs import (
    MemoryMiddleware,
    create_consolidation_graph,
    create_memory_agent,
    create_recall_graph,
    create_remember_graph,
    gate,
)
from everthread.nodes import Consolidate, Extract, Retrieve
from everthread.stores import MemoryStore, open_store

Build = Callable[..., Any]
"""Makes a graph with what `compile` is given: store and checkpointer."""

THREAD: Any = {"configurable": {"thread_id": "t"}}
SAID: Any = {"messages": [HumanMessage("I prefer tea over coffee.")]}


class Own(TypedDict, total=False):
    """A host's own state."""

    messages: Annotated[list[AnyMessage], add_messages]
    recalled: list[Any]
    flushed_to: str


class Silent(TypedDict, total=False):
    """A host's state without messages."""

    question: str
    recalled: list[Any]
    flushed_to: str


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as store:
        yield store


def answer(state: Any) -> Any:
    return {"messages": [AIMessage("ok")]}


def row(schema: Any, **nodes: Any) -> Build:
    """A host's graph of these nodes in a row, without a gate."""
    graph = StateGraph(schema, context_schema=MemoryContext)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for before, after in zip([START, *nodes], [*nodes, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile


def gated(build: Build) -> Build:
    return lambda **options: gate(build(**options))


def recall() -> Any:
    return create_recall_graph().compile(checkpointer=False)


def remember() -> Any:
    return create_remember_graph().compile()


def agent(**options: Any) -> Any:
    return create_agent(FakeModel(), middleware=[MemoryMiddleware()], **options)


NODES = row(Own, retrieve=Retrieve(), answer=answer, extract=Extract())
GRAPHS = row(Own, recall=recall(), answer=answer, remember=remember())
PLAIN: dict[str, Build] = {"nodes": NODES, "graphs": GRAPHS, "middleware": agent}
"""As LangGraph compiles them."""
GATED: dict[str, Build] = {name: gated(build) for name, build in PLAIN.items()}
OURS: dict[str, Build] = {
    "agent": create_memory_agent().compile,
    "recall": create_recall_graph().compile,
    "remember": create_remember_graph().compile,
    "consolidation": create_consolidation_graph().compile,
}


def named(builds: dict[str, Build]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("build", builds.values(), ids=builds)


# --- no messages


@pytest.mark.parametrize("node", [recall(), remember()], ids=["recall", "remember"])
def test_a_memory_graph_in_a_host_without_messages_is_refused(node: Any, store: MemoryStore, ana: Identity) -> None:
    build = row(Silent, memory=node)
    with pytest.raises(UsageError, match=r"^node 'memory' reads messages, .* give it messages: Annotated"):
        gate(build())
    with pytest.raises(UsageError, match=r"^a memory graph found no messages in its host's state; derive the state"):
        build(store=store, checkpointer=InMemorySaver()).invoke({"question": "Which?"}, THREAD, context=ana)


def test_what_reads_no_messages_is_at_home_without_them(store: MemoryStore, ana: Identity) -> None:
    for node in (Consolidate(), create_consolidation_graph().compile()):
        host = gate(row(Silent, tidy=node)(store=store, checkpointer=InMemorySaver()))
        assert host.invoke({"question": "Which?"}, THREAD, context=ana) == {"question": "Which?"}


# --- a store of another kind


@pytest.mark.parametrize("wrong", [InMemoryStore(), "sqlite:./data"], ids=["InMemoryStore", "str"])
@named(GATED | OURS)
def test_a_store_of_another_kind_is_refused_when_the_graph_is_built(build: Build, wrong: Any) -> None:
    with pytest.raises(UsageError, match=rf"^the graph was compiled with {type(wrong).__name__}, .*open_store\("):
        build(store=wrong)


@pytest.mark.parametrize("wrong", [InMemoryStore(), None], ids=["InMemoryStore", "None"])
@named(PLAIN)
async def test_without_a_gate_it_is_refused_at_the_first_run(build: Build, wrong: Any, ana: Identity) -> None:
    host = build(store=wrong, checkpointer=InMemorySaver())
    found = "no store" if wrong is None else "InMemoryStore"
    with pytest.raises(UsageError, match=rf"^the graph was compiled with {found}, .*open_store\("):
        host.invoke(SAID, THREAD, context=ana)
    with pytest.raises(UsageError, match=rf"^the graph was compiled with {found}, .*open_store\("):
        await host.ainvoke(SAID, THREAD, context=ana)


@named(GATED | OURS)
def test_a_graph_without_a_store_is_refused_at_its_first_run(build: Build, ana: Identity) -> None:
    # not when it is built: a server, or a host, may give it one
    with pytest.raises(UsageError, match=r"^the graph was compiled with no store, .*open_store\("):
        build(checkpointer=InMemorySaver()).invoke(SAID, THREAD, context=ana)


def test_a_memory_graph_may_bring_its_own_store_into_a_host_with_another(store: MemoryStore) -> None:
    own = create_recall_graph().compile(checkpointer=False, store=store)
    gate(row(Own, recall=own)(store=InMemoryStore()))


# --- no context, or one of another class


@dataclass
class UserOnly:
    user_id: str = "ana"


@dataclass
class Empty:
    identity: Any = None


@dataclass
class Host:
    identity: Any
    language: str = "de"


@pytest.mark.parametrize("context", [None, "ana", UserOnly(), Empty(), Empty("ana")])
@named(PLAIN | GATED | {"agent": OURS["agent"]})
def test_a_context_that_names_no_identity_is_refused(build: Build, context: Any, store: MemoryStore) -> None:
    host = build(store=store, checkpointer=InMemorySaver())
    with pytest.raises(AccessDenied, match=r"^no identity in the run's context \(got \w+\); pass context=Identity\("):
        host.invoke(SAID, THREAD, context=context)


@pytest.mark.parametrize(
    ("context", "complaint"),
    [
        ({"user_id": "ana"}, "identity.tenant: Field required; identity.user: Field required; identity.user_id: "),
        ({"tenant": "acme"}, "identity.user: Field required"),
        ({"identity": {"tenant": "acme", "user": ""}}, "identity.user: must not be empty"),
    ],
)
@named({**GATED, "middleware": PLAIN["middleware"], "agent": OURS["agent"]})
def test_data_that_is_no_identity_is_refused_by_its_field(
    build: Build, context: Any, complaint: str, store: MemoryStore
) -> None:
    host = build(store=store, checkpointer=InMemorySaver())
    with pytest.raises(AccessDenied, match=f"^the run's context is not an identity: {complaint}.*pass context=Iden"):
        host.invoke(SAID, THREAD, context=context)


@named({"nodes": NODES, "graphs": GRAPHS})
def test_without_a_gate_langgraph_itself_refuses_such_data(build: Build, store: MemoryStore) -> None:
    # LangGraph makes the class of the context's schema before anything of ours runs
    host = build(store=store, checkpointer=InMemorySaver())
    with pytest.raises(ValidationError, match=r"identity.user\n  Field required"):
        host.invoke(SAID, THREAD, context={"tenant": "acme"})


@pytest.mark.parametrize(
    "context",
    [
        Identity(tenant="acme", user="ana"),
        {"tenant": "acme", "user": "ana"},
        {"identity": {"tenant": "acme", "user": "ana"}},
        Host(Identity(tenant="acme", user="ana")),
    ],
    ids=["Identity", "its data", "data", "a host's own class"],
)
@named(PLAIN | GATED | {"agent": OURS["agent"]})
def test_an_identity_is_found_in_each_form(build: Build, context: Any, store: MemoryStore, ana: Identity) -> None:
    build(store=store, checkpointer=InMemorySaver()).invoke(SAID, THREAD, context=context)
    assert [record.statement for record in store.records(Identity(tenant="acme", user="ana"))] == [
        "The user prefers tea over coffee."
    ]


# --- the same step twice


@pytest.mark.parametrize(
    ("nodes", "kind"),
    [
        ({"one": Retrieve(), "two": recall()}, "Retrieve"),
        ({"one": recall(), "two": recall()}, "Retrieve"),
        ({"one": Extract(), "two": remember()}, "Extract"),
        ({"one": remember(), "two": remember()}, "Extract"),
    ],
)
def test_a_step_that_is_there_twice_is_refused_when_the_graph_is_built(nodes: dict[str, Any], kind: str) -> None:
    with pytest.raises(UsageError, match=f"^nodes 'one' and 'two' are both {kind}; add one, and lead both paths to it"):
        gate(row(Own, **nodes)())


def test_langchain_refuses_the_middleware_twice() -> None:
    with pytest.raises(AssertionError, match="remove duplicate middleware"):
        create_agent(FakeModel(), middleware=[MemoryMiddleware(), MemoryMiddleware()])


@pytest.mark.parametrize("node", [recall(), remember(), Retrieve()], ids=["recall", "remember", "Retrieve"])
def test_memory_beside_an_agent_with_the_middleware_is_refused_when_the_graph_is_built(node: Any) -> None:
    with pytest.raises(UsageError, match=r"^agent 'agent' has MemoryMiddleware, and node 'memory' of its host does"):
        gate(row(MemoryState, memory=node, agent=agent())())


# --- no checkpointer


@named(GATED | {name: OURS[name] for name in ("agent", "remember")})
async def test_a_thread_needs_a_checkpointer(build: Build, store: MemoryStore, ana: Identity) -> None:
    host = build(store=store)
    with pytest.raises(UsageError, match=r"^the graph was compiled without a checkpointer, .*open_checkpointer\("):
        host.invoke(SAID, THREAD, context=ana)
    with pytest.raises(UsageError, match=r"^the graph was compiled without a checkpointer, .*open_checkpointer\("):
        await host.ainvoke(SAID, THREAD, context=ana)
    assert store.records(ana) == []


@named(PLAIN)
def test_without_a_gate_a_run_without_a_thread_names_the_checkpointer_too(
    build: Build, store: MemoryStore, ana: Identity
) -> None:
    with pytest.raises(UsageError, match=r"^the run has no thread id; .* compile the graph with a checkpointer"):
        build(store=store).invoke(SAID, context=ana)


def test_a_host_may_say_that_every_run_brings_its_whole_thread(store: MemoryStore, ana: Identity) -> None:
    for build in (GATED["nodes"], OURS["agent"]):
        assert build(store=store, checkpointer=False).invoke(SAID, THREAD, context=ana)["messages"][-1].type == "ai"


def test_what_keeps_no_thread_needs_no_checkpointer(store: MemoryStore, ana: Identity) -> None:
    assert OURS["recall"](store=store).invoke(SAID, THREAD, context=ana) == {"recalled": []}
    OURS["consolidation"](store=store).invoke({}, THREAD, context=ana)
    gate(row(Own, retrieve=Retrieve(), answer=answer)(store=store)).invoke(SAID, context=ana)


# --- an old LangGraph


@pytest.mark.parametrize("what", ["everthread", "everthread.graphs", "everthread.stores.checkpoints", "everthread.cli"])
@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.2.9", "everthread.errors.UsageError: langgraph 1.2.9 is too old for everthread; pip install --upgrade '"),
        ("1.3.0rc1", ""),
    ],
)
def test_an_old_langgraph_is_named_with_the_command(tmp_path: Path, what: str, version: str, said: str) -> None:
    metadata = tmp_path / f"langgraph-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: langgraph\nVersion: {version}\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-c", f"import {what}"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert [line[: len(said)] for line in run.stderr.splitlines()[-1:]] == ([said] if said else [])


def test_the_oldest_langgraph_is_the_one_that_pip_asks_for() -> None:
    import everthread

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"langgraph>={everthread._LANGGRAPH},<2" in project["dependencies"]
