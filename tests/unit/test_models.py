"""The model's edge, against a server that speaks Chat Completions and the real client."""

from typing import Any, Literal

import openai
import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from support.openai_server import (
    CallTools,
    CutOff,
    Dropped,
    Failing,
    OpenAIServer,
    Overflow,
    RateLimited,
    Say,
    Step,
    Structured,
)

from everthread.errors import ModelReplyError, UsageError
from everthread.nodes.models import checked, is_overflow, load_model, storable


class City(BaseModel):
    """A city."""

    name: str


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def ask(model: Any, how: str) -> Any:
    """Ask `model` in one of the two ways that a node is run."""
    return model.invoke("hi") if how == "sync" else await model.ainvoke("hi")


async def error_of(model: BaseChatModel, how: str) -> Exception:
    """The error that asking `model` raises."""
    try:
        await ask(model, how)
    except Exception as error:
        return error
    raise AssertionError("the model answered")


both_ways = pytest.mark.parametrize("how", ["sync", "async"])
streamed_or_not = pytest.mark.parametrize("streaming", [False, True])


@both_ways
@streamed_or_not
async def test_a_whole_answer_passes(how: str, streaming: bool) -> None:
    with OpenAIServer(Say("你好, hello")) as server:
        reply = await ask(server.model(streaming=streaming), how)
    assert checked(reply) is reply
    assert reply.text == "你好, hello"


@both_ways
@streamed_or_not
async def test_parallel_tool_calls_pass_without_text(how: str, streaming: bool) -> None:
    with OpenAIServer(CallTools([("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})])) as server:
        reply = checked(await ask(server.model(streaming=streaming).bind_tools([add]), how))
    assert [(call["id"], call["args"]) for call in reply.tool_calls] == [
        ("call_0", {"a": 1, "b": 2}),
        ("call_1", {"a": 3, "b": 4}),
    ]
    assert server.requests[0]["tools"][0]["function"]["name"] == "add"


@both_ways
@streamed_or_not
@pytest.mark.parametrize("done", [False, True])
async def test_a_reply_that_ends_without_a_finish_reason_is_an_error(how: str, streaming: bool, done: bool) -> None:
    with OpenAIServer(CutOff("The first half", done=done)) as server:
        reply = await ask(server.model(streaming=streaming), how)
    with pytest.raises(ModelReplyError, match="broke off after 14 characters"):
        checked(reply)


@streamed_or_not
def test_an_answer_that_reached_its_length_limit_is_still_an_answer(streaming: bool) -> None:
    with OpenAIServer(Say("as far as it got", finish="length")) as server:
        assert checked(server.model(streaming=streaming).invoke("hi")).text == "as far as it got"


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_reply_is_an_error(text: str) -> None:
    with OpenAIServer(Say(text)) as server, pytest.raises(ModelReplyError, match="empty"):
        checked(server.model().invoke("hi"))


def test_a_refusal_is_reported_in_the_models_words() -> None:
    with pytest.raises(ModelReplyError, match="declined to answer: not that"):
        checked(AIMessage("", additional_kwargs={"refusal": "not that"}))


def test_a_tool_call_with_broken_arguments_names_its_tool() -> None:
    broken = {"name": "add", "args": '{"a": 1', "id": "call_0", "error": None, "type": "invalid_tool_call"}
    with pytest.raises(ModelReplyError, match="not JSON: add"):
        checked(AIMessage("", invalid_tool_calls=[broken]))


def test_a_reply_takes_no_other_messages_place() -> None:
    reply = AIMessage("two", id="r")
    assert storable(reply, [AIMessage("one", id="q")]) is reply
    other = storable(reply, [AIMessage("one", id="r")])
    assert other.id is not None and other.id.startswith("r-")
    assert (reply.id, other.text) == ("r", "two")


def test_a_number_that_no_checkpoint_can_hold_is_a_text() -> None:
    def asking(line: int, far: Any) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "read", "args": {"line": line, "far": [far]}, "id": "c"}])

    fits = asking(2**64 - 1, -(2**63))
    assert storable(fits, []) is fits
    assert storable(asking(7, 10**30), []).tool_calls == asking(7, str(10**30)).tool_calls


@pytest.mark.parametrize("reply", [None, "text", HumanMessage("hi"), {"content": "hi"}])
def test_what_is_not_an_assistant_message_is_an_error(reply: Any) -> None:
    with pytest.raises(ModelReplyError, match=type(reply).__name__):
        checked(reply)


@pytest.mark.parametrize(
    "metadata",
    [{}, {"model_provider": "ollama", "done_reason": "stop"}, {"model_provider": "openai", "status": "completed"}],
)
def test_a_model_that_never_gives_a_finish_reason_is_taken_at_its_word(metadata: dict[str, str]) -> None:
    reply = AIMessage("fine", response_metadata=metadata)
    assert checked(reply) is reply


@both_ways
@streamed_or_not
async def test_openais_refusal_of_a_long_request_is_an_overflow(how: str, streaming: bool) -> None:
    with OpenAIServer(Overflow()) as server:
        error = await error_of(server.model(streaming=streaming), how)
    assert isinstance(error, openai.BadRequestError)
    assert is_overflow(error)


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "Your input exceeds the context window of this model.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Input is too long for requested model.",
        "the request exceeds the available context size. try increasing the context size",
        "the input length exceeds the context length",
        "litellm.ContextWindowExceededError: too long",
    ],
)
def test_every_providers_words_for_an_overflow_are_understood(message: str) -> None:
    assert is_overflow(ValueError(message))


def test_an_overflow_is_seen_by_type_by_code_and_through_its_cause() -> None:
    class Coded(Exception):
        code = "context_length_exceeded"

    wrapped = RuntimeError("the call failed")
    wrapped.__cause__ = Coded("no words")
    assert [is_overflow(e) for e in (ContextOverflowError("no words"), Coded("no words"), wrapped)] == [True] * 3


def test_causes_that_form_a_ring_end() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert not is_overflow(one)


@both_ways
@pytest.mark.parametrize(
    "step", [RateLimited(), Dropped(), Failing(500, "The server had an error"), Failing(400, "Invalid schema")]
)
async def test_other_errors_are_not_an_overflow(how: str, step: Step) -> None:
    with OpenAIServer(step) as server:
        assert not is_overflow(await error_of(server.model(), how))


@both_ways
@streamed_or_not
async def test_a_connection_that_breaks_raises_instead_of_giving_half_an_answer(how: str, streaming: bool) -> None:
    with OpenAIServer(Dropped("half of an answer")) as server:
        error = await error_of(server.model(streaming=streaming), how)
    assert isinstance(error, openai.APIConnectionError)


@both_ways
async def test_the_client_waits_out_a_rate_limit(how: str) -> None:
    with OpenAIServer(RateLimited(), RateLimited(), Say("at last")) as server:
        assert checked(await ask(server.model(max_retries=2), how)).text == "at last"
    assert len(server.requests) == 3


@both_ways
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
async def test_structure_comes_back_by_schema_and_by_function_call(
    how: str, method: Literal["json_schema", "function_calling"]
) -> None:
    with OpenAIServer(Structured({"name": "上海"})) as server:
        assert await ask(server.model().with_structured_output(City, method=method), how) == City(name="上海")


def test_prose_instead_of_a_function_call_is_none_and_prose_instead_of_a_schema_raises() -> None:
    with OpenAIServer(Say("Shanghai"), Say("Shanghai")) as server:
        model = server.model()
        assert model.with_structured_output(City, method="function_calling").invoke("hi") is None
        with pytest.raises(ValueError):
            model.with_structured_output(City, method="json_schema").invoke("hi")


def test_a_request_after_the_scripts_end_is_refused() -> None:
    with OpenAIServer(Say("only one")) as server:
        model = server.model()
        model.invoke("hi")
        with pytest.raises(openai.BadRequestError, match="1 steps and this is request 2"):
            model.invoke("hi")


def test_the_server_remembers_the_messages_it_was_sent() -> None:
    request: list[BaseMessage] = [HumanMessage("in English"), AIMessage("ok"), HumanMessage("用中文")]
    with OpenAIServer(Say("好")) as server:
        server.model().invoke(request)
    assert [(m["role"], m["content"]) for m in server.requests[0]["messages"]] == [
        ("user", "in English"),
        ("assistant", "ok"),
        ("user", "用中文"),
    ]


def test_an_openai_model_is_loaded_by_name_and_answers() -> None:
    with OpenAIServer(Say("hello")) as server:
        model = load_model("openai:gpt-test", base_url=server.url, api_key="unused")
        assert isinstance(model, ChatOpenAI)
        assert model.invoke("hi").text == "hello"
    assert server.requests[0]["model"] == "gpt-test"


@pytest.mark.parametrize("spec", ["gpt-4.1-mini", ":gpt", "openai:", ""])
def test_a_name_without_its_provider_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="provider:name"):
        load_model(spec)


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"'nonsense:x' cannot be loaded: Unsupported provider='nonsense'.*anthropic"
    ) as e:
        load_model("nonsense:x")
    assert "\n" not in str(e.value)


def test_a_missing_package_is_named_with_its_pip_command() -> None:
    with pytest.raises(UsageError, match="pip install langchain-cohere"):
        load_model("cohere:command-r")


def test_missing_credentials_are_the_callers_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        load_model("openai:gpt-test")


def test_refused_options_are_named_and_no_key_is_repeated() -> None:
    with pytest.raises(UsageError) as refused:
        load_model("openai:gpt-test", api_key="sk-very-secret", temperature="hot")
    assert "temperature" in str(refused.value)
    assert "sk-very-secret" not in str(refused.value)
