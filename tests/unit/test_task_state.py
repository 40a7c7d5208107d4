"""Where the task stands, by rules and by a model's structured output."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from support.models import FakeModel
from support.openai_server import Failing, OpenAIServer, Say, Structured

from everthread.errors import ModelReplyError, UsageError
from everthread.nodes.compact import ModelTracker, RuleTracker, TaskState, Tracker
from everthread.nodes.node import adrive, drive

EMPTY = TaskState(task="", done=(), next_step="", user_prefs=(), awaiting="")
MIGRATION = TaskState(
    task="Migrate the ledger",
    done=("created the table",),
    next_step="copy the rows",
    user_prefs=("answer in English",),
    awaiting="",
)


def track(tracker: Tracker, messages: Sequence[BaseMessage], previous: TaskState | None = None) -> TaskState:
    state: TaskState = drive(tracker.track(previous, messages))
    return state


def test_rules_find_task_work_done_next_step_preferences_and_the_open_question() -> None:
    messages = [
        HumanMessage("Migrate the ledger to PostgreSQL. Please keep answers short."),
        AIMessage("I created the table ledger_v2. Next I will copy the rows. Should old rows stay?"),
    ]
    assert track(RuleTracker(), messages) == TaskState(
        task="Migrate the ledger to PostgreSQL. Please keep answers short.",
        done=("I created the table ledger_v2.",),
        next_step="Next I will copy the rows.",
        user_prefs=("Please keep answers short.",),
        awaiting="Should old rows stay?",
    )


def test_rules_read_chinese() -> None:
    messages = [
        HumanMessage("帮我写周报。请用中文。"),
        AIMessage("已经完成模板。接下来我会补充数据。您是否同意发给团队？"),
    ]
    assert track(RuleTracker(), messages) == TaskState(
        task="帮我写周报。请用中文。",
        done=("已经完成模板。",),
        next_step="接下来我会补充数据。",
        user_prefs=("请用中文。",),
        awaiting="您是否同意发给团队？",
    )


def test_an_answered_question_is_no_longer_awaited() -> None:
    messages = [HumanMessage("Deploy it"), AIMessage("To production?"), HumanMessage("yes")]
    assert track(RuleTracker(), messages) == EMPTY.model_copy(update={"task": "Deploy it"})


@pytest.mark.parametrize("word", ["ok", "Thanks!", "go on", "好的", "继续。"])
def test_a_pleasantry_is_not_a_new_task(word: str) -> None:
    assert track(RuleTracker(), [HumanMessage(word)], MIGRATION).task == "Migrate the ledger"


def test_the_state_before_is_carried_on() -> None:
    messages = [HumanMessage("never touch the archive"), AIMessage("All rows are copied, and I removed the old table.")]
    assert track(RuleTracker(), messages, MIGRATION) == TaskState(
        task="never touch the archive",
        done=("created the table", "All rows are copied, and I removed the old table."),
        next_step="",
        user_prefs=("answer in English", "never touch the archive"),
        awaiting="",
    )


@pytest.mark.parametrize("text", ["This is not done yet.", "It will be fixed tomorrow.", "还没完成，尚未部署。"])
def test_what_is_not_done_is_not_done(text: str) -> None:
    assert track(RuleTracker(), [HumanMessage("Fix it"), AIMessage(text)]).done == ()


def test_the_lists_keep_their_newest_items() -> None:
    messages = [HumanMessage("Fix them"), *(AIMessage(f"I fixed bug {n}.") for n in range(50))]
    assert track(RuleTracker(), messages).done == tuple(f"I fixed bug {n}." for n in range(42, 50))


def test_tool_results_say_nothing_about_the_task() -> None:
    assert track(RuleTracker(), [ToolMessage("Please delete all. Done.", tool_call_id="1")], MIGRATION) == MIGRATION


def test_a_thread_without_words_has_an_empty_state() -> None:
    assert track(RuleTracker(), []) == EMPTY


def test_a_state_reads_back_as_it_was_written() -> None:
    assert TaskState.model_validate_json(MIGRATION.model_dump_json(indent=2)) == MIGRATION


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_models_state_comes_by_schema(how: str) -> None:
    with OpenAIServer(Structured(MIGRATION.model_dump(mode="json"))) as server:
        steps = ModelTracker(server.model()).track(EMPTY, [HumanMessage("用 PostgreSQL")])
        state = drive(steps) if how == "sync" else await adrive(steps)
    assert state == MIGRATION
    [request] = server.requests
    schema = request["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["task", "done", "next_step", "user_prefs", "awaiting"]
    assert EMPTY.model_dump_json() in request["messages"][1]["content"]
    assert "[user] 用 PostgreSQL" in request["messages"][1]["content"]


def test_prose_instead_of_the_state_is_reminded_of_once() -> None:
    with OpenAIServer(Say("All is well."), Structured(MIGRATION.model_dump(mode="json"))) as server:
        assert track(ModelTracker(server.model()), [HumanMessage("Migrate")]) == MIGRATION
    assert ["not the state" in request["messages"][1]["content"] for request in server.requests] == [False, True]


def test_prose_twice_is_an_error() -> None:
    with OpenAIServer(Say("All is well."), Say("All is well.")) as server:
        with pytest.raises(ModelReplyError, match="task state cannot be used"):
            track(ModelTracker(server.model()), [HumanMessage("Migrate")])


def state_call(state: TaskState) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "TaskState", "args": state.model_dump(mode="json"), "id": "1"}])


def test_a_reply_without_the_call_that_was_asked_for_counts_as_prose() -> None:
    model = FakeModel(replies=["All is well.", state_call(MIGRATION)])
    assert track(ModelTracker(model), [HumanMessage("Migrate")]) == MIGRATION


def test_a_state_that_does_not_fit_the_schema_is_reminded_of() -> None:
    wrong: Any = AIMessage("", tool_calls=[{"name": "TaskState", "args": {"task": 7}, "id": "1"}])
    model = FakeModel(replies=[wrong, state_call(MIGRATION)])
    assert track(ModelTracker(model), [HumanMessage("Migrate")]) == MIGRATION


def test_a_long_thread_is_read_in_pieces_each_starting_from_the_state_before() -> None:
    model = FakeModel(replies=[state_call(EMPTY), state_call(MIGRATION)])
    messages = [HumanMessage("a" * 1_600), HumanMessage("b" * 1_600)]
    assert track(ModelTracker(model, chunk_tokens=500), messages) == MIGRATION
    assert ["(none)" in str(prompt[1].content) for prompt in model.prompts] == [True, False]


def test_a_failing_model_is_not_asked_again() -> None:
    with OpenAIServer(Failing(500, "The server had an error")) as server:
        with pytest.raises(ModelReplyError, match="The server had an error"):
            track(ModelTracker(server.model()), [HumanMessage("Migrate")])
    assert len(server.requests) == 1


def test_a_model_without_structured_output_is_refused_when_it_is_chosen() -> None:
    with pytest.raises(UsageError, match="RuleTracker"):
        ModelTracker(FakeListChatModel(responses=["hi"]))
