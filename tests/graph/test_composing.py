"""Memory in graphs of other people: nodes among theirs, graphs as nodes, sub-agents, functions."""

from __future__ import annotations

import operator
import random
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt
from support.models import FakeModel
from support.records import keep, learnt
from typing_extensions import TypedDict

from everthread import Identity, MemoryContext, MemoryState
from everthread.errors import AccessDenied, UsageError
from everthread.graphs import MemoryMiddleware, create_recall_graph, create_remember_graph, gate
from everthread.nodes import (
    Compact,
    Extract,
    Flush,
    Reference,
    Retrieve,
    as_agent,
    memory_block,
    request,
    runtime_for,
)
from everthread.nodes.extract import Candidate
from everthread.nodes.extract.candidate import Window
from everthread.nodes.node import Ask
from everthread.nodes.state import Window as View
from everthread.stores import MemoryStore, open_checkpointer, open_store

TEA = "I prefer tea over coffee."
LEARNT = "The user prefers tea over coffee."


class Small(MemoryState, total=False):
    """A host's state on ours: messages in a DeltaChannel."""

    plan: list[str]


class Own(TypedDict, total=False):
    """A host's own state: messages under `add_messages`, and the channels it wants to see."""

    messages: Annotated[list[AnyMessage], add_messages]
    plan: list[str]
    recalled: list[Reference]
    window: View
    flushed_to: str


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with open_store(f"sqlite:{tmp_path}") as store:
        yield store


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Any]:
    with open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield saver


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def plan(state: Any) -> Any:
    return {"plan": [*state.get("plan", []), "answer"]}


def from_memory(state: Any, runtime: Runtime[MemoryContext]) -> Any:
    return {"messages": [AIMessage(memory_block(state, runtime) or "I do not know.")]}


def chain(schema: Any, **nodes: Any) -> StateGraph[Any, Any, Any, Any]:
    """A host's graph of these nodes in a row."""
    graph = StateGraph(schema, context_schema=MemoryContext)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for before, after in zip([START, *nodes], [*nodes, END], strict=True):
        graph.add_edge(before, after)
    return graph


# --- nodes among the host's


@pytest.mark.parametrize("schema", [Small, Own])
async def test_nodes_stand_among_the_hosts_own_and_leave_its_fields_alone(
    store: MemoryStore, saver: Any, ana: Identity, schema: Any
) -> None:
    prompts: list[list[BaseMessage]] = []

    def reason(state: Any, runtime: Runtime[MemoryContext]) -> Any:
        prompts.append(request(state, runtime, system_prompt="You are brief."))
        return {"messages": [AIMessage("ok")]}

    nodes = {"retrieve": Retrieve(), "plan": plan, "flush": Flush(keep_tokens=60), "compact": Compact(keep_tokens=60)}
    host = gate(chain(schema, **nodes, reason=reason, extract=Extract()).compile(checkpointer=saver, store=store))
    for text in (TEA, "More words. " * 30, "Do I prefer tea or coffee?"):
        state = await host.ainvoke(say(text), on("a"), context=ana)
    assert state["plan"] == ["answer"] * 3
    assert [message.type for message in state["messages"]] == ["human", "ai"] * 3
    assert [message.type for message in prompts[-1]] == ["system", "human", "human"]
    assert prompts[-1][0].text.startswith("You are brief.\n\n<memory_context>")
    assert LEARNT in prompts[-1][0].text
    assert "Historical context" in prompts[-1][1].text


class NoMessages(TypedDict, total=False):
    question: str


class Overwritten(TypedDict, total=False):
    messages: list[AnyMessage]


@pytest.mark.parametrize("schema", [NoMessages, Overwritten])
def test_a_state_that_keeps_no_messages_is_refused_when_it_is_built(schema: Any) -> None:
    with pytest.raises(UsageError, match=r"'retrieve' reads messages.*derive the state from MemoryState"):
        gate(chain(schema, retrieve=Retrieve()).compile())


async def test_without_the_gate_it_is_refused_at_the_first_run(store: MemoryStore, ana: Identity) -> None:
    host: Any = chain(NoMessages, retrieve=Retrieve()).compile(store=store)
    with pytest.raises(UsageError, match="Retrieve found no messages in the graph's state; derive"):
        host.invoke({"question": "Which?"}, context=MemoryContext(identity=ana))
    with pytest.raises(UsageError, match="Retrieve found no messages"):
        await host.ainvoke({"question": "Which?"}, context=MemoryContext(identity=ana))


def test_two_nodes_of_one_kind_are_refused_when_the_graph_is_built() -> None:
    with pytest.raises(UsageError, match="'one' and 'two' are both Retrieve; add one"):
        gate(chain(Small, one=Retrieve(), two=Retrieve(limit=2)).compile())


def test_a_host_that_would_lose_what_a_memory_graph_gives_back_is_refused_when_it_is_built() -> None:
    class Plain(TypedDict, total=False):
        messages: Annotated[list[AnyMessage], add_messages]

    recall, remember = create_recall_graph().compile(checkpointer=False), create_remember_graph().compile()
    with pytest.raises(UsageError, match=r"graph 'recall' gives back recalled, .* add recalled: list\[Reference\]"):
        gate(chain(Plain, recall=recall).compile())
    with pytest.raises(UsageError, match=r"graph 'remember' gives back flushed_to, .* add flushed_to: str"):
        gate(chain(Plain, remember=remember).compile())


def test_nodes_beside_an_agent_with_the_middleware_are_refused_when_the_graph_is_built() -> None:
    agent = create_agent(FakeModel(), middleware=[MemoryMiddleware()])
    with pytest.raises(UsageError, match="'agent' has MemoryMiddleware, and node 'retrieve'"):
        gate(chain(Small, retrieve=Retrieve(), agent=agent).compile())


@pytest.mark.parametrize("context", [None, "ana", {"user": "ana"}, {"user_id": "ana"}])
def test_a_run_whose_context_is_no_identity_is_refused(store: MemoryStore, context: Any) -> None:
    graph = StateGraph(Small)
    graph.add_node("retrieve", Retrieve())
    graph.add_edge(START, "retrieve")
    with pytest.raises(AccessDenied, match="pass context=Identity"):
        graph.compile(store=store).invoke(say("Hello."), context=context)


def test_a_hosts_store_of_another_kind_is_named_with_the_remedy(ana: Identity) -> None:
    host: Any = chain(Small, retrieve=Retrieve()).compile(store=InMemoryStore())
    with pytest.raises(UsageError, match=r"compiled with InMemoryStore.*open_store"):
        host.invoke(say("Hello."), context=MemoryContext(identity=ana))


def test_learning_without_a_thread_names_the_remedy(store: MemoryStore, ana: Identity) -> None:
    host: Any = chain(Small, answer=from_memory, extract=Extract()).compile(store=store)
    with pytest.raises(UsageError, match=r"no thread id; .* compile the graph with a checkpointer"):
        host.invoke(say(TEA), context=MemoryContext(identity=ana))


# --- graphs as nodes


class Policies:
    """Takes every user message for something that holds in the whole organization."""

    id = "policies/1"
    calls_model = False

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        yield from ()
        return [
            Candidate(statement=line.text, owner="organization", messages=(number,), write_reason="a policy")
            for number, line in enumerate(window.lines, 1)
            if line.source == "user"
        ]


def remembering(answer: Any = from_memory, schema: Any = Small, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    """A host's agent between recall and remember."""
    return chain(
        schema,
        recall=create_recall_graph().compile(checkpointer=False),
        answer=answer,
        remember=create_remember_graph(**options).compile(),
    )


async def test_an_agent_between_recall_and_remember_knows_what_was_said_in_another_thread(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    host = gate(remembering().compile(checkpointer=saver, store=store))
    await host.ainvoke(say(TEA), on("monday"), context=ana)
    host.invoke(say("I work in Lisbon."), on("monday"), context=ana)
    state = await host.ainvoke(say("Do I prefer tea or coffee?"), on("tuesday"), context=ana)
    assert LEARNT in state["messages"][-1].text
    assert [message.type for message in state["messages"]] == ["human", "ai"]
    assert len(store.transcripts.read(ana, "monday")) == 4


def test_what_the_user_takes_back_in_the_next_turn_is_taken_back(store: MemoryStore, saver: Any, ana: Identity) -> None:
    host = gate(remembering().compile(checkpointer=saver, store=store))
    host.invoke(say(TEA), on("a"), context=ana)
    assert [record.statement for record in store.records(ana)] == [LEARNT]
    host.invoke(say("Please do not remember that."), on("a"), context=ana)
    assert store.records(ana) == []


def test_a_review_inside_the_host_is_resumed_by_a_curator(store: MemoryStore, saver: Any, ana: Identity) -> None:
    member = ana.model_copy(update={"organization": "acme"})
    curator = member.model_copy(update={"roles": frozenset({"curator"})})
    host = gate(remembering(extractor=Policies()).compile(checkpointer=saver, store=store))
    waiting = host.invoke(say("Deploys need two approvals."), on("a"), context=member)
    ((shown,),) = [each.value["review"] for each in waiting["__interrupt__"]]
    state = host.invoke(Command(resume={shown["id"]: "approve"}), on("a"), context=curator)
    assert [record.statement for record in store.records(member)] == ["Deploys need two approvals."]
    assert state["flushed_to"] == state["messages"][-1].id


def test_a_hosts_own_interrupt_and_a_review_two_graphs_deep_are_resumed_in_turn(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    def confirmed(state: Any) -> Any:
        return {"messages": [AIMessage(interrupt("Shall I?"))]}

    member = ana.model_copy(update={"organization": "acme", "roles": frozenset({"curator"})})
    inner = remembering(confirmed, extractor=Policies()).compile()
    host = gate(chain(Small, plan=plan, inner=inner).compile(checkpointer=saver, store=store))
    first = host.invoke(say("Deploys need two approvals."), on("a"), context=member)
    assert first["__interrupt__"][0].value == "Shall I?"
    second = host.invoke(Command(resume="Yes."), on("a"), context=member)
    (shown,) = second["__interrupt__"][0].value["review"]
    state = host.invoke(Command(resume={shown["id"]: "approve"}), on("a"), context=member)
    assert [message.text for message in state["messages"]] == ["Deploys need two approvals.", "Yes."]
    assert [record.statement for record in store.records(member)] == ["Deploys need two approvals."]


def test_recall_runs_beside_another_branch(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, learnt(LEARNT))
    graph = StateGraph(Small, context_schema=MemoryContext)
    graph.add_node("recall", create_recall_graph().compile(checkpointer=False))
    graph.add_node("plan", plan)
    graph.add_node("answer", from_memory)
    graph.add_edge(START, "recall")
    graph.add_edge(START, "plan")
    graph.add_edge(["recall", "plan"], "answer")
    state = gate(graph.compile(store=store)).invoke(say("Do I prefer tea or coffee?"), on("a"), context=ana)
    assert state["plan"] == ["answer"]
    assert LEARNT in state["messages"][-1].text


class Fan(TypedDict, total=False):
    questions: list[str]
    answers: Annotated[list[str], operator.add]


class Branch(MemoryState, total=False):
    answers: list[str]


def test_each_branch_of_a_fan_out_recalls_for_its_own_question(store: MemoryStore, ana: Identity) -> None:
    records = keep(store, ana, learnt("Ana prefers tea."), learnt("Ana lives in Lisbon."))

    def answer(state: Any, runtime: Runtime[MemoryContext]) -> Any:
        return {"answers": [reference["id"] for reference in state["recalled"]]}

    worker = chain(Branch, retrieve=Retrieve(limit=1), answer=answer).compile(checkpointer=False)
    graph = StateGraph(Fan, context_schema=MemoryContext)
    graph.add_node("worker", worker)
    graph.add_conditional_edges(
        START, lambda state: [Send("worker", say(text)) for text in state["questions"]], ["worker"]
    )
    host = gate(graph.compile(store=store))
    questions = ["Does Ana prefer tea?", "Where does Ana live, in Lisbon?"]
    state = host.invoke({"questions": questions}, context=ana)
    assert sorted(state["answers"]) == sorted(record.id for record in records)


def test_a_subgraph_with_memory_hands_over_to_a_node_of_its_host(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, learnt(LEARNT))

    def hand_over(state: Any) -> Command[str]:
        return Command(goto="expert", update={"recalled": state["recalled"]}, graph=Command.PARENT)

    inner = chain(Small, recall=create_recall_graph().compile(checkpointer=False), hand_over=hand_over).compile()
    graph = StateGraph(Small, context_schema=MemoryContext)
    graph.add_node("desk", inner, destinations=("expert",))
    graph.add_node("expert", from_memory)
    graph.add_edge(START, "desk")
    state = gate(graph.compile(store=store)).invoke(say("Do I prefer tea or coffee?"), on("a"), context=ana)
    assert LEARNT in state["messages"][-1].text


def grown(home: Path, host: StateGraph[Any, Any, Any, Any], identity: Identity, turns: int) -> Path:
    """The threads file after so many turns of 1,000 characters of random words."""
    chosen = random.Random(7)
    words = ["".join(chosen.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(2_000)]
    with open_store(f"sqlite:{home}") as store, open_checkpointer(f"sqlite:{home}") as saver:
        agent = gate(host.compile(checkpointer=saver, store=store))
        for number in range(turns):
            agent.invoke(
                say(" ".join([f"Question {number}:", *chosen.choices(words, k=60)])), on("a"), context=identity
            )
    return home / "threads.db"


def long_answer(state: Any) -> Any:
    chosen = random.Random(len(state["messages"]))
    return {"messages": [AIMessage(" ".join("".join(chosen.choices("aeioubdgklmnprst", k=7)) for _ in range(60)))]}


def namespaces(path: Path) -> set[str]:
    """The graphs that have checkpoints in a file."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT checkpoint_ns FROM checkpoints").fetchall()
    return {namespace.partition(":")[0] for (namespace,) in found}


def calling(schema: Any) -> StateGraph[Any, Any, Any, Any]:
    """A host's node that recalls and learns by calls."""
    retrieve, extract = Retrieve(floor=None), Extract()

    def answer(state: Any, runtime: Runtime[MemoryContext]) -> Any:
        found: Any = retrieve(state, runtime)
        reply = AIMessage(memory_block({**state, **found}, runtime) or "I do not know.")
        told: Any = {**state, **found, "messages": add_messages(state["messages"], reply)}
        learnt: Any = extract(told, runtime)
        return {**found, "messages": told["messages"][-1:], **learnt}

    return chain(schema, answer=answer)


@pytest.mark.parametrize("schema", [Small, Own])
def test_a_node_may_recall_and_learn_by_calls(store: MemoryStore, saver: Any, ana: Identity, schema: Any) -> None:
    host = gate(calling(schema).compile(checkpointer=saver, store=store))
    host.invoke(say(TEA), on("monday"), context=ana)
    state = host.invoke(say("Do I prefer tea or coffee?"), on("tuesday"), context=ana)
    assert "prefers tea over coffee" in state["messages"][-1].text
    assert state["flushed_to"] == state["messages"][-1].id
    said = store.transcripts.read(ana, "tuesday")
    assert [line.message_id for line in said] == [message.id for message in state["messages"]]
    assert len(list(saver.list(on("tuesday")))) == 3, "as without memory"


def test_recall_and_remember_store_nothing_of_their_own(tmp_path: Path, ana: Identity) -> None:
    assert namespaces(grown(tmp_path, remembering(long_answer), ana, 3)) == {""}


def test_memory_adds_less_than_a_fifth_to_the_file_of_a_host_on_add_messages(tmp_path: Path, ana: Identity) -> None:
    before = grown(tmp_path / "before", chain(Own, answer=long_answer), ana, 40)
    after = grown(tmp_path / "after", remembering(long_answer, Own), ana, 40)
    assert after.stat().st_size < before.stat().st_size * 1.2


def test_an_agent_with_memory_on_the_small_state_takes_less_than_it_took_without(tmp_path: Path, ana: Identity) -> None:
    before = grown(tmp_path / "before", chain(Own, answer=long_answer), ana, 40)
    after = grown(tmp_path / "after", remembering(long_answer), ana, 40)
    assert after.stat().st_size < before.stat().st_size / 2


# --- a supervisor and its sub-agents


def test_a_sub_agent_reads_its_own_memory_and_the_users_and_learns_nothing(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    for name in ("researcher", "writer"):
        curator = ana.model_copy(update={"agent": name, "roles": frozenset({"curator"})})
        keep(store, curator, learnt(f"Reports: the {name} keeps them short", "agent", name, agent_family=name))
    keep(store, ana, learnt("Reports for Ana are kept in French"))
    models = {name: FakeModel(replies=["Done."]) for name in ("researcher", "writer")}
    agents = {
        name: create_agent(model, middleware=[MemoryMiddleware(deliver=False)], checkpointer=False)
        for name, model in models.items()
    }

    def ask(name: str) -> Any:
        def node(state: Any, runtime: Runtime[MemoryContext]) -> Any:
            brief = HumanMessage("How are reports kept?", name="supervisor")
            reply = agents[name].invoke({"messages": [brief]}, context=as_agent(runtime, name))
            return {"messages": [AIMessage(reply["messages"][-1].text, name=name)]}

        return node

    host = gate(
        chain(Small, researcher=ask("researcher"), writer=ask("writer"), extract=Extract()).compile(
            checkpointer=saver, store=store
        )
    )
    state = host.invoke(say(TEA), on("a"), context=ana)
    for name, other in (("researcher", "writer"), ("writer", "researcher")):
        (prompt,) = models[name].prompts
        assert f"the {name} keeps them short" in prompt[0].text
        assert f"the {other} keeps them short" not in prompt[0].text
    assert [message.name for message in state["messages"]] == [None, "researcher", "writer"]
    assert sorted(record.statement for record in store.records(ana)) == [
        "Reports for Ana are kept in French",
        LEARNT,
    ]
    assert [line.speaker for line in store.transcripts.read(ana, "a")] == ["ana", "researcher", "writer"]


def test_a_sub_agent_shares_by_choice_and_what_it_was_told_is_not_the_users_word(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    researcher = create_agent(FakeModel(), middleware=[MemoryMiddleware(deliver=False)], checkpointer=False)

    def delegate(state: Any, runtime: Runtime[MemoryContext]) -> Any:
        brief = HumanMessage(TEA, name="supervisor")
        researcher.invoke({"messages": [brief]}, context=as_agent(runtime, "researcher", memory="on"))
        return {"messages": [AIMessage("Done.")]}

    host = gate(chain(Small, delegate=delegate).compile(checkpointer=saver, store=store))
    host.invoke(say("Look it up."), on("a"), context=ana)
    assert store.records(ana) == []
    assert [record.statement for record in store.records(ana, statuses=("pending",))] == [LEARNT]


def test_an_agent_has_no_roles_and_is_never_more_than_the_run_may(store: MemoryStore, ana: Identity) -> None:
    curator = ana.model_copy(update={"roles": frozenset({"curator"})})
    context = as_agent(runtime_for(curator, store), "researcher", version="2")
    assert context == MemoryContext(
        identity=ana.model_copy(update={"agent": "researcher", "agent_version": "2"}), memory="read", root=False
    )
    off = runtime_for(MemoryContext(identity=ana, memory="off"), store)
    assert as_agent(off, "researcher", memory="on").memory == "off"


async def test_notices_and_waiting_inputs_are_left_to_the_outermost_graph(
    store: MemoryStore, saver: Any, ana: Identity
) -> None:
    store.inbox.admit(ana, "a", "m1", "And hurry.")
    model = FakeModel()
    researcher = create_agent(model, middleware=[MemoryMiddleware(deliver=False)], checkpointer=False)

    async def delegate(state: Any, runtime: Runtime[MemoryContext]) -> Any:
        await researcher.ainvoke(say("Look it up."), context=as_agent(runtime, "researcher"))
        return {"messages": [AIMessage("Done.")]}

    host = gate(chain(Small, delegate=delegate).compile(checkpointer=saver, store=store))
    await host.ainvoke(say("Hello."), on("a"), context=ana)
    assert [message.text for message in model.prompts[0]] == ["Look it up."]
    assert store.inbox.pending(ana, "a") == [("m1", "And hurry.")]


# --- the functional API


def test_nodes_are_steps_of_a_workflow_made_of_functions(store: MemoryStore, saver: Any, ana: Identity) -> None:
    retrieve, extract = Retrieve(), Extract()

    @task
    def reply(text: str, block: str) -> AIMessage:
        return AIMessage(block or "Noted.", id=f"answer-{len(text)}")

    @entrypoint(checkpointer=saver, store=store, context_schema=MemoryContext)
    def workflow(text: str, *, previous: Any, runtime: Runtime[MemoryContext]) -> Any:
        state: Any = previous or {"messages": []}
        state["messages"] = add_messages(state["messages"], HumanMessage(text))
        state |= retrieve(state, runtime)
        answer = reply(text, memory_block(state, runtime)).result()
        state["messages"] = add_messages(state["messages"], answer)
        state |= extract(state, runtime)
        return entrypoint.final(value=answer.text, save=state)

    def ask(text: str, thread: str) -> Any:
        return workflow.invoke(text, on(thread), context=MemoryContext(identity=ana))  # type: ignore[call-overload]

    assert ask(TEA, "monday") == "Noted."
    assert LEARNT in ask("Do I prefer tea or coffee?", "tuesday")
    ask("I live in Lisbon.", "monday")
    assert len(store.transcripts.read(ana, "monday")) == 4
