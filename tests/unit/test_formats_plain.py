"""Plain messages: JSON Lines, lists and `messages`, with whatever a file can have wrong."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.imports import FIXTURES, outcome

from everthread.cli.formats import Message, Skipped, detect, sources
from everthread.cli.formats.times import moment
from everthread.errors import UsageError


def write_lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values))
    return path


def test_each_line_is_a_message_and_a_broken_one_costs_only_itself() -> None:
    found = outcome(FIXTURES / "chat.jsonl")
    assert found.formats == ["jsonl"]
    assert found.said == [
        ("user", "user", "I prefer tea over coffee."),
        ("assistant", "assistant", "Noted."),
        ("user", "user", "我住在杭州。"),
        ("user", "user", "ok"),
        ("user", "user", "ok"),
    ]
    assert found.skipped == {"system prompt": 1, "role 'oracle' not known": 1}
    assert found.problems == [("chat.jsonl", 3, "is not JSON: Unterminated string starting at")]


def test_a_message_without_time_follows_the_one_before_it() -> None:
    assert [message.at for message in outcome(FIXTURES / "chat.jsonl").messages] == [
        datetime(2024, 3, 1, 9, 0, 0, tzinfo=UTC),
        datetime(2024, 3, 1, 9, 0, 5, tzinfo=UTC),
        datetime(2024, 3, 1, 17, 1, 0, tzinfo=UTC),
        datetime(2024, 3, 1, 17, 1, 0, 1_000, tzinfo=UTC),
        datetime(2024, 3, 1, 17, 1, 0, 2_000, tzinfo=UTC),
    ]


def test_without_any_time_the_first_message_has_the_time_of_the_file(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"role": "user", "content": "hi"})
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert [message.at for message in outcome(path).messages] == [datetime.fromtimestamp(1_700_000_000, UTC)]


def test_ids_do_not_change_when_the_file_is_copied_or_a_line_is_added_before_them(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "first"}, {"role": "user", "content": "ok"}, {"role": "user", "content": "ok"}]
    before = outcome(write_lines(tmp_path / "a.jsonl", *said)).messages
    (tmp_path / "copy").mkdir()
    copied = outcome(write_lines(tmp_path / "copy" / "a.jsonl", said[0], {"role": "user", "content": "new"}, *said[1:]))
    assert len({message.id for message in before}) == 3
    kept = [message for message in copied.messages if message.text != "new"]
    assert [(m.thread, m.id) for m in kept] == [(m.thread, m.id) for m in before]


def test_two_files_of_one_name_are_two_conversations(tmp_path: Path) -> None:
    for folder, text in (("one", "about cats"), ("two", "about dogs")):
        (tmp_path / folder).mkdir()
        write_lines(tmp_path / folder / "chat.jsonl", {"role": "user", "content": text})
    assert len({message.thread for message in outcome(tmp_path).messages}) == 2


def test_two_messages_under_one_id_are_both_kept(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "one", "id": "same"},
        {"role": "user", "content": "two", "id": "same"},
        {"role": "user", "content": "one", "id": "same"},
    )
    first, second, third = outcome(path).messages
    assert first.id == third.id == "same"
    assert second.id.startswith("same~")


def test_openai_parts_and_tool_calls_are_read() -> None:
    found = outcome(FIXTURES / "openai.json")
    assert found.said == [
        ("user", "user", "What is in this picture?\n[image]"),
        ("tool", "assistant", 'web_search {"q":"heron"}'),
        ("tool", "web", "The grey heron is a wading bird."),
        ("assistant", "assistant", "A grey heron."),
    ]
    assert {message.thread for message in found.messages} == {"order-7"}
    picture, call, result, reply = (message.payload for message in found.messages)
    assert picture is not None and picture["content"][1]["image_url"] == {"url": "data:image/png;base64,AAAA"}
    assert call is not None and call["function"]["name"] == "web_search"
    assert result is not None and result["tool_call_id"] == "call_1"
    assert reply is None


def test_a_thread_named_in_the_message_wins(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "hi", "thread": "t1"},
        {"role": "user", "content": "hi", "thread": "t2"},
    )
    assert [message.thread for message in outcome(path).messages] == ["t1", "t2"]


def test_lines_that_are_lists_are_conversations(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl", [{"role": "user", "content": "cats"}], [{"role": "user", "content": "dogs"}]
    )
    found = outcome(path)
    assert found.said == [("user", "user", "cats"), ("user", "user", "dogs")]
    assert len({message.thread for message in found.messages}) == 2


def test_a_list_is_read_up_to_the_place_where_it_breaks(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[\n {"role": "user", "content": "one"},\n {"role": "user", "content": "two"},\n {"role": "us')
    found = outcome(path)
    assert found.said == [("user", "user", "one"), ("user", "user", "two")]
    why = "is not JSON: Unterminated string starting at; the file was read up to here"
    assert found.problems == [("a.json", 4, why)]


def test_a_list_larger_than_what_is_read_at_once_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    texts = [f"{number} {'x' * (number % 7 * 40_000)}" for number in range(60)]
    path.write_text(json.dumps([{"role": "user", "content": text} for text in texts]))
    assert [message.text for message in outcome(path).messages] == texts


def test_a_line_of_ten_megabytes_is_one_message(tmp_path: Path) -> None:
    text = "word " * 2_000_000
    path = write_lines(tmp_path / "a.jsonl", {"role": "user", "content": text}, {"role": "user", "content": "after"})
    assert [message.text for message in outcome(path).messages] == [text, "after"]


def test_nul_and_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl",
        r'{"role": "user", "content": "a\u0000b \ud83d c", "id": "i\u0000d"}',
        r'{"role": "user", "content": [{"type": "text", "text": "\udc00"}], "n": NaN, "m": 1e999}',
        '{"role": "user", "content": "مرحبا 🧵 \\ud83e\\uddf5"}',
    )
    found = outcome(path)
    assert [message.text for message in found.messages] == ["a\ufffdb \ufffd c", "\ufffd", "مرحبا 🧵 🧵"]
    assert found.messages[0].id == "i\ufffdd"
    payload = {"role": "user", "content": [{"type": "text", "text": "\ufffd"}], "n": None, "m": "inf"}
    assert found.messages[1].payload == payload


def test_bytes_that_are_not_utf8_cost_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"role": "user", "content": "caf\xe9"}\r\n\x00\x00\x00\n{"role":"user","content":"ok"}'
    )
    assert [message.text for message in outcome(path).messages] == ["caf\ufffd", "ok"]


def test_nesting_without_end_and_endless_numbers_are_problems(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl", {"role": "user", "content": "ok"}, "[" * 200_000, '{"a": ' + "9" * 5000 + "}"
    )
    found = outcome(path, "jsonl")
    assert found.said == [("user", "user", "ok")]
    assert [(line, why.split(":")[0]) for _, line, why in found.problems] == [
        (2, "is nested too deeply"),
        (3, "is not JSON"),
    ]


def test_a_time_that_is_none_is_reported_and_the_message_kept(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"role": "user", "content": "hi", "time": "soon"})
    found = outcome(path)
    assert found.said == [("user", "user", "hi")]
    assert found.problems == [("a.jsonl", 1, "time 'soon' not understood; placed after the message before it")]


def test_gzip_is_read_and_a_torn_one_reported(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"role": "user", "content": "zipped"}\n' * 2)
    (tmp_path / "a.jsonl.gz").write_bytes(whole)
    (tmp_path / "b.jsonl.gz").write_bytes(whole[:-4])
    assert outcome(tmp_path / "a.jsonl.gz").said == [("user", "user", "zipped")] * 2
    torn = outcome(tmp_path / "b.jsonl.gz", "jsonl")
    assert [why.split(":")[0] for _, _, why in torn.problems] == ["cannot be read"]


def test_what_is_no_conversation_is_named_as_not_known(tmp_path: Path) -> None:
    write_lines(tmp_path / "parts.jsonl", {"role": "user", "message": {"content": [{"type": "text", "text": "hi"}]}})
    write_lines(tmp_path / "typed.jsonl", {"type": "user", "content": "hi"}, {"type": "assistant", "content": "ho"})
    write_lines(tmp_path / "telemetry.jsonl", *[{"event": n} for n in range(9)], {"role": "user", "content": "one"})
    (tmp_path / "settings.json").write_text('{"messages": []}')
    (tmp_path / "notes.md").write_text("# Notes\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "blank.jsonl").write_text("\n\n")
    assert outcome(tmp_path)._asdict() == {
        "formats": [],
        "messages": [],
        "skipped": {"format not known; --format says which it is": 7, "empty file": 1},
        "problems": [],
    }


def test_a_file_in_which_nothing_is_json_is_named_with_its_first_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n  "messages": [{"role": "user"')
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"role": "user", "content": "hi"}')[:20])
    broken, torn = sources(tmp_path)
    assert broken == Skipped(tmp_path / "a.json", 2, "is not JSON: Expecting ',' delimiter")
    assert isinstance(torn, Skipped)
    assert torn.why.startswith("cannot be read: ")


def test_a_format_that_is_asked_for_is_used_whatever_the_content(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"role": "user", "content": "hi"})
    assert detect(path) == "jsonl"
    assert outcome(path, "locomo").problems == [("a.jsonl", 1, "is not a LoCoMo sample: no session_<n> with turns")]


def test_a_path_or_format_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist; give a file or a folder"):
        list(sources(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="format 'yaml' is not known; choose one of jsonl, locomo,"):
        list(sources(tmp_path, "yaml"))


def test_a_dead_link_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "gone")
    assert list(sources(tmp_path)) == [Skipped(tmp_path / "link.jsonl", None, "not a file")]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2023-05-08T13:56:00+02:00", datetime(2023, 5, 8, 11, 56, tzinfo=UTC)),
        ("2023-05-08 13:56", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("20230508", datetime(2023, 5, 8, tzinfo=UTC)),
        ("12:05 am on 3 June, 2023", datetime(2023, 6, 3, 0, 5, tzinfo=UTC)),
        ("12:30 pm on 3 June, 2023", datetime(2023, 6, 3, 12, 30, tzinfo=UTC)),
        ("2023/05/30 (Tue) 18:40", datetime(2023, 5, 30, 18, 40, tzinfo=UTC)),
        (1_700_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1_700_000_000_250, datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=UTC)),
        ("1700000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1_700_000_000_000_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("1:56 pm on 8 Mai, 2023", None),
        ("99/99/9999", None),
        ("2023/13/45", None),
        (True, None),
        (1e300, None),
        (float("nan"), None),
        ({}, None),
        ("", None),
    ],
)
def test_times_are_read_as_they_are_written(written: Any, read: datetime | None) -> None:
    assert moment(written) == read


def test_a_message_is_plain_data() -> None:
    assert all(isinstance(message, Message) for message in outcome(FIXTURES / "chat.jsonl").messages)
