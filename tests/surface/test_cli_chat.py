"""`everthread chat` and what a person does after it: threads by name, interrupted turns, a model that is down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.openai_server import Failing, OpenAIServer, Say
from typer.testing import CliRunner, Result

from everthread import Identity
from everthread.cli import app
from everthread.graphs import create_memory_agent
from everthread.stores import open_checkpointer, open_store, thread_config
from everthread.stores.display import told

ANA = Identity(tenant="local", user="ana")
LIKES = "I prefer short reports with a table at the end."


def run(home: Path, *arguments: str, given: str = "") -> Result:
    """`everthread ARGUMENTS` with `given` in its standard input, a pipe."""
    return CliRunner().invoke(app, [*arguments, "--home", str(home), "--user", "ana"], input=given)


def run_json(home: Path, *arguments: str) -> Any:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def interrupt(home: Path, thread: str, said: str) -> None:
    """A turn that ends before the model is asked, as a crash would end it."""
    with open_store(f"sqlite:{home}") as store, open_checkpointer(f"sqlite:{home}") as saver:
        agent = create_memory_agent().compile(checkpointer=saver, store=store)
        config: Any = thread_config(ANA, thread)
        agent.invoke({"messages": [("user", said)]}, config, context=ANA, interrupt_before=["reason"])


def die_before_the_checkpoint(home: Path, thread: str, said: str) -> None:
    """A turn whose process dies when the model's reply is kept, and the checkpoint after it is not."""
    with open_store(f"sqlite:{home}") as store, open_checkpointer(f"sqlite:{home}") as saver:
        agent: Any = create_memory_agent().compile(checkpointer=saver, store=store)
        put = saver.put

        def dying(config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
            if len(puts) == 3:
                raise KeyboardInterrupt
            puts.append(config)
            return put(config, checkpoint, metadata, versions)

        puts: list[Any] = []
        vars(saver)["put"] = dying
        config: Any = thread_config(ANA, thread)
        with pytest.raises(KeyboardInterrupt):
            agent.invoke({"messages": [("user", said)]}, config, context=ANA, durability="sync")
        state = agent.get_state(config)
        assert (state.next, len(state.tasks)) == ((), 1)


def test_a_thread_is_listed_by_the_name_it_was_opened_with(tmp_path: Path) -> None:
    run(tmp_path, "chat", LIKES, "--thread", "monday")
    assert [thread["name"] for thread in run_json(tmp_path, "threads")] == ["monday"]


def test_a_thread_is_gone_on_with_by_its_id_too(tmp_path: Path) -> None:
    first = run_json(tmp_path, "chat", LIKES, "--thread", "monday")
    run(tmp_path, "chat", "And at the start?", "--thread", first["thread_id"])
    assert [(thread["name"], thread["messages"]) for thread in run_json(tmp_path, "threads")] == [("monday", 4)]


def test_a_turn_that_died_between_a_step_and_its_checkpoint_is_resumed(tmp_path: Path) -> None:
    die_before_the_checkpoint(tmp_path, "monday", LIKES)
    assert run(tmp_path, "chat", "--thread", "monday", "--resume").exit_code == 0
    assert [record["statement"] for record in run_json(tmp_path, "list")] == [
        "The user prefers short reports with a table at the end."
    ]


def test_a_turn_is_resumed_without_another_message(tmp_path: Path) -> None:
    interrupt(tmp_path, "monday", LIKES)
    assert run(tmp_path, "chat", "--thread", "monday", "--resume").exit_code == 0
    assert [record["statement"] for record in run_json(tmp_path, "list")] == [
        "The user prefers short reports with a table at the end."
    ]


@pytest.mark.parametrize("arguments", [(), ("",), ("  ",)])
def test_a_turn_needs_words(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = run(tmp_path, "chat", *arguments, given=" ")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: no message; write everthread chat MESSAGE, or pipe one in\n"


def test_an_interrupted_turn_is_pointed_out(tmp_path: Path) -> None:
    interrupt(tmp_path, "monday", LIKES)
    result = run(tmp_path, "chat", "--thread", "monday", given="Hello.")
    assert result.stderr.splitlines()[0] == "the last turn of this thread was interrupted; --resume finishes it"


def test_what_a_turn_kept_is_said_beside_the_reply(tmp_path: Path) -> None:
    assert run(tmp_path, "chat", LIKES).stderr == "  kept: The user prefers short reports with a table at the end.\n"
    assert run(tmp_path, "chat", "我对花生过敏。").stderr == "  kept: 用户对花生过敏。\n"
    reminder = run(tmp_path, "chat", "Remind me to call Ben tomorrow at 9.").stderr
    assert (reminder.startswith("  a reminder for "), reminder.endswith(" 09:00 UTC\n")) == (True, True)
    assert run(tmp_path, "chat", "What am I allergic to?").stderr == ""


def test_resuming_where_nothing_was_interrupted_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "chat", "--thread", "monday", "--resume")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no turn of this thread was interrupted; there is nothing to resume\n"


def test_a_model_that_does_not_answer_is_one_line_and_the_turn_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ("--model", "openai:gpt-4.1-mini")
    with OpenAIServer(Failing(401, "Incorrect API key."), Say("Noted.")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        failed = run(tmp_path, "chat", LIKES, *model)
        resumed = run(tmp_path, "chat", "--resume", *model)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: openai:gpt-4.1-mini did not answer: ")
    assert failed.stderr.endswith("; your message is kept, and --resume asks again\n")
    assert (resumed.exit_code, resumed.stdout, resumed.stderr) == (
        0,
        "Noted.\n",
        "  kept: The user prefers short reports with a table at the end.\n",
    )


def test_a_trace_is_in_words(tmp_path: Path) -> None:
    lines = run(tmp_path, "chat", LIKES, "--trace").stdout.splitlines()
    assert lines[0] == "  restore: restored (messages: 1, memory: on)"
    assert [line for line in lines if "{" in line or "[" in line] == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"status": "active", "evidence": ["m1", "m2"], "why": None, "cited": []}, "status: active, evidence: m1 m2"),
        ([{"id": "a", "score": 0.5}, {"id": "b"}], "(id: a, score: 0.5), (id: b)"),
    ],
)
def test_plain_data_is_told_without_brackets_and_empty_parts(data: object, words: str) -> None:
    assert told(data) == words


def test_forgetting_a_memory_keeps_what_was_said_unless_told_otherwise(tmp_path: Path) -> None:
    run(tmp_path, "chat", LIKES)
    (record,) = run_json(tmp_path, "list")
    result = run(tmp_path, "forget", record["id"], "--yes")
    assert result.exit_code == 0
    left = "remains: the messages that it came from, and their checkpoints: --with-source erases them too"
    assert left in result.stdout.splitlines()
    assert run_json(tmp_path, "list") == []


def test_forgetting_nothing_claims_nothing(tmp_path: Path) -> None:
    result = run(tmp_path, "forget", "--subject", "nobody", "--yes")
    assert result.stdout.startswith("erased nothing: nothing matched; receipt ers_")
    assert len(result.stdout.splitlines()) == 1


def test_a_question_that_memory_does_not_answer_is_answered_with_nothing(tmp_path: Path) -> None:
    run(tmp_path, "chat", LIKES)
    asked = ("recall", "quantum chromodynamics of Jupiter", "--sources", "records,evidence")
    assert run_json(tmp_path, *asked)["hits"] == []
    assert run_json(tmp_path, *asked, "--floor", "0")["dropped"] == []


def test_why_tells_who_gave_way_to_whom(tmp_path: Path) -> None:
    billing = ("--project", "billing")
    for said in (
        "We decided to use PostgreSQL for the billing database because we need row-level security.",
        "Actually, we decided to use CockroachDB for the billing database because we need several regions.",
    ):
        run(tmp_path, "chat", said, *billing)
    (new,) = run_json(tmp_path, "list", *billing)
    (old,) = run_json(tmp_path, "list", "--status", "superseded", *billing)
    assert f"superseded {old['id']}, by rule newer" in run(tmp_path, "why", new["id"], *billing).stdout
    told_of_old = run(tmp_path, "why", old["id"], "--query", "Which database?", *billing).stdout
    assert f"superseded by {new['id']}, by rule newer" in told_of_old
    assert told_of_old.splitlines()[-2:] == [
        "for 'Which database?' it is left out: it is superseded",
        "in a turn: not shown: it is superseded",
    ]


def test_a_conversation_is_compacted_on_request(tmp_path: Path) -> None:
    for number in range(4):
        run(tmp_path, "chat", f"We decided on option {number}, because it is number {number}.")
    done = run_json(tmp_path, "chat", "/compact 2")
    assert (done["changed"], done["messages"]) == (True, 4)
    assert "We decided on option 1" in done["summary"]
    again = run(tmp_path, "chat", "/compact 2")
    assert (again.exit_code, again.stdout) == (
        0,
        "nothing to compact: what is said is short, or nothing was said since the last time\n",
    )
    run(tmp_path, "chat", "And now?")
    last = run(tmp_path, "chat", given="/compact\n")
    assert last.stderr == "a summary stands for the first 8 messages now:\n"
    assert "option 3" in last.stdout


def test_no_turn_less_than_one_is_kept(tmp_path: Path) -> None:
    run(tmp_path, "chat", "Hello.")
    refused = run(tmp_path, "chat", "/compact 0")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: keep_turns must be at least 1 turn")


def test_the_summaries_of_a_conversation_and_those_of_a_message_are_shown(tmp_path: Path) -> None:
    for number in range(3):
        run(tmp_path, "chat", f"We decided on option {number}.")
    none = run(tmp_path, "threads", "main", "--summaries")
    assert none.stdout == "no summary stands for a part of it: all is shown as it was said\n"
    run(tmp_path, "chat", "/compact 2")
    (shown,) = run_json(tmp_path, "threads", "main", "--summaries")
    first, last = shown["messages"][0], shown["messages"][-1]
    assert len(shown["messages"]) == 2
    assert run_json(tmp_path, "threads", "main", "--message", first) == [shown]
    told = run(tmp_path, "threads", "main", "--summaries").stdout
    assert f"by rules/1, for 2 messages: {first}, {last}" in told.replace("\n", " ")
    assert run_json(tmp_path, "threads", "main", "--message", "elsewhere") == []
    assert run(tmp_path, "threads", "--summaries").exit_code == 2
