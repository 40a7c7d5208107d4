"""Where the verbatim tail starts: both sides of the cut are valid for OpenAI and for Anthropic."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.nodes.compact.budget import count_tokens
from everthread.nodes.compact.cut import leaving, safe_cut
from everthread.nodes.state import MARK, MemoryState, visible


def call(*ids: str, text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=[{"name": "look", "args": {}, "id": each} for each in ids])


def result(call_id: str, text: str = "found") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id)


def one_each(messages: Any) -> int:
    """A counter by which every message takes one token."""
    return len(messages)


def problems(messages: list[BaseMessage]) -> list[str]:
    """What OpenAI or Anthropic would refuse: a result without its call, a call whose results do not follow it."""
    found = []
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                found.append(f"result {message.tool_call_id} without its call")
            else:
                open_calls.remove(message.tool_call_id)
            continue
        if open_calls:
            found.append(f"calls {open_calls} without their results")
        open_calls = [str(each["id"]) for each in message.tool_calls] if isinstance(message, AIMessage) else []
    return found + ([f"calls {open_calls} without their results"] if open_calls else [])


@st.composite
def histories(draw: st.DrawFn) -> list[BaseMessage]:
    """Valid threads: turns of a request, rounds of parallel calls with results in any order, steering, an answer; ids
    are used again in later rounds, as some providers do; a turn may lack its answer."""
    messages: list[BaseMessage] = []
    words = st.text("ab 你好", max_size=40)
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            messages.append(SystemMessage(draw(words)))
        messages.append(HumanMessage(draw(words)))
        for _ in range(draw(st.integers(0, 4))):
            ids = [f"call_{n}" for n in range(draw(st.integers(1, 3)))]
            messages.append(call(*ids, text=draw(words)))
            messages += [result(each, draw(words)) for each in draw(st.permutations(ids))]
            if draw(st.integers(0, 5)) == 0:
                messages.append(HumanMessage(draw(words)))
        if draw(st.booleans()):
            messages.append(AIMessage(draw(words)))
    return messages


@given(histories(), st.integers(0, 200))
def test_both_sides_of_a_cut_are_valid_for_every_provider(messages: list[BaseMessage], keep_tokens: int) -> None:
    assert problems(messages) == []
    cut = safe_cut(messages, keep_tokens)
    assert problems(messages[:cut]) == []
    assert problems(messages[cut:]) == []


@given(histories(), st.integers(0, 200))
def test_what_the_model_has_not_read_is_never_cut_off(messages: list[BaseMessage], keep_tokens: int) -> None:
    cut = safe_cut(messages, keep_tokens)
    answered = [n for n, message in enumerate(messages) if isinstance(message, AIMessage)]
    assert cut <= (answered[-1] + 1 if answered else 0)
    assert cut < max(len(messages), 1)


@given(histories(), st.integers(0, 200))
def test_the_tail_is_within_the_budget_whenever_a_safe_place_allows_it(
    messages: list[BaseMessage], keep_tokens: int
) -> None:
    cut = safe_cut(messages, keep_tokens)
    if count_tokens(messages[cut:]) <= keep_tokens:
        return
    smaller = [n for n in range(cut + 1, len(messages)) if count_tokens(messages[n:]) <= keep_tokens]
    unread_from = max((n + 1 for n, each in enumerate(messages) if isinstance(each, AIMessage)), default=0)
    assert all(problems(messages[n:]) or n > unread_from for n in smaller)


@given(histories(), st.integers(0, 200))
def test_a_cut_repeated_on_its_own_tail_changes_nothing(messages: list[BaseMessage], keep_tokens: int) -> None:
    tail = messages[safe_cut(messages, keep_tokens) :]
    again = safe_cut(tail, keep_tokens)
    assert again == 0 or count_tokens(tail) > keep_tokens


def test_what_fits_is_not_cut() -> None:
    assert safe_cut([HumanMessage("a"), AIMessage("b"), HumanMessage("c")], 3, one_each) == 0


def test_an_empty_thread_is_not_cut() -> None:
    assert safe_cut([], 0) == 0


def test_a_thread_that_the_model_has_not_read_is_not_cut() -> None:
    assert safe_cut([HumanMessage("a"), HumanMessage("b")], 0, one_each) == 0


def test_the_tail_starts_at_the_users_message() -> None:
    messages = [HumanMessage("a"), AIMessage("b"), HumanMessage("c"), AIMessage("d"), HumanMessage("e")]
    assert safe_cut(messages, 4, one_each) == 2


def test_a_notice_of_ours_is_no_users_message() -> None:
    notice = HumanMessage("a task is due", additional_kwargs={MARK: {"kind": "notice"}})
    messages = [HumanMessage("a"), AIMessage("b"), AIMessage("c"), notice, AIMessage("d"), HumanMessage("e")]
    assert safe_cut(messages, 3, one_each) == 3  # e alone would leave out more than half of what fits


def test_a_long_run_of_tools_is_cut_between_its_rounds() -> None:
    messages = [HumanMessage("go"), call("1"), result("1"), call("2"), result("2"), call("3"), result("3")]
    assert safe_cut(messages, 5, one_each) == 3


def test_parallel_calls_stay_with_every_one_of_their_results() -> None:
    messages = [HumanMessage("go"), call("1", "2", "3"), result("3"), result("1"), result("2"), AIMessage("done")]
    assert [safe_cut(messages, keep, one_each) for keep in range(1, 6)] == [5, 5, 5, 5, 1]


def test_a_result_that_comes_late_keeps_its_call() -> None:
    messages = [HumanMessage("go"), call("1"), HumanMessage("wait"), AIMessage("yes"), result("1"), AIMessage("done")]
    assert safe_cut(messages, 4, one_each) == 5
    assert safe_cut(messages, 5, one_each) == 1


def test_a_result_without_a_call_does_not_start_the_tail() -> None:
    messages = [HumanMessage("go"), AIMessage("a"), result("lost"), AIMessage("b")]
    assert safe_cut(messages, 2, one_each) == 3


def test_an_unread_result_stays_with_its_call_although_it_is_too_long() -> None:
    messages = [HumanMessage("a"), AIMessage("b"), HumanMessage("go"), call("1"), result("1", "long " * 500)]
    assert safe_cut(messages, 10) == 3


def test_a_request_that_waits_for_its_answer_stays_whole() -> None:
    messages = [HumanMessage("a"), AIMessage("b"), HumanMessage("first part"), HumanMessage("second part")]
    assert safe_cut(messages, 1, one_each) == 2


def thread(count: int) -> list[AnyMessage]:
    kinds: list[type[HumanMessage] | type[AIMessage]] = [HumanMessage, AIMessage]
    return [kinds[n % 2](f"message {n}", id=f"m{n}") for n in range(count)]


def test_what_leaves_the_window_is_counted_from_the_last_cut() -> None:
    state: MemoryState = {"messages": thread(9), "window": {"cut": "m2"}}
    found = leaving(state, 4, one_each)
    assert found is not None
    assert [[m.id for m in part] for part in found] == [["m2", "m3", "m4", "m5"], ["m6", "m7", "m8"], []]


def test_after_an_overflow_at_most_half_stays_although_it_seemed_to_fit() -> None:
    state: MemoryState = {"messages": thread(9), "window": {"overflow": "m8"}}
    found = leaving(state, 1_000, one_each)
    assert found is not None
    assert found.tail[0].id == "m6"


def test_an_overflow_of_an_earlier_request_is_over() -> None:
    assert leaving({"messages": thread(9), "window": {"overflow": "m6"}}, 1_000, one_each) is None


@pytest.mark.parametrize("window", [{}, {"compacted_at": "m8"}])
def test_nothing_leaves_when_all_fits_or_when_nothing_new_was_said(window: Any) -> None:
    keep = 1_000 if not window else 1
    assert leaving({"messages": thread(9), "window": window}, keep, one_each) is None


def test_a_state_without_messages_has_nothing_to_leave() -> None:
    assert leaving({}, 10) is None


def looked(text: str) -> list[AnyMessage]:
    """A turn that has read a result, and one whose result is not read yet."""
    return [
        HumanMessage("Look.", id="h0"),
        call("a"),
        ToolMessage(text, tool_call_id="a", id="read"),
        AIMessage("I see.", id="a0"),
        HumanMessage("Again.", id="h1"),
        call("b"),
        ToolMessage(text, tool_call_id="b", id="unread"),
    ]


def test_a_result_that_was_read_shrinks_before_anything_is_cut() -> None:
    found = leaving({"messages": looked("x" * 20_000)}, 7_000)
    assert found is not None
    assert ([m.id for m in found.prefix], [m.id for m in found.shrinking]) == ([], ["read"])


def test_a_picture_that_was_read_shrinks_as_a_long_text_does() -> None:
    thread = looked("x")
    for n in (2, 6):
        thread[n] = thread[n].model_copy(update={"content": [{"type": "image", "url": "https://example.org/1.png"}]})
    found = leaving({"messages": thread}, 2_000)
    assert found is not None
    assert ([m.id for m in found.prefix], [m.id for m in found.shrinking]) == ([], ["read"])


def test_what_is_cut_does_not_shrink_and_what_is_unread_does_neither() -> None:
    found = leaving({"messages": looked("x" * 20_000)}, 100)
    assert found is not None
    assert ([m.id for m in found.tail][-1], found.shrinking) == ("unread", [])
    assert [m.id for m in found.prefix][:4] == ["h0", None, "read", "a0"]


def test_short_results_and_those_that_have_shrunk_stay() -> None:
    assert leaving({"messages": looked("x" * 900)}, 600) is None
    window: Any = {"shrunk": {"read": "sha256:1"}}
    assert leaving({"messages": looked("x" * 20_000), "window": window}, 7_000) is None


def test_a_shrunk_result_shows_its_beginning_and_where_the_whole_is() -> None:
    shown = visible({"messages": looked("x" * 20_000), "window": {"shrunk": {"read": "sha256:1"}}})
    assert (
        shown[2].content == "x" * 200 + "\n[a result of 20000 characters, read before; the whole is kept as sha256:1]"
    )
    assert shown[6].content == "x" * 20_000


def test_a_late_result_brings_the_view_back_to_its_call_until_it_is_read() -> None:
    late: list[AnyMessage] = [
        HumanMessage("Start the build.", id="h0"),
        call("a"),
        HumanMessage("And meanwhile?", id="h1"),
        AIMessage("I wait.", id="a1"),
        ToolMessage("built", tool_call_id="a", id="late"),
    ]
    state: MemoryState = {"messages": late, "window": {"cut": "h1"}}
    assert visible(state) == late[1:]
    state["messages"] = [*late, AIMessage("It is built.", id="a2")]
    assert [message.id for message in visible(state)] == ["h1", "a1", "late", "a2"]
