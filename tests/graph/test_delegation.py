"""Sub-agents in threads of their own: what they get, what comes back, what is done once, and what is done meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from support.models import FakeModel

from everthread import Identity, MemoryContext, MemoryState
from everthread.errors import ModelReplyError, UsageError
from everthread.graphs import MemoryMiddleware, create_memory_agent, gate
from everthread.nodes import (
    Report,
    adelegate,
    agent_jobs,
    delegate,
    delegate_later,
    job_handlers,
    runtime_for,
    sub_thread,
)
from everthread.stores import MemoryStore, Worker, open_checkpointer, open_store
from everthread.stores.identity import Memory
from everthread.stores.record import Selection, now_utc
from everthread.stores.threads import below, thread_id_for

Home = tuple[MemoryStore, Any]
SECRET = "Only the parent knows Quillon."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def call(name: str, n: int = 1, **arguments: Any) -> AIMessage:
    made = {"name": name, "args": arguments, "id": f"c{n}", "type": "tool_call"}
    return AIMessage(content="", tool_calls=[made])


def words(prompts: Sequence[Sequence[BaseMessage]]) -> str:
    return "\n".join(message.text for asked in prompts for message in asked)


@tool
def look() -> str:
    """Look into the archive."""
    return "A very long story about Weatherby."


@tool
def dump() -> str:
    """Give everything."""
    return "head " + "x" * 40_000 + " tail"


def sub_agent(home: Home, model: FakeModel, kind: str = "graph", tools: Sequence[BaseTool] = (look, dump)) -> Any:
    store, saver = home
    if kind == "graph":
        return create_memory_agent(model, list(tools)).compile(checkpointer=saver, store=store)
    middleware: Any = [MemoryMiddleware()]
    return gate(create_agent(model, list(tools), middleware=middleware, checkpointer=saver, store=store))


def supervisor(home: Home, model: FakeModel, *tools: BaseTool) -> Any:
    store, saver = home
    return create_memory_agent(model, list(tools)).compile(checkpointer=saver, store=store)


def research(sub: Any, reports: list[Report], label: str | None = None, agent: str = "researcher") -> BaseTool:
    @tool
    def research(question: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Ask the researcher."""
        reports.append(delegate(sub, question, runtime, agent, label))
        return str(reports[-1])

    return research


@pytest.mark.parametrize("kind", ["graph", "middleware"])
def test_a_sub_agent_gets_its_brief_alone_and_returns_no_more_than_its_report(
    home: Home, ana: Identity, kind: str
) -> None:
    store, _ = home
    sub_model = FakeModel(replies=[call("look"), call("dump"), "It was Weatherby."])
    reports: list[Report] = []
    model = FakeModel(replies=[call("research", question="Who was it?"), "Weatherby, they say."])
    agent = supervisor(home, model, research(sub_agent(home, sub_model, kind), reports))
    agent.invoke(say(f"{SECRET} Who was it?"), at("a"), context=ana)

    assert "Quillon" not in words(sub_model.prompts)
    (report,) = reports
    (artifact,) = report.artifacts
    kept = store.artifacts.get(ana, artifact)
    assert kept is not None and kept.text.endswith("x tail")
    assert report.conclusion == "It was Weatherby."
    threads = {place.split("#")[0] for place in report.evidence}
    assert len(report.evidence) == 2
    (thread,) = threads
    assert thread.startswith(f"{below('a')}researcher-")
    result = model.prompts[1][-1]
    assert isinstance(result, ToolMessage)
    assert result.text == f"It was Weatherby.\nEvidence: {', '.join(report.evidence)}\nArtifacts: {artifact}"
    assert "long story" not in words(model.prompts)
    assert store.records(ana) == [] and store.transcripts.read(ana, thread) == [], "it learns nothing"
    assert store.transcripts.read(ana, "a") != []


def test_each_call_is_a_new_thread_and_a_label_goes_on_with_one(home: Home, ana: Identity) -> None:
    def asked(thread: str, label: str | None, agent: str = "researcher") -> list[int]:
        """How many of its own briefs each of two runs of a sub-agent has seen."""
        sub_model = FakeModel(replies=["first", "second"])
        model = FakeModel(replies=[call("research", 1, question="One?"), call("research", 2, question="Two?"), "done"])
        tools = research(sub_agent(home, sub_model), [], label, agent)
        supervisor(home, model, tools).invoke(say("Ask twice."), at(thread), context=ana)
        return [sum(message.type == "human" for message in prompt) for prompt in sub_model.prompts]

    assert asked("a", None) == [1, 1]
    assert asked("b", "prices") == [1, 2]
    assert asked("c", "prices") == [1, 2], "another thread's is another"
    assert asked("b", "prices", "writer") == [1, 2], "and so is another agent's"
    assert asked("b", "prices") == [3, 4]
    assert asked("b", None) == [1, 1]


def test_the_same_call_has_the_same_thread_and_no_other_has(home: Home, ana: Identity, ben: Identity) -> None:
    store, _ = home

    def place(
        who: Identity = ana, thread: str = "a", agent: str = "x", label: str | None = None, brief: str = ""
    ) -> str:
        config = sub_thread(runtime_for(who, store, thread), agent, label, brief=brief)
        return str(config["configurable"]["thread_id"])

    assert place() == place()
    assert place(label="l", brief="one") == place(label="l", brief="two")
    others: list[dict[str, Any]] = [{"who": ben}, {"thread": "b"}, {"agent": "y"}, {"label": "l"}, {"brief": "b"}]
    assert len({place(), *(place(**other) for other in others)}) == 6
    with pytest.raises(UsageError, match="no thread id"):
        sub_thread(runtime_for(ana, store), "x")


def test_its_thread_is_the_users_and_has_a_name(home: Home, ana: Identity, ben: Identity) -> None:
    store, _ = home
    delegate(sub_agent(home, FakeModel()), "Who?", runtime_for(ana, store, "a"), "researcher", "prices")
    config = sub_thread(runtime_for(ana, store, "a"), "researcher", "prices")
    names = {info.name: info.thread_id for info in store.transcripts.threads(ana)}
    assert names == {"researcher/prices of a": config["configurable"]["thread_id"]}
    assert config == at(f"{below('a')}{thread_id_for(ana, 'researcher/prices of a')}")
    assert store.transcripts.threads(ben) == []


def test_to_learn_is_a_choice(home: Home, ana: Identity) -> None:
    store, _ = home
    runtime = runtime_for(ana, store, "a")
    choices: list[tuple[Memory, int]] = [("read", 0), ("on", 2)]
    for memory, kept in choices:
        delegate(sub_agent(home, FakeModel()), "Who?", runtime, "researcher", memory, memory=memory)
        thread = sub_thread(runtime, "researcher", memory)["configurable"]["thread_id"]
        assert len(store.transcripts.read(ana, thread)) == kept


class Down(Exception):
    """A service that does not answer."""


def test_what_was_answered_is_not_asked_again_when_the_parents_step_is_tried_again(home: Home, ana: Identity) -> None:
    sub_model = FakeModel(replies=["found"])
    sub, tries = sub_agent(home, sub_model), list[str]()

    @tool
    def research(question: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Ask, then fail once."""
        tries.append(str(delegate(sub, question, runtime, "researcher")))
        if len(tries) == 1:
            raise Down
        return tries[-1]

    agent = supervisor(home, FakeModel(replies=[call("research", question="Who?"), "done"]), research)
    with pytest.raises(Down):
        agent.invoke(say("Ask."), at("a"), context=ana)
    assert agent.invoke(None, at("a"), context=ana)["messages"][-1].text == "done"
    assert (tries, len(sub_model.prompts)) == (["found", "found"], 1)


def test_a_sub_agent_that_failed_goes_on_where_it_was(home: Home, ana: Identity) -> None:
    sub_model = FakeModel(replies=[call("look"), Down(), "found"])
    agent = supervisor(
        home,
        FakeModel(replies=[call("research", question="Who?"), "done"]),
        research(sub_agent(home, sub_model), []),
    )
    with pytest.raises(Down):
        agent.invoke(say("Ask."), at("a"), context=ana)
    agent.invoke(None, at("a"), context=ana)
    assert [prompt[-1].type for prompt in sub_model.prompts] == ["human", "tool", "tool"]


def test_asyncio_does_the_same(home: Home, ana: Identity) -> None:
    sub_model = FakeModel(replies=["first", "second"])
    sub = sub_agent(home, sub_model)

    @tool
    async def research(question: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Ask twice, the second time on the first."""
        first = await adelegate(sub, question, runtime, "researcher", "l")
        again = await adelegate(sub, question, runtime, "researcher", "l")
        second = await adelegate(sub, "And?", runtime, "researcher", "l")
        return " ".join(each.conclusion for each in (first, again, second))

    model = FakeModel(replies=[call("research", question="Who?"), "done"])
    agent = supervisor(home, model, research)
    asyncio.run(agent.ainvoke(say("Ask."), at("a"), context=ana))
    assert model.prompts[1][-1].text == "first first second"
    assert len(sub_model.prompts) == 2


def test_a_graph_that_keeps_no_thread_begins_anew_and_takes_no_label(home: Home, ana: Identity) -> None:
    store, _ = home
    sub = create_memory_agent(FakeModel(replies=["first", "second"])).compile(checkpointer=False, store=store)
    runtime = runtime_for(ana, store, "a")
    assert [str(delegate(sub, "Who?", runtime, "x")) for _ in range(2)] == ["first", "second"]
    with pytest.raises(UsageError, match="x keeps no thread, so that 'l' would be new each time; compile it with"):
        delegate(sub, "Who?", runtime, "x", "l")


def answering(home: Home, answer: Callable[[], Any], schema: Any = MemoryState) -> Any:
    """A sub-agent of one node."""
    store, saver = home

    def node(state: Any, runtime: Runtime[MemoryContext]) -> Any:
        return answer()

    graph = StateGraph(schema, context_schema=MemoryContext)
    graph.add_node("answer", node)
    graph.add_edge(START, "answer")
    return gate(graph.compile(checkpointer=saver, store=store))


class Structured(MemoryState, total=False):
    structured_response: Any


def test_a_report_of_its_own_making_is_the_report(home: Home, ana: Identity) -> None:
    store, _ = home
    wanted = Report(conclusion="It was Weatherby.", evidence=("https://example.org",))
    sub = answering(home, lambda: {"structured_response": wanted}, Structured)
    assert delegate(sub, "Who?", runtime_for(ana, store, "a"), "x") == wanted
    assert str(wanted) == "It was Weatherby.\nEvidence: https://example.org"


def test_a_sub_agent_without_an_answer_is_an_error(home: Home, ana: Identity) -> None:
    store, _ = home
    sub = answering(home, lambda: {"messages": [AIMessage(" ")]})
    with pytest.raises(ModelReplyError, match="ended without an answer"):
        delegate(sub, "Who?", runtime_for(ana, store, "a"), "x")


def test_a_question_that_nobody_can_be_asked_is_named_with_the_remedy(home: Home, ana: Identity) -> None:
    store, _ = home
    sub = answering(home, lambda: interrupt("May I?"))
    for _ in range(2):
        with pytest.raises(UsageError, match=r"waits for a person's answer; .* delegate within a run"):
            delegate(sub, "Who?", runtime_for(ana, store, "a"), "x")


# --- questions to a person


@tool
def pay(amount: int) -> str:
    """Pay, once a person has agreed to it and to the account."""
    return f"paid {amount}: {interrupt(f'May I pay {amount}?')}, from {interrupt('From where?')}"


def buyer(home: Home, *amounts: int) -> Any:
    """A sub-agent that asks twice before each payment."""
    calls = [call("pay", n, amount=amount) for n, amount in enumerate(amounts)]
    return sub_agent(home, FakeModel(replies=[*calls, "Bought."]), tools=[pay])


def asking(home: Home, sub: Any, after: Callable[[], str] = lambda: "") -> Any:
    """A supervisor that has things bought, and a tool that does more behind that."""

    @tool
    def buy(what: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Have something bought."""
        report = delegate(sub, what, runtime, "buyer")
        return f"{report.conclusion}{after()}"

    @tool
    async def abuy(what: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Have something bought."""
        report = await adelegate(sub, what, runtime, "buyer")
        return f"{report.conclusion}{after()}"

    model = FakeModel(replies=[call("buy", what="tea"), "Done."])
    amodel = FakeModel(replies=[call("abuy", what="tea"), "Done."])
    return supervisor(home, model, buy), supervisor(home, amodel, abuy)


async def step(agents: Any, how: str, given: Any, context: Identity) -> Any:
    plain, other = agents
    if how == "sync":
        return await asyncio.to_thread(plain.invoke, given, at("a"), context=context)
    return await other.ainvoke(given, at("a"), context=context)


def asked(state: Any) -> list[Any]:
    return [each.value for each in state.get("__interrupt__", ())]


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_question_of_a_sub_agent_is_its_parents_and_the_answer_reaches_it(
    home: Home, ana: Identity, how: str
) -> None:
    agents = asking(home, buyer(home, 5, 7))
    state = await step(agents, how, say("Buy tea."), ana)
    for question, answer in (
        ("May I pay 5?", "yes"),
        ("From where?", "savings"),
        ("May I pay 7?", "well"),
        ("From where?", "giro"),
    ):
        assert asked(state) == [question]
        state = await step(agents, how, Command(resume=answer), ana)
    assert (asked(state), state["messages"][-1].text) == ([], "Done.")
    store, _ = home
    (thread,) = [each.thread_id for each in store.transcripts.threads(ana) if each.thread_id != "a"]
    results = [each.text for each in buyer(home).get_state(at(thread)).values["messages"] if each.type == "tool"]
    assert results == ["paid 5: yes, from savings", "paid 7: well, from giro"]


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_the_step_that_delegates_may_ask_as_well(home: Home, ana: Identity, how: str) -> None:
    agents = asking(home, buyer(home, 5), after=lambda: f" Kept: {interrupt('Keep the bill?')}")
    state = await step(agents, how, say("Buy tea."), ana)
    for question, answer in (("May I pay 5?", "yes"), ("From where?", "giro"), ("Keep the bill?", "no")):
        assert asked(state) == [question]
        state = await step(agents, how, Command(resume=answer), ana)
    assert [each.text for each in state["messages"] if each.type == "tool"] == ["Bought. Kept: no"]


async def test_a_question_goes_up_through_sub_agents_of_sub_agents(home: Home, ana: Identity) -> None:
    middle, _ = asking(home, buyer(home, 5))
    agents = asking(home, middle)
    state = await step(agents, "sync", say("Buy tea."), ana)
    for question, answer in (("May I pay 5?", "yes"), ("From where?", "giro")):
        assert asked(state) == [question]
        state = await step(agents, "sync", Command(resume=answer), ana)
    assert state["messages"][-1].text == "Done."


async def test_an_answer_that_was_lost_on_the_way_is_asked_for_again_and_meets_no_other_question(
    home: Home, ana: Identity
) -> None:
    agents = asking(home, buyer(home, 5))
    (first,) = (await step(agents, "sync", say("Buy tea."), ana))["__interrupt__"]
    store, saver = home
    (thread,) = [each.thread_id for each in store.transcripts.threads(ana) if each.thread_id != "a"]
    put_writes = saver.put_writes

    def dying(config: Any, *written: Any) -> None:
        if config["configurable"]["thread_id"] == thread:
            raise RuntimeError("killed")
        put_writes(config, *written)

    attributes: Any = vars(saver)
    attributes["put_writes"] = dying
    with pytest.raises(RuntimeError, match="killed"):
        # by its id: without one LangGraph itself gives an answer twice when the step failed behind it
        await step(agents, "sync", Command(resume={first.id: "yes"}), ana)
    del attributes["put_writes"]
    state = await step(agents, "sync", None, ana)
    for question, answer in (("May I pay 5?", "yes, yes"), ("From where?", "giro")):
        assert asked(state) == [question]
        state = await step(agents, "sync", Command(resume=answer), ana)
    assert state["messages"][-1].text == "Done."


async def test_of_two_questions_at_once_each_is_asked_in_its_turn(home: Home, ana: Identity) -> None:
    def ask(state: MemoryState) -> dict[str, Any]:
        return {"messages": [HumanMessage(f"red: {interrupt('Red?')}")]}

    def ask_too(state: MemoryState) -> dict[str, Any]:
        return {"messages": [HumanMessage(f"blue: {interrupt('Blue?')}")]}

    graph = StateGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("ask", ask)
    graph.add_node("ask_too", ask_too)
    graph.add_node("say", lambda state: {"messages": [AIMessage(words([state["messages"][1:]]))]})
    for name in ("ask", "ask_too"):
        graph.add_edge(START, name)
        graph.add_edge(name, "say")
    store, saver = home
    agents = asking(home, gate(graph.compile(checkpointer=saver, store=store)))
    state = await step(agents, "sync", say("Which?"), ana)
    answers = {"Red?": "no", "Blue?": "yes"}
    for _ in answers:
        (question,) = asked(state)
        state = await step(agents, "sync", Command(resume=answers[question]), ana)
    (result,) = [each.text for each in state["messages"] if each.type == "tool"]
    assert sorted(result.splitlines()) == ["blue: yes", "red: no"]


async def test_a_question_that_the_user_passes_over_is_asked_no_more(home: Home, ana: Identity) -> None:
    agents = asking(home, buyer(home, 5))
    await step(agents, "sync", say("Buy tea."), ana)
    state = await step(agents, "sync", say("Never mind."), ana)
    assert (asked(state), state["messages"][-1].text) == ([], "Done.")


# --- erasure

NEVER_SAID = "Weatherby keeps a Xylophon-4711"


def nested(home: Home, ana: Identity) -> list[str]:
    """A thread whose sub-agent has a sub-agent, and others of the same users; returns all their ids, its own first."""
    store, saver = home
    inner = sub_agent(home, FakeModel(replies=[NEVER_SAID]))
    asks: list[Any] = [call("research", question="Deeper?"), f"So: {NEVER_SAID}."]
    middle = supervisor(home, FakeModel(replies=asks), research(inner, [], "deep"))
    asks = [call("research", question="Who?"), "Somebody."]
    supervisor(home, FakeModel(replies=asks), research(middle, [], "wide")).invoke(say("Who?"), at("a"), context=ana)
    ids = [info.thread_id for info in store.transcripts.threads(ana)]
    assert len(ids) == 3
    assert sorted(saver.holds([NEVER_SAID], ids)) == sorted(ids)
    delegate(inner, "Of another thread?", runtime_for(ana, store, "b"), "researcher", "deep")
    return ["a", *sorted(id for id in ids if id != "a")]


def test_the_threads_of_sub_agents_are_erased_with_their_parents(home: Home, ana: Identity) -> None:
    store, saver = home
    threads = nested(home, ana)
    whole = Selection(thread_id="a")
    dry = store.erase(ana, whole, reason="asked", with_source=True, threads=saver, dry_run=True)
    erasure = store.erase(ana, whole, reason="asked", with_source=True, threads=saver)
    assert (erasure.erased, erasure.verified, erasure.remains) == (dry.erased, True, ())
    assert erasure.erased["threads"] == 3
    left = [info.thread_id for info in store.transcripts.threads(ana)]
    assert len(left) == 1 and left[0].startswith(below("b"))
    assert [saver.get_tuple(at(thread)) for thread in threads] == [None, None, None]
    assert saver.holds([NEVER_SAID], left) == left, "another thread's sub-agent is untouched"


def test_a_sub_agents_thread_is_erased_without_its_parents(home: Home, ana: Identity) -> None:
    store, saver = home
    _, *subs = nested(home, ana)
    middle = min(subs, key=len)
    store.erase(ana, Selection(thread_id=middle), reason="asked", with_source=True, threads=saver)
    assert [saver.get_tuple(at(thread)) for thread in subs] == [None, None]
    assert saver.get_tuple(at("a")) is not None


@pytest.mark.parametrize("how", ["delete", "adelete", "prune", "aprune", "retain"])
async def test_the_checkpoints_of_sub_agents_go_with_their_parents(home: Home, ana: Identity, how: str) -> None:
    _, saver = home
    threads = await asyncio.to_thread(nested, home, ana)
    match how:
        case "delete":
            saver.delete_thread("a")
        case "adelete":
            await saver.adelete_thread("a")
        case "prune":
            saver.prune(["a"], strategy="delete")
        case "aprune":
            await saver.aprune(["a"], strategy="delete")
        case _:
            with saver.turn(threads[2]):
                assert "a" not in saver.retain(older_than=timedelta(0), strategy="delete"), "its sub-agent is in a run"
            assert "a" in saver.retain(older_than=timedelta(0), strategy="delete")
    assert [saver.get_tuple(at(thread)) for thread in threads] == [None, None, None]


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_sub_agent_whose_threads_would_outlive_their_parents_is_refused(
    home: Home, ana: Identity, how: str, tmp_path: Path
) -> None:
    store, _ = home
    for elsewhere in (open_checkpointer(f"sqlite:{tmp_path / 'other'}"), InMemorySaver()):
        model = FakeModel(replies=["Bought."])
        sub = create_memory_agent(model).compile(checkpointer=elsewhere, store=store)
        state = await step(asking(home, sub), how, say("Buy tea."), ana)
        assert state["messages"][-2].text == (
            "Not done: buyer keeps its threads in another place than the run that delegates, and they would be left "
            "when this thread is erased; compile both with the same checkpointer, or this one with checkpointer=False"
        )
        assert model.prompts == []


def test_a_sub_agent_may_open_the_same_threads_by_itself(home: Home, ana: Identity, tmp_path: Path) -> None:
    store, _ = home
    with open_checkpointer(f"sqlite:{tmp_path}") as same:
        sub = create_memory_agent(FakeModel(replies=["Bought."])).compile(checkpointer=same, store=store)
        state = asking(home, sub)[0].invoke(say("Buy tea."), at("a"), context=ana)
    assert state["messages"][-2].text == "Bought."


def test_what_a_learning_sub_agent_learnt_goes_with_its_parents_thread(home: Home, ana: Identity) -> None:
    store, saver = home
    runtime = runtime_for(ana, store, "a")
    store.transcripts.bind(ana, "a")
    delegate(sub_agent(home, FakeModel()), "I live in Oslo.", runtime, "x", memory="on")
    assert store.transcripts.threads(ana)[0].messages > 0
    store.erase(ana, Selection(thread_id="a"), reason="asked", with_source=True, threads=saver)
    assert (store.records(ana), store.transcripts.threads(ana)) == ([], [])


# --- in the background


def later(label: str | None = None) -> BaseTool:
    @tool
    def later(question: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Let the researcher look meanwhile."""
        return f"task {delegate_later(question, runtime, 'researcher', label).id}"

    return later


def test_a_report_from_the_background_reaches_the_parent_once(home: Home, ana: Identity) -> None:
    store, _ = home
    sub_model = FakeModel(replies=[call("look"), "It was Weatherby."])
    handlers = {**job_handlers(store), **agent_jobs(store, sub_agent(home, sub_model), "researcher")}

    @tool
    def work() -> str:
        """Something else, while a worker works."""
        assert Worker(store, handlers).drain()
        return "worked"

    model = FakeModel(replies=[call("later", 1, question="Who was it?"), call("work", 2), "Weatherby.", "ok"])
    agent = supervisor(home, model, later(), work)
    agent.invoke(say(SECRET), at("a"), context=ana)
    assert "Quillon" not in words(sub_model.prompts)
    (task,) = store.tasks.of(ana)
    assert (task.text, task.status, task.thread_id) == ("Who was it?", "completed", "a")
    assert task.result is not None and task.result.startswith(f"It was Weatherby.\nEvidence: {below('a')}researcher-")
    told = f'Background task "Who was it?" finished. Result: {" ".join(task.result.split())}'
    assert model.prompts[2][-1].text == f"<notice>{told}</notice>"
    agent.invoke(say("Thanks."), at("a"), context=ana)
    assert [words([prompt]).count("<notice>") for prompt in model.prompts] == [0, 0, 1, 1]
    assert store.records(ana) == []
    assert [event.kind for event in store.events(ana)] == ["task.ended"]


def test_the_same_call_makes_one_task(home: Home, ana: Identity) -> None:
    store, _ = home
    runtime = runtime_for(ana, store, "a")
    first, again = (delegate_later("Who?", runtime, "researcher") for _ in range(2))
    assert first == again
    assert delegate_later("When?", runtime, "researcher") != first
    assert [job.kind for job in store.jobs.of(ana)] == ["agent:researcher"] * 2


def attempts(home: Home, ana: Identity, sub: Any, most: int, *, day: int = 0) -> None:
    """Try the one job as a worker would, again and again."""
    store, _ = home
    handlers, now = agent_jobs(store, sub, "researcher"), now_utc() + timedelta(days=day)
    for _ in range(most):
        job = store.jobs.claim(list(handlers), now=now)
        if job is None:
            return
        try:
            handlers[job.kind](job)
        except (Down, UsageError):
            store.jobs.fail(job, "down", now=now)
        else:
            store.jobs.complete(job)
        now += timedelta(days=1)


def test_a_background_run_that_failed_is_tried_again_in_its_thread(home: Home, ana: Identity) -> None:
    store, _ = home
    sub_model = FakeModel(replies=[call("look"), Down(), Down(), "found"])
    task = delegate_later("Who?", runtime_for(ana, store, "a"), "researcher")
    attempts(home, ana, sub_agent(home, sub_model), 2)
    assert [each.status for each in store.tasks.of(ana)] == ["running"]
    attempts(home, ana, sub_agent(home, sub_model), 2, day=9)
    (ended,) = store.tasks.of(ana)
    assert (ended.id, ended.status, (ended.result or "").split("\n")[0]) == (task.id, "completed", "found")
    assert [prompt[-1].type for prompt in sub_model.prompts] == ["human", "tool", "tool", "tool"]


def test_a_background_run_that_is_given_up_says_why_without_a_word_of_what_was_said(home: Home, ana: Identity) -> None:
    store, _ = home
    delegate_later("Who?", runtime_for(ana, store, "a"), "researcher")
    attempts(home, ana, sub_agent(home, FakeModel(replies=[Down("Quillon")])), 9)
    (ended,) = store.tasks.of(ana)
    assert ended.status == "failed"
    assert (ended.result or "").startswith("Down at models.py:")
    assert store.tasks.due(ana, "a", now_utc()) == [ended]


def test_a_background_run_that_would_wait_for_a_person_has_failed(home: Home, ana: Identity) -> None:
    store, _ = home
    delegate_later("Who?", runtime_for(ana, store, "a"), "researcher")
    attempts(home, ana, answering(home, lambda: interrupt("May I?")), 1)
    (ended,) = store.tasks.of(ana)
    assert (ended.status, "waits for a person's answer" in (ended.result or "")) == ("failed", True)


def test_a_cancelled_background_task_is_not_run(home: Home, ana: Identity) -> None:
    store, _ = home
    sub_model = FakeModel()
    store.tasks.cancel(ana, delegate_later("Who?", runtime_for(ana, store, "a"), "researcher").id)
    attempts(home, ana, sub_agent(home, sub_model), 1)
    assert (sub_model.prompts, [task.status for task in store.tasks.of(ana)]) == ([], ["cancelled"])
    assert [job.status for job in store.jobs.of(ana)] == ["done"]
