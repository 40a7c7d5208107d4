"""Counting tokens without a model's tokenizer."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.nodes.compact.budget import FRAME, MEDIA, count_tokens


def test_english_takes_a_token_for_four_letters_and_chinese_one_for_each_character() -> None:
    assert count_tokens([HumanMessage("four" * 10)]) == FRAME + 10
    assert count_tokens([HumanMessage("你好世界")]) == FRAME + 4


def test_no_messages_take_no_tokens() -> None:
    assert count_tokens([]) == 0


def test_tool_calls_and_their_arguments_are_counted() -> None:
    bare = AIMessage("")
    calling = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "四川菜" * 20}, "id": "call_1"}])
    assert count_tokens([calling]) - count_tokens([bare]) > 60


def test_a_results_name_and_call_are_counted() -> None:
    assert count_tokens([ToolMessage("", tool_call_id="c" * 36, name="n" * 4)]) == FRAME + 10


def test_an_image_takes_a_flat_amount_however_long_its_bytes_are() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 500_000}}
    assert count_tokens([HumanMessage([{"type": "text", "text": "what is it?!"}, image])]) == FRAME + 3 + MEDIA


def test_thoughts_are_counted_and_a_call_repeated_in_the_content_is_not() -> None:
    parts: list[str | dict[str, object]] = [
        {"type": "thinking", "thinking": "hmm " * 10},
        {"type": "tool_use", "id": "1", "name": "look", "input": {"at": "x" * 400}},
        "plain text!!",
    ]
    assert count_tokens([AIMessage(parts)]) == FRAME + 10 + 3


def test_a_models_own_counter_is_used_when_given() -> None:
    def counter(messages: Sequence[BaseMessage]) -> int:
        return 7 * len(messages)

    assert count_tokens([HumanMessage("a"), HumanMessage("b")], counter) == 14
