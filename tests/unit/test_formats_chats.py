"""Chats of people and of chat products: LoCoMo, LongMemEval, ChatGPT's export, group chats."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

from support.imports import FIXTURES, outcome

from everthread.cli.formats import Message


def test_locomo_keeps_sessions_turn_ids_speakers_captions_and_dates() -> None:
    found = outcome(FIXTURES / "locomo.json")
    assert found.formats == ["locomo"]
    picture = {
        "speaker": "Tom",
        "dia_id": "D1:2",
        "text": "Look!",
        "img_url": ["https://example.org/boat.jpg"],
        "blip_caption": "a photo of a red boat",
        "query": "boat",
    }
    assert found.messages[:3] == [
        Message(
            thread="talk-1/session_1",
            id="D1:1",
            role="user",
            speaker="Iris",
            text="I adopted a greyhound.",
            at=datetime(2023, 5, 8, 13, 56, 0, tzinfo=UTC),
            source="user",
            payload=None,
        ),
        Message(
            thread="talk-1/session_1",
            id="D1:2",
            role="user",
            speaker="Tom",
            text="Look! [image: a photo of a red boat]",
            at=datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC),
            source="user",
            payload=picture,
        ),
        Message(
            thread="talk-1/session_2",
            id="D2:1",
            role="user",
            speaker="Tom",
            text="I sold the boat.",
            at=datetime(2023, 6, 3, 0, 5, 0, tzinfo=UTC),
            source="user",
            payload=None,
        ),
    ]
    assert [message.text for message in found.messages[3:]] == ["It rained."]
    assert found.problems == [
        ("locomo.json", 2, "talk-1/session_3: time 'some day' not understood"),
        ("locomo.json", 2, "talk-1/session_3: turn 2 is not an object"),
    ]


def test_longmemeval_reads_each_session_once_with_its_date() -> None:
    found = outcome(FIXTURES / "longmemeval.json")
    assert found.formats == ["longmemeval"]
    assert [(m.thread, m.id, m.role, m.text, m.at) for m in found.messages] == [
        ("s1", "s1/0", "user", "I moved to Porto.", datetime(2023, 5, 20, 2, 21, 0, tzinfo=UTC)),
        ("s1", "s1/1", "assistant", "Lovely city.", datetime(2023, 5, 20, 2, 21, 1, tzinfo=UTC)),
        ("s2", "s2/0", "user", "Any soup recipe?", datetime(2023, 5, 21, 3, 0, 0, tzinfo=UTC)),
    ]
    assert found.skipped == {"session was read with an earlier question": 1}


def test_longmemeval_in_two_files_is_read_once_from_either(tmp_path: Path) -> None:
    question = {"question": "Which city?", "haystack": [["s1", "2023/05/20 (Sat) 02:21", 0], ["s2", None, 1]]}
    sessions = [[{"role": "user", "content": "I moved to Porto."}], [{"role": "user", "content": "Soup?"}]]
    with gzip.open(tmp_path / "dev_questions.jsonl.gz", "wt") as file:
        file.write(json.dumps(question) + "\n")
    with gzip.open(tmp_path / "dev_sessions.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(session) + "\n" for session in sessions)
    found = outcome(tmp_path)
    assert found.formats == ["longmemeval"]
    assert [(message.thread, message.text) for message in found.messages] == [
        ("s1", "I moved to Porto."),
        ("s2", "Soup?"),
    ]
    assert found.skipped == {"read together with dev_questions.jsonl.gz": 1}


def test_longmemeval_without_its_sessions_says_so(tmp_path: Path) -> None:
    path = tmp_path / "dev_questions.jsonl"
    path.write_text(json.dumps({"question": "?", "haystack": [["s1", None, 0]]}))
    assert outcome(path).problems == [
        (path.name, None, "the file of sessions is missing; put <name>_sessions beside <name>_questions")
    ]


def test_a_chatgpt_export_is_read_along_its_current_path() -> None:
    found = outcome(FIXTURES / "chatgpt.json")
    assert found.formats == ["chatgpt"]
    assert {message.thread for message in found.messages} == {"chatgpt/conv-9"}
    assert found.said == [
        ("user", "user", "I am vegetarian. Where to eat in Turin?"),
        ("tool", "assistant", 'web search("vegetarian turin")'),
        ("tool", "web", "Il Gusto: vegetarian since 1989"),
        ("assistant", "assistant", "Try Il Gusto."),
    ]
    assert found.skipped == {"system prompt": 1, "reasoning": 1, "on a branch that was edited away": 1}


def test_a_chatgpt_tree_that_bites_its_tail_ends(tmp_path: Path) -> None:
    def node(parent: str, text: str, at: float) -> dict[str, object]:
        content = {"content_type": "text", "parts": [text]}
        return {"parent": parent, "message": {"author": {"role": "user"}, "create_time": at, "content": content}}

    mapping = {"a": node("b", "one", 1.0), "b": node("a", "two", 2.0), "c": node("lost", "three", 0.5), "d": 7}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"mapping": mapping, "current_node": "gone"}, {"title": "no tree"}]))
    found = outcome(path)
    assert [message.text for message in found.messages] == ["one", "two"]
    assert found.skipped == {"on a branch that was edited away": 1}
    assert found.problems == [(path.name, 1, "is not a conversation of a ChatGPT export: no mapping")]


def test_a_group_chat_knows_people_from_assistants() -> None:
    found = outcome(FIXTURES / "group_chat.json")
    assert found.formats == ["evermemos"]
    assert [(m.thread, m.id, m.role, m.speaker, m.text) for m in found.messages] == [
        ("team-1", "m1", "user", "Noor", "我们周五发布。"),
        ("team-1", "m2", "assistant", "Helper", "好的。"),
    ]
    assert found.problems == [("group_chat.json", 1, "message 3 is not an object")]
