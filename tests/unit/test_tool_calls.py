"""Each tool call is directly followed by all of its results, whatever the thread looks like."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everthread.nodes.tool_calls import unanswered, well_ordered


def call(*ids: str) -> AIMessage:
    return AIMessage(
        content="",
        id="ai-" + "-".join(ids),
        tool_calls=[{"name": "look", "args": {}, "id": each, "type": "tool_call"} for each in ids],
    )


def result(of: str) -> ToolMessage:
    return ToolMessage(content=f"result {of}", tool_call_id=of, id=f"r-{of}")


def test_a_late_result_moves_behind_its_call() -> None:
    asked, said = call("a", "b"), HumanMessage("go on", id="h")
    assert well_ordered([asked, said, result("b"), result("a")]) == [asked, result("a"), result("b"), said]


def test_a_missing_result_is_marked_as_interrupted() -> None:
    asked, said = call("a", "b"), HumanMessage("go on", id="h")
    (missing,) = unanswered([asked, result("a"), said])
    assert (missing.tool_call_id, missing.status) == ("b", "error")
    assert well_ordered([asked, result("a"), said]) == [asked, result("a"), missing, said]


def test_a_result_without_its_call_is_left_out() -> None:
    said = HumanMessage("go on", id="h")
    assert well_ordered([result("x"), said]) == [said]


def test_a_real_result_wins_over_an_interruption() -> None:
    asked = call("a")
    (interrupted,) = unanswered([asked])
    assert well_ordered([asked, interrupted, result("a")]) == [asked, result("a")]


def test_ids_that_are_used_again_belong_to_the_last_call() -> None:
    first, second = call("a"), call("a").model_copy(update={"id": "second"})
    one, two = result("a"), result("a").model_copy(update={"content": "again", "id": "r2"})
    assert well_ordered([first, one, second, two]) == [first, one, second, two]
    assert well_ordered([first, one, second])[:3] == [first, one, second]
    assert [missing.id for missing in unanswered([first, one, second])] == ["interrupted-second-a"]
