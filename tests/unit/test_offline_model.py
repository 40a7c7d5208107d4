"""The offline model repeats memory, calls the memory tools when told to, and says that it is offline."""

from __future__ import annotations

from datetime import UTC, datetime

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from everthread import Authority, Record, Scope
from everthread.nodes.arrivals import notice
from everthread.nodes.block import render
from everthread.nodes.reason import OfflineModel, memory_tools
from everthread.stores.record import Provenance

KNOWN = Record(
    statement="The user prefers <b>tea</b>.",
    scope=Scope(owner="user", owner_id="ana"),
    provenance=Provenance(
        source="user",
        actor="ana",
        thread_id="a",
        extracted_by="test",
        observed_at=datetime(2026, 3, 4, tzinfo=UTC),
    ),
    write_reason="stated",
    authority=Authority.USER_EXPLICIT,
)


def test_it_answers_with_source_and_date() -> None:
    reply = OfflineModel().invoke([SystemMessage(render([KNOWN])), HumanMessage("What do I drink?", id="h")])
    assert "The user prefers <b>tea</b>." in reply.text
    assert "from user ana, thread a | 2026-03-04" in reply.text
    assert "Offline model" in reply.text


def test_it_says_so_when_it_knows_nothing() -> None:
    assert OfflineModel().invoke([HumanMessage("What do I drink?", id="h")]).text.startswith("I have no memory")
    assert OfflineModel().invoke([HumanMessage("我喝什么？", id="h")]).text.startswith("我没有相关的记忆")


def test_it_says_what_is_due_once() -> None:
    said = HumanMessage("Hello.", id="h")
    due = notice("Reminder, due 9:00: call <Ben>", "task_1", task="task_1")
    reply = OfflineModel().invoke([said, due])
    assert reply.text.splitlines()[-1] == "Reminder, due 9:00: call <Ben>"
    assert "call <Ben>" not in OfflineModel().invoke([said, due, reply, said]).text


def test_a_notice_behind_a_tools_result_does_not_make_it_call_again() -> None:
    model = OfflineModel().bind_tools(memory_tools())
    said = HumanMessage("Remember that I drink tea.", id="h")
    call = model.invoke([said])
    result = ToolMessage("created mem_1", tool_call_id=call.tool_calls[0]["id"], name="memory_save", id="t")
    reply = model.invoke([said, call, result, notice("It is built.", "task_1", task="task_1")])
    assert (reply.tool_calls, reply.text) == ([], "created mem_1\nIt is built.")


def test_remember_calls_memory_save() -> None:
    model = OfflineModel().bind_tools(memory_tools())
    for said, kept in (("Remember that I drink tea.", "I drink tea."), ("请记住：我喝茶。", "我喝茶。")):
        reply = model.invoke([HumanMessage(said, id="h")])
        assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("memory_save", {"statement": kept})]


def test_one_memory_is_one_sentence() -> None:
    model = OfflineModel().bind_tools(memory_tools())
    for said, kept in (
        ("请记住，我住在上海。以后请用中文回答。", "我住在上海。"),
        ("Remember: I use v1.2. Thanks!", "I use v1.2."),
    ):
        reply = model.invoke([HumanMessage(said, id="h")])
        assert [call["args"] for call in reply.tool_calls] == [{"statement": kept}]
    assert model.invoke([HumanMessage("Remember: ...", id="h")]).tool_calls == []


def test_the_same_request_makes_the_same_call_id() -> None:
    model = OfflineModel().bind_tools(memory_tools())
    first, second = (model.invoke([HumanMessage("Remember that I drink tea.", id="h")]) for _ in range(2))
    assert first.tool_calls == second.tool_calls


def test_forget_searches_and_then_forgets_what_was_found() -> None:
    model = OfflineModel().bind_tools(memory_tools())
    asked = HumanMessage("Forget about my tea.", id="h")
    search = model.invoke([asked])
    assert search.tool_calls[0]["name"] == "memory_search"
    found = ToolMessage(
        content="Found 1.\n" + render([KNOWN]), tool_call_id=search.tool_calls[0]["id"] or "", name="memory_search"
    )
    forget = model.invoke([asked, search, found])
    assert (forget.tool_calls[0]["name"], forget.tool_calls[0]["args"]) == ("memory_forget", {"ids": [KNOWN.id]})
    assert isinstance(forget, AIMessage)
