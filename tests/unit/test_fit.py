"""A request that is too long although the thread was compacted."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.nodes.compact.fit import LEAD, within
from everthread.nodes.state import MARK

SUMMARY = HumanMessage("summary", id="s", additional_kwargs={MARK: {"kind": "summary"}})
HEAD: list[BaseMessage] = [SystemMessage("system"), SUMMARY]


def ten_each(messages: Sequence[BaseMessage]) -> int:
    """A counter by which every message takes ten tokens."""
    return 10 * len(messages)


def turns(count: int) -> list[BaseMessage]:
    return [each for n in range(count) for each in (HumanMessage(f"h{n}", id=f"h{n}"), AIMessage(f"a{n}", id=f"a{n}"))]


def test_what_fits_is_sent_whole() -> None:
    request = [*HEAD, *turns(4)]
    assert within(request, 100, set(), ten_each) == request


def test_the_oldest_rounds_are_left_out_and_system_and_summary_stay() -> None:
    assert within([*HEAD, *turns(4)], 60 + LEAD, set(), ten_each) == [*HEAD, *turns(4)[4:]]


def test_what_is_unread_stays_with_its_call_although_it_is_too_long() -> None:
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}], id="c")
    result = ToolMessage("found", tool_call_id="1", id="r")
    request = [*HEAD, *turns(2), call, result]
    assert within(request, 1, {"r"}, ten_each) == [*HEAD, call, result]
