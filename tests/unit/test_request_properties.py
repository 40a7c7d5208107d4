"""Whatever a thread has become, and wherever its window starts: every request is one that OpenAI and Anthropic take, it
stays within its budget, and what the model has not read yet is in it.

Histories are generated: parallel and nested calls, results that come late, twice, never or for nothing, ids used again,
empty contents, pictures, notices of ours, a host's own system messages, results of any size. How many are tried is
printed (`pytest -s`); EVERTHREAD_EXAMPLES=20000 tries more.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from support.models import FakeModel
from support.provider_rules import anthropic_refuses, openai_refuses

from everthread import Identity
from everthread.nodes import Compact, Flush, Reason
from everthread.nodes.compact import count_tokens
from everthread.nodes.eviction import evict
from everthread.nodes.node import runtime_for
from everthread.nodes.state import MARK, MemoryState, MemoryUpdate
from everthread.stores import MemoryStore, open_store

EXAMPLES = int(os.environ.get("EVERTHREAD_EXAMPLES", "600"))
ANA = Identity(tenant="acme", user="ana")
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TRIED: Counter[str] = Counter()
_threads = count()


@pytest.fixture(scope="module")
def store() -> Iterator[MemoryStore]:
    with open_store("sqlite::memory:", embedder="none") as opened:
        yield opened
    print(f"\nrequests checked against both providers: {dict(TRIED)}")


words = st.one_of(
    st.sampled_from(["", " ", "We decided on option 7.", "你好，我们决定用 PostgreSQL。", "\n", "ok"]),
    st.integers(1, 400).map(lambda n: f"word {n} " * n),
)
contents = st.one_of(
    words,
    st.lists(st.one_of(words.map(lambda text: {"type": "text", "text": text}), st.just(PICTURE), words), max_size=3),
)
ids = st.sampled_from(["call_0", "call_1", "call_2", "functions.look:3"])


@st.composite
def histories(draw: st.DrawFn) -> list[AnyMessage]:
    """A thread of anything, in any order; each message has its own id."""
    messages: list[AnyMessage] = []
    for _ in range(draw(st.integers(1, 25))):
        name = f"m{len(messages)}"
        match draw(st.sampled_from("hhhaaccccrrrrrrrsnoib")):
            case "h":
                messages.append(HumanMessage(draw(contents), id=name))
            case "a":
                messages.append(AIMessage(draw(contents), id=name))
            case "c":
                messages.append(calling(draw(contents), draw(st.lists(ids, min_size=1, max_size=4)), name))
            case "r":
                open_calls = [str(c["id"]) for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
                to = draw(st.sampled_from([*open_calls[-6:], "call_0"]))
                messages.append(result(draw(words), to, name, size=draw(st.sampled_from([0, 0, 0, 1_500, 40_000]))))
            case "s":
                messages.append(SystemMessage(draw(words), id=name))
            case "n":
                notice = {MARK: {"kind": "notice"}}
                messages.append(HumanMessage("<notice>due</notice>", id=name, additional_kwargs=notice))
            case "o":
                messages.append(result("for nothing", "call_nobody_made", name))
            case "i":
                broken: Any = {"name": "look", "args": "{", "id": draw(ids), "error": None, "type": "invalid_tool_call"}
                messages.append(AIMessage(draw(words), id=name, invalid_tool_calls=[broken]))
            case "b":
                messages.append(cast(AnyMessage, in_blocks(draw(ids), name)))
    return messages


def calling(content: Any, call_ids: list[str], name: str) -> AIMessage:
    return AIMessage(content, id=name, tool_calls=[{"name": "look", "args": {"n": 1}, "id": each} for each in call_ids])


def in_blocks(call_id: str, name: str) -> AIMessage:
    """As Anthropic's client gives it: the call is in the content too, and some text is empty."""
    block = {"type": "tool_use", "name": "look", "input": {}, "id": call_id}
    return AIMessage(
        [{"type": "text", "text": ""}, block], id=name, tool_calls=[{"name": "look", "args": {}, "id": call_id}]
    )


def result(text: str, call_id: str, name: str, size: int = 0) -> ToolMessage:
    return ToolMessage(f"result {name} {text}".ljust(size, "x"), tool_call_id=call_id, name="look", id=name)


def unread_results(messages: list[AnyMessage]) -> list[ToolMessage]:
    """The results after the model's last message that answer a call: of several for one call the first."""
    called: dict[str, int] = {}
    answered: set[tuple[int, str]] = set()
    last = max((n for n, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    found = []
    for place, message in enumerate(messages):
        if isinstance(message, AIMessage):
            called |= {str(call["id"]): place for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in called:
            call = (called[message.tool_call_id], message.tool_call_id)
            if call not in answered and place > last:
                found.append(message)
            answered.add(call)
    return found


class Turn:
    """What the agent does before it asks the model: evict, and flush and compact when the request is too long."""

    def __init__(self, store: MemoryStore, max_tokens: int, keep_tokens: int, system_prompt: str) -> None:
        self.store, self.model = store, FakeModel()
        self.reason = Reason(self.model, system_prompt=system_prompt, max_tokens=max_tokens)
        self.flush, self.compact = Flush(keep_tokens=keep_tokens), Compact(keep_tokens=keep_tokens)
        self.thread = f"thread-{next(_threads)}"
        self.runtime = runtime_for(ANA, store, self.thread)

    def evicted(self, message: AnyMessage) -> AnyMessage:
        if not isinstance(message, ToolMessage):
            return message
        return evict(message, ANA, self.store, thread_id=self.thread).message

    def asked(self, state: MemoryState) -> tuple[MemoryState, list[BaseMessage]]:
        """The state as it is then, and the request."""
        if self.reason.over_budget(state, self.runtime):
            TRIED["over budget"] += 1
            for node in (self.flush, self.compact):
                state = cast(MemoryState, {**state, **cast(MemoryUpdate, node(state, self.runtime))})
            TRIED["cut"] += "cut" in state.get("window", {})
            TRIED["shrunk"] += bool(state.get("window", {}).get("shrunk"))
        self.reason(state, self.runtime)
        TRIED["requests"] += 1
        return state, self.model.prompts[-1]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[*HealthCheck])
@given(
    history=histories(),
    places=st.lists(st.integers(1, 25), max_size=3),
    max_tokens=st.sampled_from([150, 1_500, 3_000, 6_000, 30_000]),
    share=st.sampled_from([0.2, 0.5, 0.9]),
    system_prompt=st.sampled_from(["", "You are helpful."]),
)
def test_every_request_is_valid_within_budget_and_keeps_what_is_unread(
    store: MemoryStore,
    history: list[AnyMessage],
    places: list[int],
    max_tokens: int,
    share: float,
    system_prompt: str,
) -> None:
    turn = Turn(store, max_tokens, int(max_tokens * share), system_prompt)
    history = [turn.evicted(message) for message in history]
    window: Any = {}
    for end in sorted({min(place, len(history)) for place in places} | {len(history)}):
        messages = history[:end]
        if not any(isinstance(message, HumanMessage) for message in messages):
            continue  # nobody has asked anything yet
        state, sent = turn.asked({"messages": messages, "window": window})
        window = state.get("window", {})
        assert state["messages"] == messages
        assert openai_refuses(sent) == []
        assert anthropic_refuses(sent) == []
        texts = [message.content for message in sent if isinstance(message, ToolMessage)]
        assert [each.content for each in unread_results(messages) if each.content not in texts] == []
        assert count_tokens(sent) <= max(max_tokens, least(sent, messages))


def least(sent: list[BaseMessage], messages: list[AnyMessage]) -> int:
    """The tokens of what may not be left out of a request: system message, summary, and from the call on whose result
    the model has not read, or the first message that it has not."""
    last = max((n for n, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    unread = {message.id for message in messages[last + 1 :]}
    head = [each for each in sent if isinstance(each, SystemMessage) or each.id == "everthread-history"]
    first = next((n for n, message in enumerate(sent) if message.id in unread), len(sent))
    while first and (first == len(sent) or isinstance(sent[first], ToolMessage)):
        first -= 1
    return count_tokens(head) + count_tokens([each for each in sent[first:] if each not in head]) + 20
