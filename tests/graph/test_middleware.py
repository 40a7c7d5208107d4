"""MemoryMiddleware in LangChain's `create_agent`: the steps of the turn on its hooks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
)
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from support.models import FakeModel

from everthread import Identity, MemoryContext, MemoryState
from everthread.errors import AccessDenied, ModelReplyError, UsageError
from everthread.graphs import MemoryMiddleware, gate
from everthread.nodes import as_agent
from everthread.nodes.extract import Candidate, RuleExtractor
from everthread.nodes.extract.candidate import Window
from everthread.nodes.node import Ask
from everthread.stores import MemoryStore, open_checkpointer, open_store

TEA = "I prefer tea over coffee."
LEARNT = "The user prefers tea over coffee."


class Home:
    """A store, a saver, and agents on them."""

    def __init__(self, store: MemoryStore, saver: Any) -> None:
        self.store = store
        self.saver = saver

    def agent(self, model: FakeModel, *middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
        every = middleware or (MemoryMiddleware(),)
        return gate(create_agent(model, middleware=every, checkpointer=self.saver, store=self.store, **options))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield Home(store, saver)


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def say(*texts: str) -> Any:
    return {"messages": [HumanMessage(text) for text in texts]}


def statements(store: MemoryStore, identity: Identity, **options: Any) -> list[str]:
    return [record.statement for record in store.records(identity, **options)]


def system_of(prompt: list[BaseMessage]) -> str:
    return "\n".join(message.text for message in prompt if isinstance(message, SystemMessage))


def calling(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=f"call-{name}")])


# --- recall and learning


def test_the_second_thread_knows_what_was_said_in_the_first(home: Home, ana: Identity) -> None:
    model = FakeModel(replies=["Noted.", "Tea."])
    agent = home.agent(model, system_prompt="You are brief.")
    agent.invoke(say(TEA), on("monday"), context=ana)
    state = agent.invoke(say("Do I prefer tea or coffee?"), on("tuesday"), context=ana)
    (record,) = home.store.records(ana)
    assert record.statement == LEARNT
    assert system_of(model.prompts[1]).startswith("You are brief.\n\n<memory_context>")
    assert LEARNT in system_of(model.prompts[1])
    assert [reference["id"] for reference in state["recalled"]] == [record.id]


async def test_the_same_under_asyncio(home: Home, ana: Identity) -> None:
    model = FakeModel(replies=["Noted.", "Tea."])
    agent = home.agent(model)
    await agent.ainvoke(say(TEA), on("monday"), context=ana)
    await agent.ainvoke(say("Do I prefer tea or coffee?"), on("tuesday"), context=ana)
    assert statements(home.store, ana) == [LEARNT]
    assert LEARNT in system_of(model.prompts[1])


def test_recalled_memory_enters_the_request_and_never_the_thread(home: Home, ana: Identity) -> None:
    model = FakeModel(replies=["Noted.", "Tea."])
    agent = home.agent(model)
    agent.invoke(say(TEA), on("monday"), context=ana)
    state = agent.invoke(say("Do I prefer tea or coffee?"), on("tuesday"), context=ana)
    assert [message.text for message in state["messages"]] == ["Do I prefer tea or coffee?", "Tea."]


@pytest.mark.parametrize("schema", [None, MemoryState])
def test_it_works_with_the_small_state_and_with_the_agents_own(home: Home, ana: Identity, schema: Any) -> None:
    agent = home.agent(FakeModel(), state_schema=schema)
    for text in (TEA, "How do I like my coffee?"):
        state = agent.invoke(say(text), on("a"), context=ana)
    assert [message.text for message in state["messages"]] == [TEA, "ok", "How do I like my coffee?", "ok"]
    assert statements(home.store, ana) == [LEARNT]


def test_blocks_of_the_hosts_system_message_stay(home: Home, ana: Identity) -> None:
    cached = {"type": "text", "text": "You are brief.", "cache_control": {"type": "ephemeral"}}
    model = FakeModel(replies=["Noted.", "Tea."])
    agent = home.agent(model, system_prompt=SystemMessage(content=[cached]))
    agent.invoke(say(TEA), on("monday"), context=ana)
    agent.invoke(say("Do I prefer tea or coffee?"), on("tuesday"), context=ana)
    content = model.prompts[1][0].content
    assert isinstance(content, list)
    first, second = content
    assert first == cached
    assert isinstance(second, dict) and LEARNT in second["text"]


def test_project_instructions_are_in_the_request_and_only_their_hash_in_the_thread(home: Home, ana: Identity) -> None:
    model = FakeModel()
    agent = home.agent(model, MemoryMiddleware(instructions="Answer in French."))
    state = agent.invoke(say("Hello."), on("a"), context=ana)
    assert "Answer in French." in system_of(model.prompts[0])
    assert state["instructions"].startswith("sha256:")


def test_a_memory_that_the_answer_names_counts_as_used(home: Home, ana: Identity) -> None:
    home.agent(FakeModel()).invoke(say(TEA), on("a"), context=ana)
    (record,) = home.store.records(ana)
    home.agent(FakeModel(replies=[f"Tea ({record.id})."])).invoke(say("Tea or coffee?"), on("b"), context=ana)
    assert [each.usage_count for each in home.store.records(ana)] == [1]


def test_a_run_that_may_only_read_learns_nothing(home: Home, ana: Identity) -> None:
    home.agent(FakeModel()).invoke(say(TEA), on("a"), context=MemoryContext(identity=ana, memory="read"))
    assert statements(home.store, ana) == []
    assert home.store.transcripts.read(ana, "a") == []


# --- who it is for


def test_a_run_without_an_identity_never_reaches_the_model(home: Home) -> None:
    model = FakeModel()
    agent = create_agent(model, middleware=[MemoryMiddleware()], checkpointer=home.saver, store=home.store)
    with pytest.raises(AccessDenied, match="no identity"):
        agent.invoke(say("Hello."), on("a"))
    assert model.prompts == []


def test_another_users_thread_is_refused_at_the_start_and_when_resumed(
    home: Home, ana: Identity, ben: Identity
) -> None:
    model = FakeModel()
    agent = create_agent(model, middleware=[MemoryMiddleware()], checkpointer=home.saver, store=home.store)
    agent.invoke(say(TEA), on("a"), context=ana, interrupt_before=["model"])
    with pytest.raises(AccessDenied):
        agent.invoke(None, on("a"), context=ben)
    with pytest.raises(AccessDenied):
        agent.invoke(say("What does Ana prefer?"), on("a"), context=ben)
    assert model.prompts == []


def test_a_store_of_another_kind_and_a_run_without_a_thread_are_refused_with_the_remedy(
    home: Home, ana: Identity
) -> None:
    with pytest.raises(UsageError, match=r"no store.*open_store"):
        create_agent(FakeModel(), middleware=[MemoryMiddleware()]).invoke(say("Hello."), on("a"), context=ana)
    with pytest.raises(UsageError, match=r"no thread id.*checkpointer"):
        create_agent(FakeModel(), middleware=[MemoryMiddleware()], store=home.store).invoke(say("Hi."), context=ana)


def test_without_langchain_the_error_names_the_command() -> None:
    script = "import sys; sys.modules['langchain'] = None\nfrom everthread.graphs import MemoryMiddleware"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stderr.splitlines()[-1] == (
        "everthread.errors.UsageError: MemoryMiddleware needs the package langchain, which is not installed; "
        "pip install 'everthread[langchain]'"
    )


# --- compaction


def long_talk(agent: Any, identity: Identity, turns: int = 8) -> Any:
    for number in range(turns):
        state = agent.invoke(say(f"Question {number}. " + "more words " * 40), on("a"), context=identity)
    return state


def test_over_budget_the_view_is_cut_and_every_stored_message_stays(home: Home, ana: Identity) -> None:
    model = FakeModel()
    agent = home.agent(model, MemoryMiddleware(recall="automatic", max_tokens=700, keep_tokens=300))
    agent.invoke(say(TEA), on("a"), context=ana)
    state = long_talk(agent, ana)
    assert [message.type for message in state["messages"]] == ["human", "ai"] * 9
    assert state["messages"][0].text == TEA
    shown = [message.text for message in model.prompts[-1] if message.type == "human"]
    assert "Historical context" in shown[0]
    assert "Question 0." not in shown[1]
    assert shown[-1].startswith("Question 7.")
    assert statements(home.store, ana) == [LEARNT]


def test_the_last_turns_stay_and_the_rest_leaves_when_twice_as_many_have_come(home: Home, ana: Identity) -> None:
    model = FakeModel()
    agent = home.agent(model, MemoryMiddleware(recall="automatic", keep_turns=3))
    long_talk(agent, ana, turns=7)
    shown = [[message.text[:11] for message in prompt if message.type == "human"] for prompt in model.prompts[-2:]]
    assert shown[0] == ["<task_state", *(f"Question {number}." for number in range(6))]
    assert shown[1] == ["<thread_sum", *(f"Question {number}." for number in (4, 5, 6))]


def test_a_reply_with_the_id_of_another_message_takes_nobodys_place(home: Home, ana: Identity) -> None:
    agent = home.agent(FakeModel(replies=[AIMessage("one", id="same"), AIMessage("two", id="same")]))
    agent.invoke(say("a"), on("t"), context=ana)
    state = agent.invoke(say("b"), on("t"), context=ana)
    assert [message.text for message in state["messages"]] == ["a", "one", "b", "two"]


async def test_what_leaves_the_view_is_flushed_first(home: Home, ana: Identity) -> None:
    agent = home.agent(FakeModel(), MemoryMiddleware(recall="automatic", max_tokens=400, keep_tokens=60))
    history = [HumanMessage(TEA), AIMessage("Noted."), *say(*["more words " * 60] * 3)["messages"]]
    events = [
        (event["node"], event["event"])
        async for event in agent.astream({"messages": history}, on("a"), context=ana, stream_mode="custom")
    ]
    assert events.index(("flush", "flushed")) < events.index(("compact", "compacted"))
    assert statements(home.store, ana) == [LEARNT]


def test_a_request_that_the_provider_finds_too_long_is_compacted_and_sent_once_more(home: Home, ana: Identity) -> None:
    model = FakeModel(replies=["one", "two", "three", ContextOverflowError("too long"), "four"])
    agent = home.agent(model, MemoryMiddleware(recall="automatic"))
    state = long_talk(agent, ana, turns=4)
    assert state["messages"][-1].text == "four"
    assert len(model.prompts[4]) < len(model.prompts[3])
    assert state["window"]["overflow"] == state["messages"][-2].id


def test_a_request_that_cannot_be_cut_raises_the_providers_error(home: Home, ana: Identity) -> None:
    agent = home.agent(FakeModel(replies=[ContextOverflowError("too long")]))
    with pytest.raises(ContextOverflowError):
        agent.invoke(say("Hello."), on("a"), context=ana)


# --- tools


def test_the_memory_tools_save_and_search(home: Home, ana: Identity) -> None:
    model = FakeModel(replies=[calling("memory_save", statement=TEA), "Saved.", calling("memory_search", query="tea")])
    agent = home.agent(FakeModel(replies=[*model.replies, "You prefer tea."]))
    agent.invoke(say(f"Please remember: {TEA}"), on("a"), context=ana)
    state = agent.invoke(say("Look up tea."), on("b"), context=ana)
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    (record,) = home.store.records(ana)
    assert state["messages"][2].additional_kwargs["everthread"]["records"] == [[record.id, 1]]


def test_an_oversized_result_leaves_the_thread(home: Home, ana: Identity) -> None:
    @tool
    def logs() -> str:
        """Everything."""
        return "line\n" * 20_000

    agent = home.agent(FakeModel(replies=[calling("logs"), "Read."]), tools=[logs])
    state = agent.invoke(say("Show the logs."), on("a"), context=ana)
    assert len(state["messages"][2].text) < 5_000
    assert "characters left out" in state["messages"][2].text


def test_automatic_recall_binds_no_memory_tools(home: Home, ana: Identity) -> None:
    model = FakeModel()
    home.agent(model, MemoryMiddleware(recall="automatic")).invoke(say("Hello."), on("a"), context=ana)
    assert [each.name for each in model.tools] == ["artifact_read"]


# --- durable learning


class Failing(AgentMiddleware[Any, Any, Any]):
    """Raises at one hook, once."""

    def __init__(self, hook: str) -> None:
        self.hook: str | None = hook

    def _at(self, hook: str) -> None:
        if self.hook == hook:
            self.hook = None
            raise RuntimeError(f"{hook} failed")

    def after_model(self, state: Any, runtime: Any) -> None:
        self._at("after_model")

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._at("after_agent")


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_later_hook_that_raises_stops_no_learning(home: Home, ana: Identity, ours_first: bool) -> None:
    order = [MemoryMiddleware(), Failing("after_agent")]
    agent = home.agent(FakeModel(), *(order if ours_first else order[::-1]))
    with pytest.raises(RuntimeError, match="after_agent failed"):
        agent.invoke(say(TEA), on("a"), context=ana)
    assert statements(home.store, ana) == [LEARNT]


def test_a_reply_that_another_hook_refused_is_learnt_from_when_the_thread_goes_on(home: Home, ana: Identity) -> None:
    agent = home.agent(FakeModel(), MemoryMiddleware(), Failing("after_model"))
    with pytest.raises(RuntimeError, match="after_model failed"):
        agent.invoke(say(TEA), on("a"), context=ana)
    assert statements(home.store, ana) == []
    agent.invoke(say("Hello again."), on("a"), context=ana)
    assert statements(home.store, ana) == [LEARNT]


class Unwell:
    """The rules, behind a model that gives nothing usable at first."""

    id = "unwell/1"
    calls_model = False

    def __init__(self) -> None:
        self.failures = 1

    def propose(self, window: Window) -> Generator[Ask, Any, list[Candidate]]:
        if self.failures:
            self.failures -= 1
            raise ModelReplyError("the model answered with prose")
        return (yield from RuleExtractor().propose(window))


def test_an_extraction_that_failed_is_done_at_another_turn_of_any_thread(home: Home, ana: Identity) -> None:
    agent = home.agent(FakeModel(), MemoryMiddleware(extractor=Unwell()))
    assert agent.invoke(say(TEA), on("a"), context=ana)["messages"][-1].text == "ok"
    assert statements(home.store, ana) == []
    [job] = home.store.jobs.of(ana, status="waiting")
    assert (job.kind, job.thread_id) == ("extract:unwell/1", "a")
    home.store.jobs.retry(ana, job.id)  # not before its time, else
    agent.invoke(say("Hello."), on("b"), context=ana)
    (record,) = home.store.records(ana)
    assert (record.statement, record.provenance.thread_id) == (LEARNT, "a")
    assert home.store.jobs.waiting() == 0


def test_a_late_extraction_has_no_roles_and_respects_what_was_chosen_since(home: Home, ana: Identity) -> None:
    curator = ana.model_copy(update={"roles": frozenset({"curator"})})
    agent = home.agent(FakeModel(), MemoryMiddleware(extractor=Unwell()))
    agent.invoke(say(TEA), on("a"), context=curator)
    home.store.jobs.retry(ana, home.store.jobs.of(ana)[0].id)
    job = home.store.jobs.claim(["extract:unwell/1"], seconds=0)
    assert job is not None
    assert Identity.model_validate(job.payload["identity"]) == ana
    home.store.transcripts.set_memory(ana, "a", "off")
    agent.invoke(say("Hello."), on("b"), context=ana)
    assert statements(home.store, ana) == []
    assert home.store.jobs.waiting() == 0


def test_a_turn_that_was_killed_before_it_learnt_learns_when_it_is_resumed(home: Home, ana: Identity) -> None:
    agent = home.agent(FakeModel())
    agent.invoke(say(TEA), on("a"), context=ana, interrupt_before=["MemoryMiddleware.after_model"])
    assert statements(home.store, ana) == []
    agent.invoke(None, on("a"), context=ana)
    assert statements(home.store, ana) == [LEARNT]


# --- beside other middleware


def test_redacted_words_are_neither_learnt_nor_kept_in_the_transcript(home: Home, ana: Identity) -> None:
    redaction = PIIMiddleware("email", strategy="redact", apply_to_input=True, apply_to_output=True)
    agent = home.agent(FakeModel(replies=["Write to ana@example.com."]), MemoryMiddleware(), redaction)
    agent.invoke(say(f"{TEA} Mail me at ana@example.org."), on("a"), context=ana)
    said = [line.text for line in home.store.transcripts.read(ana, "a")]
    assert said == [f"{TEA} Mail me at [REDACTED_EMAIL].", "Write to [REDACTED_EMAIL]."]
    assert LEARNT in statements(home.store, ana)


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_person_decides_on_a_memory_tool(home: Home, ana: Identity, decision: str) -> None:
    review = HumanInTheLoopMiddleware(interrupt_on={"memory_save": {"allowed_decisions": ["approve", "reject"]}})
    model = FakeModel(replies=[calling("memory_save", statement="Ana likes trains."), "Done."])
    agent = home.agent(model, MemoryMiddleware(), review)
    waiting = agent.invoke(say("Keep that I like trains, please."), on("a"), context=ana)
    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "memory_save"
    state = agent.invoke(Command(resume={"decisions": [{"type": decision}]}), on("a"), context=ana)
    assert state["messages"][-1].text == "Done."
    kept = [
        record for record in home.store.records(ana, statuses=("active", "pending")) if "trains" in record.statement
    ]
    assert (kept != []) is (decision == "approve")


def test_a_summary_of_langchains_own_middleware_is_not_taken_for_the_users_word(home: Home, ana: Identity) -> None:
    summary = SummarizationMiddleware(
        model=FakeModel(replies=["I prefer coffee over tea."]), trigger=("messages", 4), keep=("messages", 2)
    )
    agent = home.agent(FakeModel(), MemoryMiddleware(), summary)
    for text in ("Hello.", "How are you?", "What is new?", "And now?"):
        state = agent.invoke(say(text), on("a"), context=ana)
    assert any("I prefer coffee" in message.text for message in state["messages"])
    assert statements(home.store, ana, statuses=("active", "pending")) == []


# --- a sub-agent behind a tool


async def test_a_sub_agent_behind_a_tool_reads_as_itself_and_the_supervisor_learns(home: Home, ana: Identity) -> None:
    home.agent(FakeModel()).invoke(say(TEA), on("before"), context=ana)
    model = FakeModel(replies=["Tea it is."])
    researcher = create_agent(model, middleware=[MemoryMiddleware(deliver=False)], checkpointer=False)

    @tool
    async def research(question: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Ask the researcher."""
        brief = HumanMessage(question, name="supervisor")
        reply = await researcher.ainvoke({"messages": [brief]}, context=as_agent(runtime, "researcher"))
        return str(reply["messages"][-1].text)

    replies = [calling("research", question="Does the user prefer tea or coffee?"), "You prefer tea."]
    agent = home.agent(FakeModel(replies=replies), tools=[research])
    state = await agent.ainvoke(say("Find out what I drink. I live in Lisbon."), on("a"), context=ana)
    assert LEARNT in system_of(model.prompts[0])
    assert [message.text for message in state["messages"][2:]] == ["Tea it is.", "You prefer tea."]
    assert sorted(statements(home.store, ana)) == ["The user lives in Lisbon.", LEARNT]
    assert [line.speaker for line in home.store.transcripts.read(ana, "a")] == ["ana", None, "research", None]


def test_the_state_of_the_task_stands_in_later_requests(home: Home, ana: Identity) -> None:
    model = FakeModel(replies=["Done."])
    agent = home.agent(model, MemoryMiddleware(recall="automatic"))
    for n in range(6):
        agent.invoke(say(f"Please migrate table {n} to PostgreSQL."), on("long"), context=ana)
    shown = ["<task_state>" in "\n".join(message.text for message in prompt) for prompt in model.prompts]
    assert shown == [False] * 5 + [True]
    assert len(agent.get_state(on("long")).values["messages"]) == 12, "it is in no stored message"
