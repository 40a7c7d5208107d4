"""Counting tokens without a model's tokenizer."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.nodes.compact.budget import FRAME, MEDIA, count_tokens, fits
from everthread.stores.text import estimate_tokens


def test_a_message_takes_its_text_and_a_frame() -> None:
    assert count_tokens([HumanMessage("four words of English")]) == FRAME + estimate_tokens("four words of English")


def test_a_chinese_character_takes_more_than_an_english_letter() -> None:
    assert count_tokens([HumanMessage("好" * 100)]) > 2 * count_tokens([HumanMessage("a" * 100)])


def test_no_messages_take_no_tokens() -> None:
    assert count_tokens([]) == 0


def test_tool_calls_and_their_arguments_are_counted() -> None:
    bare = AIMessage("")
    calling = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "四川菜" * 20}, "id": "call_1"}])
    assert count_tokens([calling]) - count_tokens([bare]) > 60


def test_a_results_name_and_call_are_counted() -> None:
    result = ToolMessage("", tool_call_id="call_1", name="search")
    assert count_tokens([result]) == FRAME + estimate_tokens("searchcall_1")


def test_an_image_takes_a_flat_amount_however_long_its_bytes_are() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 500_000}}
    question = {"type": "text", "text": "what is it?"}
    assert count_tokens([HumanMessage([question, image])]) == FRAME + estimate_tokens("what is it?") + MEDIA


def test_thoughts_are_counted_and_a_call_repeated_in_the_content_is_not() -> None:
    parts: list[str | dict[str, object]] = [
        {"type": "thinking", "thinking": "hmm " * 10},
        {"type": "tool_use", "id": "1", "name": "look", "input": {"at": "x" * 400}},
        "plain text!!",
    ]
    assert count_tokens([AIMessage(parts)]) == FRAME + estimate_tokens("hmm " * 10) + estimate_tokens("plain text!!")


def test_a_models_own_counter_is_used_when_given() -> None:
    def counter(messages: Sequence[BaseMessage]) -> int:
        return 7 * len(messages)

    assert count_tokens([HumanMessage("a"), HumanMessage("b")], counter) == 14


def test_a_request_fits_up_to_its_estimate_and_no_further() -> None:
    call = {"name": "search", "args": {"query": "四川菜"}, "id": "call_1"}
    messages = [
        HumanMessage("What is near? 🎉" * 5),
        AIMessage("", tool_calls=[call]),
        ToolMessage("好", tool_call_id="1"),
    ]
    size = count_tokens(messages)
    assert [fits(messages, limit) for limit in (size - 1, size, 100 * size)] == [False, True, True]
