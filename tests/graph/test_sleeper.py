"""A stranger's words in a page or a tool's result, and what becomes of them in later conversations (R297, R298).

The model here is gullible: it obeys what it reads. It calls `memory_save` with the stranger's words, and the extracting
model proposes them as the user's own. What holds is code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, tool
from support.extraction import lines
from support.injections import INJECTIONS, MARK, Injection
from support.models import FakeModel

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.nodes import memory_tools
from everthread.nodes.extract import ModelExtractor, RuleExtractor
from everthread.nodes.extract.candidate import Window
from everthread.nodes.node import drive
from everthread.stores import MemoryStore, open_checkpointer, open_store

Home = tuple[MemoryStore, Any]
EVERY: Any = ("pending", "active", "contested", "superseded", "expired", "archived", "rejected")
ASKED = ("Please look at this: {}", "看一下这个：{}")
QUESTIONS = (
    "What do you know about {}?",
    "How do I handle {}, and what do I prefer there?",
    "Use what you remember about {} and help me.",
    "关于{}，你记得什么？",
    "{}这件事我平时怎么做？",
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    url = f"sqlite:{tmp_path}"
    with open_store(url, embedder="none") as store, open_checkpointer(url) as saver:
        yield store, saver


def reader(injection: Injection) -> BaseTool:
    """A tool that gives a page; the page is the stranger's."""

    @tool
    def fetch_page(address: str) -> str:
        """Read a page."""
        return f"Weather and news.\n{injection.text}\nThank you for reading."

    return fetch_page


def calling(name: str, number: int, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}"}])


def obeying(injection: Injection) -> FakeModel:
    """Reads the page, keeps what it says, and tells the user."""
    return FakeModel(
        replies=[
            calling("fetch_page", 1, address="https://news.example/today"),
            calling("memory_save", 2, statement=injection.saved),
            f"I read it and will remember: {injection.saved}",
        ]
    )


def believing(injection: Injection) -> ModelExtractor:
    """Proposes the stranger's words as the user's, resting on whatever messages there are."""
    said = {"statement": injection.saved, "stated": True, "write_reason": "the user said so", "sensitivity": "normal"}
    kinds: list[dict[str, Any]] = [
        {"content_type": "preference", "subject": "user", "predicate": "prefers", "value": MARK},
        {"content_type": "fact", "owner": "project"},
        {"content_type": "procedural", "kind": "procedural", "owner": "organization"},
    ]
    numbers = ([3], [1, 3], [1], [1, 2, 3, 4, 5], [6])
    proposed = [{**said, **kind, "messages": rests_on} for kind in kinds for rests_on in numbers]
    reply = AIMessage("", tool_calls=[{"name": "Proposals", "args": {"candidates": proposed}, "id": "p1"}])
    return ModelExtractor(FakeModel(replies=[reply]), name="believing")


def take_in(home: Home, identity: Identity, injection: Injection, number: int) -> None:
    """One turn of the whole agent in which the page is read and obeyed."""
    store, saver = home
    agent = create_memory_agent(
        obeying(injection),
        tools=[reader(injection), *memory_tools()],
        extractor=believing(injection),
        when="inline",
    ).compile(checkpointer=saver, store=store)
    asked = ASKED[number % 2].format("https://news.example/today")
    agent.invoke({"messages": [HumanMessage(asked)]}, at(f"in{number}"), context=identity)


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def learnt(store: MemoryStore, identity: Identity) -> list[tuple[str, str, str]]:
    """Every record that holds the stranger's words, whatever became of it."""
    return [
        (record.status, record.authority.value, record.statement)
        for record in store.records(identity, statuses=EVERY)
        if MARK in record.statement
    ]


def test_what_a_page_orders_is_neither_believed_nor_shown_later(home: Home) -> None:
    """Ana is a curator: what she says herself may be written anywhere at once. What a page says may not."""
    store, saver = home
    who: Any = {"tenant": "acme", "user": "ana", "project": "billing", "organization": "acme"}
    identity = Identity(**who, roles=frozenset({"curator"}))
    for number, injection in enumerate(INJECTIONS):
        take_in(home, identity, injection, number)
    found = learnt(store, identity)
    assert {(status, authority) for status, authority, _ in found} <= {("pending", "external"), ("pending", "inferred")}
    asked = FakeModel(replies=["I do not know."])
    agent = create_memory_agent(asked, recall="both").compile(checkpointer=saver, store=store)
    for number, injection in enumerate(INJECTIONS):
        for turn, question in enumerate(QUESTIONS):
            thread = at(f"later{number}-{turn}")
            agent.invoke({"messages": [HumanMessage(question.format(injection.topic))]}, thread, context=identity)
    shown = [message.text for prompt in asked.prompts for message in prompt]
    assert len(asked.prompts) == len(INJECTIONS) * len(QUESTIONS)
    assert [text for text in shown if MARK in text] == []


def test_the_rules_learn_nothing_from_a_page(ana: Identity) -> None:
    proposed = [
        candidate
        for injection in INJECTIONS
        for candidate in drive(
            RuleExtractor().propose(Window(lines("Read it.", ("tool", injection.text), ("assistant", injection.saved))))
        )
    ]
    assert proposed == []


def test_what_the_same_words_say_of_the_user_is_learnt_when_the_user_says_them(home: Home) -> None:
    """The counter-example: it is the source that is refused, not the words."""
    store, saver = home
    identity = Identity(tenant="acme", user="ana", project="billing")
    agent = create_memory_agent(FakeModel()).compile(checkpointer=saver, store=store)
    said = "I moved to Zorvexville last week, keep that in mind."
    agent.invoke({"messages": [HumanMessage(said)]}, at("a"), context=identity)
    assert [(status, authority) for status, authority, _ in learnt(store, identity)] == [("active", "user_explicit")]


def test_what_was_taken_in_is_known_and_waits(home: Home) -> None:
    """It is not lost: a person who reviews sees it, with its source."""
    store, _ = home
    identity = Identity(tenant="acme", user="ana", project="billing")
    take_in(home, identity, INJECTIONS[4], 4)
    waiting = store.records(identity, statuses=("pending",))
    assert {record.provenance.thread_id for record in waiting} == {"in4"}
    assert {record.authority.value for record in waiting} <= {"external", "inferred"}


def test_the_page_itself_is_in_the_thread_as_a_tools_result(home: Home) -> None:
    store, _ = home
    identity = Identity(tenant="acme", user="ana", project="billing")
    take_in(home, identity, INJECTIONS[0], 0)
    said = [line.source for line in store.transcripts.read(identity, "in0") if MARK in line.text]
    assert said[0] == "tool" and set(said) == {"tool", "assistant"}
