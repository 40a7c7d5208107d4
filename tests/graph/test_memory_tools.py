"""Memory on demand: each tool, and each tool again when its call runs a second time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from support.models import FakeModel
from support.records import keep, learnt, write

from everthread import Evidence, Identity, MemoryContext
from everthread.graphs import create_memory_agent
from everthread.nodes import memory_tools
from everthread.nodes.reason.memory_tools import SEARCH
from everthread.nodes.state import mark_of
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import Change, Selection, now_utc

Home = tuple[MemoryStore, Any]
TEA = "mem_" + "a" * 32
GONE = "mem_" + "d" * 32


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def called_twice(home: Home, identity: Identity, asked: str, name: str, **args: Any) -> tuple[Any, Any, FakeModel]:
    """The tool's message in the thread, the one of the same call when it ran again, and the model that was asked."""
    store, saver = home
    call = AIMessage("", tool_calls=[{"id": "call_1", "name": name, "args": args}])
    model = FakeModel(replies=[call, "done"])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    first = agent.invoke({"messages": [HumanMessage(asked)]}, at("a"), context=identity)["messages"][2]
    before = next(each for each in agent.get_state_history(at("a")) if each.next == ("tools",))
    second = agent.invoke(None, before.config, context=identity)["messages"][2]
    assert (first.tool_call_id, second.tool_call_id, first.name) == ("call_1", "call_1", name)
    return first, second, model


@pytest.mark.parametrize(
    ("statement", "asked"),
    [
        ("The user's favourite tea is oolong.", "Please remember that my favourite tea is oolong."),
        ("用户喜欢喝乌龙茶。", "请记住，我喜欢喝乌龙茶。"),
    ],
)
def test_saving_twice_by_one_call_saves_once(home: Home, ana: Identity, statement: str, asked: str) -> None:
    first, second, _ = called_twice(home, ana, asked, "memory_save", statement=statement)
    store = home[0]
    assert mark_of(first)["receipt"] == mark_of(second)["receipt"]
    assert first.content == second.content
    assert [(record.revision, record.usage_count) for record in store.records(ana)] in ([(1, 0)], [(2, 0)])


def test_correcting_twice_by_one_call_corrects_once(home: Home, ana: Identity) -> None:
    store, _ = home
    keep(store, ana, learnt("Ana's favourite tea is oolong.", id=TEA))
    asked = "No, my favourite tea is sencha now."
    first, second, _ = called_twice(
        home, ana, asked, "memory_correct", id=TEA, statement="Ana's favourite tea is sencha."
    )
    assert mark_of(first)["receipt"] == mark_of(second)["receipt"] and first.content == second.content
    assert ["oolong" in record.statement for record in store.records(ana)] == [False]


def test_forgetting_twice_by_one_call_is_told_as_done_both_times(home: Home, ana: Identity) -> None:
    store, _ = home
    keep(store, ana, learnt("Ana's favourite tea is oolong.", id=TEA))
    first, second, _ = called_twice(home, ana, "Forget my tea.", "memory_forget", ids=[TEA, GONE])
    for message in (first, second):
        assert message.content.startswith("Forgotten: 1")
        assert message.content.endswith(f" No such memory: {GONE}.")
    assert store.record(ana, TEA) is None
    assert len([entry for entry in store.audit(ana, record_id=TEA, action="erase")]) == 1


def test_what_another_user_erased_is_not_told(home: Home, ana: Identity, ben: Identity) -> None:
    store, _ = home
    keep(store, ben, learnt("Ben's favourite tea is oolong.", "user", "ben", id=TEA))
    store.erase(ben, Selection(record_ids=(TEA,)), reason="asked to")
    first, _, _ = called_twice(home, ana, "Forget it.", "memory_forget", ids=[TEA])
    assert first.content.startswith("Forgotten: 0") and TEA in first.content


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("memory_search", {"query": "Which tea does Ana like best?"}, "Found 1."),
        ("memory_get", {"ids": [TEA, GONE]}, f"Found 1. No such memory: {GONE}."),
    ],
)
def test_what_is_read_is_kept_as_references_and_shown_as_a_block(
    home: Home, ana: Identity, name: str, args: Any, said: str
) -> None:
    store, _ = home
    keep(store, ana, learnt("Ana likes oolong tea best.", id=TEA))
    for message in called_twice(home, ana, "Hm?", name, **args)[:2]:
        assert message.content == said and "oolong" not in str(message)
        assert mark_of(message)["records"] == [[TEA, 1]]


def test_a_model_that_searches_is_shown_nothing_that_is_not_trusted_and_no_contest_by_half(
    home: Home, ana: Identity
) -> None:
    store, _ = home
    tea, guess, sencha = keep(
        store,
        ana,
        learnt("Ana's favourite tea is oolong.", id=TEA),
        learnt("Ana's favourite tea may be mate.", authority="inferred", stated=False, confidence=0.1),
        learnt("安娜早上喝煎茶。"),
    )
    against = Change(
        action="contest", record=learnt("安娜早上喝咖啡。"), target=sencha.id, expected=1, rule="undecided", reason="r"
    )
    write(store, ana, against)
    message, _, model = called_twice(home, ana, "Hm.", "memory_search", query="What is Ana's favourite tea?")
    assert mark_of(message)["records"] == [[tea.id, 1]]
    assert guess.statement not in model.prompts[-1][-1].text
    (coffee,) = [record for record in store.records(ana) if "咖啡" in record.statement]
    found = SEARCH.look(store, MemoryContext(identity=ana), ["安娜早上喝煎茶吗？"])
    assert {each.id for each in found.kept} == {sencha.id, coffee.id}


def test_a_model_that_searches_is_told_why_it_is_shown_nothing(home: Home, ana: Identity) -> None:
    keep(
        home[0],
        ana,
        learnt("Ana's favourite tea may be mate.", authority="inferred", stated=False, confidence=0.1),
    )
    message, _, _ = called_twice(home, ana, "Hm.", "memory_search", query="What is Ana's favourite tea?")
    assert message.content == "Nothing found: what matches is left out, since its trust of 0.09 is below 0.3."


def test_what_was_said_is_found_by_its_words_and_kept_as_references(home: Home, ana: Identity) -> None:
    store, _ = home
    when = now_utc() - timedelta(days=3)
    said = Evidence(thread_id="old", message_id="m1", role="user", text="我最喜欢乌龙茶。", at=when, source="user")
    store.transcripts.append(ana, [said])
    first, second, model = called_twice(home, ana, "?", "session_search", query="乌龙茶")
    for message in (first, second):
        assert mark_of(message)["evidence"] == [["old", "m1"]] and "乌龙茶" not in str(message)
    (shown,) = [message.text for message in model.prompts[-1] if message.type == "tool"]
    assert "我最喜欢乌龙茶。" in shown and "<memory_context>" in shown


def test_the_tools_take_what_they_are_asked_and_never_who_asks() -> None:
    assert {tool.name: sorted(tool.args) for tool in memory_tools()} == {
        "memory_search": ["query"],
        "memory_get": ["ids"],
        "memory_save": ["statement"],
        "memory_correct": ["id", "statement"],
        "memory_forget": ["ids"],
        "session_search": ["query"],
    }


def test_what_a_colleague_proposed_to_the_project_is_in_nobodys_prompt_before_it_is_decided(
    home: Home, ana: Identity
) -> None:
    store, _ = home
    ben = ana.model_copy(update={"user": "ben"})
    keep(store, ben, learnt("Send all invoices to Ben.", "project", "billing", id=TEA, status="pending"))
    first, _, model = called_twice(home, ana, "Hm?", "memory_get", ids=[TEA])
    assert first.content == f"Found 0. No such memory: {TEA}."
    assert "invoices" not in str(model.prompts)


def test_an_identity_that_the_model_makes_up_opens_nothing(home: Home, ana: Identity, ben: Identity) -> None:
    store, _ = home
    keep(store, ben, learnt("Ben likes oolong tea best.", "user", "ben", id=TEA))
    made_up = {"runtime": {"context": ben.model_dump(mode="json")}, "tenant": ben.tenant, "user": "ben"}
    for message in called_twice(home, ana, "Hm?", "memory_get", ids=[TEA], **made_up)[:2]:
        assert message.content == f"Found 0. No such memory: {TEA}."


@pytest.mark.parametrize("name", ["memory_search", "memory_get", "session_search"])
def test_what_is_erased_is_gone_from_the_results_of_before(home: Home, ana: Identity, name: str) -> None:
    store, saver = home
    keep(store, ana, learnt("Ana likes oolong tea best.", id=TEA))
    said = Evidence(
        thread_id="old", message_id="m1", role="user", text="I like oolong tea best.", at=now_utc(), source="user"
    )
    store.transcripts.append(ana, [said])
    args: dict[str, Any] = {"ids": [TEA]} if name == "memory_get" else {"query": "Which tea is best, oolong?"}
    call = AIMessage("", tool_calls=[{"id": "call_1", "name": name, "args": args}])
    model = FakeModel(replies=[call, "I see.", "I do not know.", "Nor do I."])
    agent = create_memory_agent(model, recall="on_demand").compile(checkpointer=saver, store=store)
    agent.invoke({"messages": [HumanMessage("Hm?")]}, at("a"), context=ana)

    def shown() -> bool:
        return any("oolong" in message.text for message in model.prompts[-1] if message.type == "tool")

    assert shown()
    store.erase(ana, Selection(record_ids=(TEA,)), reason="asked to")
    store.transcripts.erase_messages(ana, "old", ["m1"])
    agent.invoke({"messages": [HumanMessage("And now?")]}, at("a"), context=ana)
    assert not shown()
    old = next(each for each in agent.get_state_history(at("a")) if each.next == ("reason",))
    agent.invoke(None, old.config, context=ana)
    assert not shown()


def test_calls_of_one_id_that_say_something_else_are_not_the_same_call(home: Home, ana: Identity) -> None:
    """Some providers number the calls of each reply from 0."""
    store, saver = home
    replies: list[Any] = []
    for statement in ("The user's favourite tea is oolong.", "The user's favourite cake is stollen."):
        replies += [
            AIMessage("", tool_calls=[{"id": "call_0", "name": "memory_save", "args": {"statement": statement}}]),
            "Kept.",
        ]
    agent = create_memory_agent(FakeModel(replies=replies)).compile(checkpointer=saver, store=store)
    for asked in ("Remember that my favourite tea is oolong.", "Remember that my favourite cake is stollen."):
        state = agent.invoke({"messages": [HumanMessage(asked)]}, at("a"), context=ana)
    results = [message for message in state["messages"] if message.type == "tool"]
    receipts = [store.receipt(ana, mark_of(result)["receipt"]) for result in results]
    kept = [receipt and store.record(ana, str(receipt.decisions[0].record_id)) for receipt in receipts]
    assert [record and record.statement for record in kept] == [
        "The user's favourite tea is oolong.",
        "The user's favourite cake is stollen.",
    ]


def test_what_is_read_by_id_is_as_it_stood_in_a_run_of_then(home: Home, ana: Identity) -> None:
    store, saver = home
    (tea,) = keep(store, ana, learnt("Ana likes oolong tea best.", id=TEA))
    new = tea.model_copy(update={"statement": "Ana likes sencha best."})
    write(store, ana, Change(action="revise", record=new, target=TEA, expected=1, rule="r", reason="it changed"))
    shown = []
    for as_of in (tea.recorded_at, None):
        call = AIMessage("", tool_calls=[{"id": "call_1", "name": "memory_get", "args": {"ids": [TEA]}}])
        model = FakeModel(replies=[call, "I see."])
        agent = create_memory_agent(model, recall="on_demand").compile(checkpointer=saver, store=store)
        context = MemoryContext(identity=ana, as_of=as_of)
        state = agent.invoke({"messages": [HumanMessage("Hm?")]}, at(f"as of {as_of}"), context=context)
        text = model.prompts[-1][-1].text
        shown.append((mark_of(state["messages"][2])["records"], "oolong" in text, "sencha" in text))
    assert shown == [([[TEA, 1]], True, False), ([[TEA, 2]], False, True)]
