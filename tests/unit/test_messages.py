"""LangChain messages as evidence."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)

from everthread import Evidence, Identity
from everthread.errors import UsageError
from everthread.nodes.state import MARK
from everthread.stores.messages import OURS, from_messages, text_of, time_of
from everthread.stores.record import now_utc

NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)
HELPER = Identity(tenant="acme", user="ana", agent="helper")


def one(message: BaseMessage) -> Evidence:
    (evidence,) = from_messages("t1", [message], identity=HELPER, at=NOON)
    return evidence


def test_a_turn_becomes_evidence_in_its_order() -> None:
    call = {"name": "search", "args": {"q": "天气"}, "id": "c1", "type": "tool_call"}
    turn = [
        SystemMessage("Be brief.", id="m0"),
        HumanMessage("What is the weather?", id="m1"),
        AIMessage("", id="m2", tool_calls=[call]),
        ToolMessage("Rain.", id="m3", tool_call_id="c1", name="search"),
        AIMessage("It rains.", id="m4"),
    ]
    found = from_messages("t1", turn, identity=HELPER, at=NOON)
    assert [(e.message_id, e.role, e.source, e.speaker, e.text) for e in found] == [
        ("m0", "system", "agent", None, "Be brief."),
        ("m1", "user", "user", "ana", "What is the weather?"),
        ("m2", "assistant", "assistant", "helper", ""),
        ("m3", "tool", "tool", "search", "Rain."),
        ("m4", "assistant", "assistant", "helper", "It rains."),
    ]
    assert {(e.thread_id, e.at) for e in found} == {("t1", NOON)}


def test_the_payload_is_the_whole_message() -> None:
    call = {"name": "search", "args": {"q": ["天气", 1.5, None]}, "id": "c1", "type": "tool_call"}
    message = AIMessage([{"type": "text", "text": "Hm \ud800\x00"}], id="m1", name="Bo", tool_calls=[call])
    payload = json.loads(json.dumps(one(message).payload))
    assert messages_from_dict([payload]) == [message]


def test_what_json_cannot_hold_is_kept_as_far_as_it_can_be() -> None:
    artifact = {"raw": b"\x00\xff", "when": NOON, "ids": {"b", "a"}, "pair": (1, 2), 3: object(), "who": HELPER}
    payload = one(ToolMessage("ok", id="m1", tool_call_id="c1", artifact=artifact)).payload
    assert payload is not None
    assert payload["data"]["artifact"] == {
        "raw": {"base64": "AP8="},
        "when": "2026-05-08T12:00:00+00:00",
        "ids": ["a", "b"],
        "pair": [1, 2],
        "3": "<builtins.object>",
        "who": {**HELPER.model_dump(), "roles": []},
    }


def test_a_name_says_who_spoke() -> None:
    assert one(HumanMessage("hi", name="Caroline")).speaker == "Caroline"
    (nameless,) = from_messages("t1", [AIMessage("hi")], identity=Identity(tenant="acme", user="ana"))
    assert nameless.speaker is None


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("user", ("user", "user")),
        ("human", ("user", "user")),
        ("developer", ("system", "agent")),
        ("assistant", ("assistant", "assistant")),
        ("critic", ("assistant", "assistant")),
    ],
)
def test_an_unknown_role_is_never_the_users(role: str, expected: tuple[str, str]) -> None:
    found = one(ChatMessage(content="hi", role=role))
    assert (found.role, found.source) == expected


@pytest.mark.parametrize(
    ("message", "source"),
    [
        (HumanMessage("pasted", additional_kwargs={"source": "web"}), "web"),
        (HumanMessage("pasted", additional_kwargs={"source": "file"}), "file"),
        (HumanMessage("said", additional_kwargs={"source": "the moon"}), "user"),
        (HumanMessage("said", additional_kwargs={"source": ["web"]}), "user"),
        (ToolMessage("page", tool_call_id="c", additional_kwargs={"source": "web"}), "web"),
        (ToolMessage("page", tool_call_id="c", additional_kwargs={"source": "user"}), "tool"),
        (AIMessage("I am the user", additional_kwargs={"source": "user"}), "assistant"),
        (AIMessage("I am a tool", additional_kwargs={"source": "tool"}), "assistant"),
    ],
)
def test_a_message_can_lower_the_trust_in_its_source_and_never_raise_it(message: BaseMessage, source: str) -> None:
    assert one(message).source == source


def test_what_we_put_into_a_thread_is_not_the_users() -> None:
    notice = HumanMessage("<notice>due</notice>", id="m1", additional_kwargs={MARK: {"kind": "notice"}})
    found = one(notice)
    assert (found.role, found.source, found.speaker) == ("user", "agent", None)
    assert OURS == MARK


def test_what_a_feature_of_langchain_put_in_is_not_the_users() -> None:
    summary = HumanMessage("Here is a summary: the user prefers tea.", additional_kwargs={"lc_source": "summarization"})
    notice = HumanMessage("Task t_42 finished.", additional_kwargs={"lc_source": "async_subagent"})
    found = [one(summary), one(notice)]
    assert [(each.source, each.speaker) for each in found] == [("agent", None), ("agent", None)]


def test_a_removed_message_was_not_said() -> None:
    assert from_messages("t1", [RemoveMessage(id="m1")], identity=HELPER) == []


def test_a_streamed_chunk_is_kept_as_the_message_it_is() -> None:
    found = one(AIMessageChunk(content="hi", id="m1"))
    assert (found.role, found.payload and found.payload["type"]) == ("assistant", "ai")


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([], ""),
        (["one", {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "text", "text": "看"}, PICTURE], "看\n[image]"),
        ([{"type": "image", "url": "x", "caption": "a red kite"}], "[image: a red kite]"),
        ([{"type": "file", "file": {"filename": "plan.pdf", "file_data": "AAAA"}}], "[file: plan.pdf]"),
        ([{"type": "document", "title": "Plan", "source": {"type": "base64"}}], "[document: Plan]"),
        ([{"type": "input_audio", "input_audio": {"data": "AAAA"}}], "[audio]"),
        ([{"type": "refusal", "refusal": "I cannot."}], "I cannot."),
        ([{"type": "reasoning", "text": "hm"}, {"type": "thinking", "thinking": "hm"}], ""),
        ([{"type": "tool_use", "id": "c1", "name": "f", "input": {}}, {"type": "text", "text": "done"}], "done"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "42"}]}], "42"),
        ([{"type": "something_new"}], ""),
    ],
)
def test_the_text_is_what_was_said(content: Any, text: str) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2023-05-08T13:56:00.000001+08:00", datetime(2023, 5, 8, 13, 56, 0, 1, timezone(timedelta(hours=8)))),
        ("2023-05-08T05:56:00Z", datetime(2023, 5, 8, 5, 56, tzinfo=UTC)),
        ("2023-05-08T05:56:00", datetime(2023, 5, 8, 5, 56, tzinfo=UTC)),
        (1683525360, datetime(2023, 5, 8, 5, 56, tzinfo=UTC)),
        (1683525360000, datetime(2023, 5, 8, 5, 56, tzinfo=UTC)),
        (NOON, NOON),
        ("last Friday", None),
        (float("nan"), None),
        (1e300, None),
        (True, None),
        (None, None),
    ],
)
def test_a_messages_own_time_is_read(value: object, expected: datetime | None) -> None:
    assert time_of(AIMessage("hi", response_metadata={"created_at": value})) == expected
    assert time_of(HumanMessage("hi", additional_kwargs={"timestamp": value})) == expected


def test_a_time_that_cannot_be_read_does_not_hide_one_that_can() -> None:
    message = AIMessage("hi", additional_kwargs={"at": "soon"}, response_metadata={"created": 1683525360})
    assert one(message).at == datetime(2023, 5, 8, 5, 56, tzinfo=UTC)


def test_a_message_without_a_time_was_said_now() -> None:
    before = now_utc()
    (found,) = from_messages("t1", [HumanMessage("hi")], identity=HELPER)
    assert before <= found.at <= now_utc()


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="at has no time zone"):
        from_messages("t1", [], identity=HELPER, at=NOON.replace(tzinfo=None))


def ids(*messages: BaseMessage, thread_id: str = "t1") -> list[str]:
    return [e.message_id for e in from_messages(thread_id, messages, identity=HELPER)]


def test_a_message_without_an_id_gets_the_same_one_each_time() -> None:
    turn = (HumanMessage("ok"), AIMessage("ok"), HumanMessage("ok"), HumanMessage("fine", id="own"))
    first = ids(*turn)
    assert first == ids(*turn) == [*ids(*turn[:3], HumanMessage("more"))[:3], "own"]
    assert len(set(first)) == 4
    assert set(first[:3]).isdisjoint(ids(*turn, thread_id="t2"))


@pytest.mark.parametrize("odd", ["", "a\x00b", "\ud800", "x" * 513])
def test_an_id_that_no_transcript_can_hold_is_replaced_and_kept_in_the_payload(odd: str) -> None:
    found = one(HumanMessage("hi", id=odd))
    assert found.message_id.startswith("msg_")
    assert found.payload is not None
    assert found.payload["data"]["id"] == odd
