"""Requests that a provider would refuse, and what is sent instead."""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.nodes.sendable import joined, sendable
from everthread.nodes.state import MARK, is_marked


def call(*ids: str, content: Any = "", name: str = "a") -> AIMessage:
    return AIMessage(content, tool_calls=[{"name": "look", "args": {}, "id": each} for each in ids], id=name)


def result(call_id: str, text: str = "found") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, name="look")


def ids(messages: list[BaseMessage]) -> list[Any]:
    """The ids of the calls of each message, and of the call that each result answers."""
    return [
        [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else message.tool_call_id
        for message in messages
        if isinstance(message, AIMessage | ToolMessage)
    ]


def test_a_request_that_is_right_is_sent_as_it_is() -> None:
    messages = [SystemMessage("s"), HumanMessage("h"), call("1"), result("1"), AIMessage("b")]
    assert all(sent is given for sent, given in zip(sendable(messages), messages, strict=True))


def test_an_id_that_is_used_again_gets_another_one_with_its_result() -> None:
    block = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    messages = [HumanMessage("h"), call("1", "1"), result("1"), call("1", content=[block], name="b"), result("1", "x")]
    sent = sendable(messages)
    assert ids(sent) == [["1", "1-2"], "1", "1-2", ["1-3"], "1-3"]
    assert sent[4].content == [{**block, "id": "1-3"}]
    assert sendable(sent) == sent


def test_system_messages_are_one_at_the_beginning() -> None:
    blocks: list[Any] = [{"type": "text", "text": "cached", "cache_control": {"type": "ephemeral"}}]
    messages = [SystemMessage("ours"), HumanMessage("h"), SystemMessage("theirs"), SystemMessage(" ")]
    assert sendable(messages) == [SystemMessage("ours\n\ntheirs"), HumanMessage("h")]
    assert joined(SystemMessage(blocks), SystemMessage("b")).content == [*blocks, {"type": "text", "text": "b"}]


def test_nothing_that_is_empty_is_sent() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    messages = [
        HumanMessage(" \n"),
        AIMessage(""),
        AIMessage([{"type": "text", "text": ""}]),
        HumanMessage([{"type": "text", "text": " "}, picture]),
        call("1", content=[{"type": "text", "text": ""}]),
        result("1", ""),
    ]
    sent = sendable(messages)
    assert [(message.type, message.content) for message in sent] == [
        ("human", "(empty)"),
        ("human", [picture]),
        ("ai", ""),
        ("tool", ""),
    ]


def test_the_user_speaks_first() -> None:
    first, second = sendable([AIMessage("Hello, I am here to help.")])
    assert (first.type, first.text) == ("human", "The earlier part of this conversation is not shown.")
    assert is_marked(first)
    assert second.text == "Hello, I am here to help."


def test_a_call_that_could_not_be_read_is_not_sent_again() -> None:
    broken: Any = {"name": "look", "args": "{", "id": "2", "error": None, "type": "invalid_tool_call"}
    block = {"type": "tool_use", "id": "2", "name": "look", "input": {}}
    raw = {"tool_calls": [{"id": "2"}], "other": 1}
    message = AIMessage(["I look.", block], invalid_tool_calls=[broken], additional_kwargs=raw)
    _, sent = sendable([HumanMessage("h"), message])
    assert isinstance(sent, AIMessage)
    assert (sent.content, sent.invalid_tool_calls, sent.additional_kwargs) == (["I look."], [], {"other": 1})


def test_a_call_that_stands_in_the_content_alone_is_not_sent() -> None:
    block = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    question = HumanMessage("h")
    assert sendable([question, AIMessage([block])]) == [question]
    assert sendable([question, AIMessage(["I look.", block])]) == [question, AIMessage(["I look."])]
    whole = call("1", content=[block])
    assert sendable([question, whole, result("1")])[1] is whole


def test_a_part_without_a_type_is_a_text_or_nothing() -> None:
    assert sendable([HumanMessage([{"text": "Hello"}, {}, {"type": ""}])]) == [
        HumanMessage([{"text": "Hello", "type": "text"}])
    ]


def test_a_notice_between_a_call_and_its_result_comes_after_it() -> None:
    notice = HumanMessage("due", additional_kwargs={MARK: {"kind": "notice"}})
    sent = sendable([HumanMessage("h"), call("1"), notice, result("1")])
    assert [message.type for message in sent] == ["human", "ai", "tool", "human"]
