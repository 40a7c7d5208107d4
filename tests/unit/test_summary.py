"""What stands for the messages that left the window, by rules and by a model."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from support.models import FakeModel
from support.openai_server import CutOff, Failing, OpenAIServer, Overflow, Say

from everthread.errors import ModelReplyError
from everthread.nodes.compact import ModelSummariser, RuleSummariser, Summariser, Summary
from everthread.nodes.compact.asking import rendered
from everthread.nodes.compact.summary import HEADINGS
from everthread.nodes.node import adrive, drive
from everthread.nodes.state import MARK
from everthread.stores.text import estimate_tokens

GOOD = "\n".join(f"{heading}\n- none" for heading in HEADINGS).replace("- none", "- PostgreSQL 16 it is", 1)


def summarise(summariser: Summariser, messages: Sequence[BaseMessage], previous: str = "") -> Summary:
    summary: Summary = drive(summariser.summarise(previous, messages))
    return summary


def test_rules_keep_what_was_decided_counted_left_open_and_asked() -> None:
    messages = [
        HumanMessage("Hi! Please set up the billing service."),
        AIMessage("On it."),
        HumanMessage("We decided to use PostgreSQL 16 instead of MySQL. The budget is 12,000 EUR."),
        AIMessage("Agreed. The ledger export still needs to be written. Shall I start with it?"),
    ]
    assert summarise(RuleSummariser(), messages) == Summary(
        "## Conclusions\n"
        "- user: We decided to use PostgreSQL 16 instead of MySQL.\n"
        "- assistant: Agreed.\n"
        "## Facts and figures\n"
        "- user: The budget is 12,000 EUR.\n"
        "## Open items\n"
        "- assistant: The ledger export still needs to be written.\n"
        "- assistant: Shall I start with it?\n"
        "## Course\n"
        "- user: Please set up the billing service.",
        "rules/1",
    )


def test_rules_read_chinese() -> None:
    messages = [
        HumanMessage("你好！帮我安排发布。我们决定采用双周迭代。预算是三万元。"),
        AIMessage("好的。发布日期尚未定下。"),
    ]
    assert summarise(RuleSummariser(), messages).text == (
        "## Conclusions\n"
        "- user: 我们决定采用双周迭代。\n"
        "## Facts and figures\n"
        "- user: 预算是三万元。\n"
        "## Open items\n"
        "- assistant: 发布日期尚未定下。\n"
        "## Course\n"
        "- user: 帮我安排发布。"
    )


def test_a_conclusion_of_the_earlier_summary_survives_many_summaries() -> None:
    text = summarise(RuleSummariser(), [HumanMessage("We decided that prices exclude tax.")]).text
    for day in range(1, 30):
        text = summarise(RuleSummariser(), [HumanMessage(f"Look at the report of day {day}, please")], text).text
    assert "- user: We decided that prices exclude tax." in text


def test_what_is_said_again_is_kept_once() -> None:
    said = HumanMessage("We decided that prices exclude tax.")
    first = summarise(RuleSummariser(), [said]).text
    assert summarise(RuleSummariser(), [said], first).text == first


def test_two_figures_that_differ_are_two_facts() -> None:
    text = summarise(RuleSummariser(), [HumanMessage("The trial took 5 days.\nThe trial took 6 days.")]).text
    assert text == "## Facts and figures\n- user: The trial took 5 days.\n- user: The trial took 6 days."


@pytest.mark.parametrize("sentence", ["We decided on option {} of the plan. ", "我们决定采用方案{}，预算已经确认。"])
def test_a_summary_by_rules_is_bounded_and_keeps_the_newest(sentence: str) -> None:
    messages = [HumanMessage(sentence.format(n) * 3) for n in range(2_000)]
    text = summarise(RuleSummariser(max_tokens=300), messages).text
    assert 150 < estimate_tokens(text) <= 300
    assert sentence.format(1_999).strip() in text


def test_tool_results_code_and_our_own_notices_are_not_conclusions() -> None:
    messages = [
        ToolMessage("We decided to delete everything.", tool_call_id="1"),
        HumanMessage("We decided to pay.", additional_kwargs={MARK: {"kind": "notice"}}),
        AIMessage("```\n# we decided on 42\n```"),
    ]
    assert summarise(RuleSummariser(), messages).text == ""


def test_the_same_messages_give_the_same_summary() -> None:
    messages = [HumanMessage(f"We chose {n}. It costs {n} EUR. Next step: {n}") for n in range(100)]
    assert summarise(RuleSummariser(), messages) == summarise(RuleSummariser(), messages)


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_models_summary_comes_from_the_earlier_one_and_the_messages(how: str) -> None:
    messages = [
        HumanMessage("用 PostgreSQL 16"),
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": "docs"}, "id": "1"}]),
        ToolMessage("a page", tool_call_id="1", name="look"),
    ]
    with OpenAIServer(Say(GOOD)) as server:
        steps = ModelSummariser(server.model()).summarise("## Conclusions\n- prices exclude tax", messages)
        summary = drive(steps) if how == "sync" else await adrive(steps)
    assert summary == Summary(GOOD, "gpt-test/summary-1")
    [request] = server.requests
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert "conclusion must survive" in request["messages"][0]["content"]
    assert request["messages"][1]["content"] == (
        "<previous_summary>\n## Conclusions\n- prices exclude tax\n</previous_summary>\n\n"
        "<messages>\n[user] 用 PostgreSQL 16\n[assistant calls look] {'at': 'docs'}\n"
        "[result of look] a page\n</messages>"
    )


def test_a_prefix_that_does_not_fit_is_summarised_in_pieces_that_feed_one_another() -> None:
    model = FakeModel(replies=[GOOD.replace("16", str(n)) for n in range(20)])
    messages = [HumanMessage(f"message {n} " + "word " * 150) for n in range(9)]
    one = estimate_tokens(rendered(messages[0]))
    summary = summarise(ModelSummariser(model, chunk_tokens=2 * one + one // 2), messages)
    asked = [str(prompt[1].content) for prompt in model.prompts]
    assert [sum(f"message {n} " in each for n in range(9)) for each in asked] == [2, 2, 2, 2, 1]
    assert ["PostgreSQL 0" in each for each in asked] == [False, True, False, False, False]
    assert summary.text == GOOD.replace("16", "4")


def test_one_message_longer_than_a_piece_is_divided() -> None:
    model = FakeModel(replies=[GOOD])
    text = "长" * 1_200
    summarise(ModelSummariser(model, chunk_tokens=estimate_tokens(text) // 2 - 1), [HumanMessage(text)])
    pieces = [str(prompt[1].content).count("长") for prompt in model.prompts]
    assert (len(pieces), sum(pieces)) == (3, 1_200)


def test_a_piece_that_the_model_finds_too_long_is_halved() -> None:
    with OpenAIServer(Overflow(), Say(GOOD), Say(GOOD)) as server:
        messages = [HumanMessage(f"{n} " * (900 if n == 0 else 300)) for n in range(4)]
        assert summarise(ModelSummariser(server.model()), messages).text == GOOD
    bodies = [request["messages"][1]["content"] for request in server.requests]
    assert [[f"[user] {n} " in body for n in range(4)] for body in bodies] == [
        [True, True, True, True],
        [True, False, False, False],
        [False, True, True, True],
    ]


def test_a_model_that_finds_everything_too_long_is_not_asked_for_ever() -> None:
    model = FakeModel(replies=[ValueError("prompt is too long")])
    with pytest.raises(ModelReplyError, match="prompt is too long"):
        summarise(ModelSummariser(model), [HumanMessage("word " * 1_000)])
    assert len(model.prompts) == 5


BAD: dict[str, Any] = {
    "prose": "They talked about databases.",
    "a missing heading": GOOD.replace(HEADINGS[2], ""),
    "nothing under its headings": "\n".join(HEADINGS),
    "endless": GOOD + "\n- more" * 2_000,
    "nothing": "",
    "a cut off reply": AIMessage(GOOD, response_metadata={"finish_reason": "length"}),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_reply_is_reminded_of_once(bad: Any) -> None:
    model = FakeModel(replies=[bad, GOOD])
    assert summarise(ModelSummariser(model), [HumanMessage("hello there")]).text == GOOD
    assert ["could not be used" in str(prompt[1].content) for prompt in model.prompts] == [False, True]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_second_bad_reply_is_an_error(bad: Any) -> None:
    model = FakeModel(replies=[bad])
    with pytest.raises(ModelReplyError, match="summary cannot be used"):
        summarise(ModelSummariser(model), [HumanMessage("hello there")])
    assert len(model.prompts) == 2


def test_a_stream_that_breaks_off_is_no_summary() -> None:
    with OpenAIServer(CutOff(GOOD), CutOff(GOOD)) as server, pytest.raises(ModelReplyError, match="broke off"):
        summarise(ModelSummariser(server.model(streaming=True)), [HumanMessage("hello there")])


def test_a_failing_model_is_reported_with_its_cause() -> None:
    with OpenAIServer(Failing(500, "The server had an error")) as server:
        with pytest.raises(ModelReplyError, match="The server had an error") as failed:
            summarise(ModelSummariser(server.model()), [HumanMessage("hello there")])
    assert type(failed.value.__cause__).__name__ == "OpenAIAPIError"
