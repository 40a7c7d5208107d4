"""Sessions of coding agents: Codex, Claude Code, OpenCode."""

from __future__ import annotations

import json
from pathlib import Path

from support.imports import FIXTURES, outcome


def test_codex_keeps_what_was_said_and_drops_what_the_program_added() -> None:
    found = outcome(FIXTURES / "codex.jsonl")
    assert found.formats == ["codex"]
    assert [(message.id, message.role, message.source, message.text) for message in found.messages] == [
        ("msg-1", "user", "user", "Why does the build fail?"),
        ("fc-1", "tool", "assistant", 'shell {"command":["make"]}'),
        ("c1/result", "tool", "tool", "missing separator"),
        ("ws-1", "tool", "assistant", 'web_search {"type": "search", "query": "missing separator"}'),
        ("msg-2", "assistant", "assistant", "A tab is missing in line 3."),
    ]
    assert {message.thread for message in found.messages} == {"codex/5f0c"}
    assert found.skipped == {
        "session metadata": 2,
        "developer message": 1,
        "injected context (AGENTS.md, environment)": 1,
        "turn context": 1,
        "reasoning": 1,
        "world state": 1,
        "compaction marker": 1,
        "event": 1,
        "snapshot marker": 1,
        "event that repeats a message": 2,
        "record 'telepathy' not known": 1,
    }
    assert found.problems == [("codex.jsonl", 11, "is not JSON: Unterminated string starting at")]


def test_a_tool_call_of_codex_is_kept_whole() -> None:
    call = outcome(FIXTURES / "codex.jsonl").messages[1]
    assert call.payload == {
        "type": "function_call",
        "id": "fc-1",
        "call_id": "c1",
        "name": "shell",
        "arguments": '{"command":["make"]}',
    }


def test_codex_before_envelopes_is_read() -> None:
    found = outcome(FIXTURES / "codex_legacy.jsonl")
    assert found.formats == ["codex"]
    assert found.said == [
        ("user", "user", "Rename the module."),
        ("tool", "assistant", "apply_patch {}"),
        ("tool", "tool", "done"),
        ("assistant", "assistant", "Renamed."),
    ]
    assert {message.thread for message in found.messages} == {"codex/9ab1"}
    assert found.messages[0].at.isoformat() == "2025-06-01T08:00:00.001000+00:00"


def test_codex_as_one_document_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2025.json"
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    path.write_text(json.dumps({"session": {"id": "old", "timestamp": "2025-05-01T00:00:00Z"}, "items": [message, 4]}))
    found = outcome(path)
    assert found.formats == ["codex"]
    assert [(message.thread, message.text) for message in found.messages] == [("codex/old", "hi")]


def test_codex_events_speak_when_no_item_does(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    events = [
        {"type": "session_meta", "payload": {"id": "e1", "source": {"subagent": "review"}}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Review this."}},
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "Looks good."}},
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert outcome(path).said == [("user", "agent", "Review this."), ("assistant", "assistant", "Looks good.")]


def test_codex_with_fields_that_moved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "drift.jsonl"
    lines = [
        {"created_at": "2025-09-10T12:00:00Z", "role": "user", "message": "Translate hello."},
        {
            "created_at": "2025-09-10T12:00:01Z",
            "type": "function_call",
            "function": {"name": "dict"},
            "arguments": "hello",
        },
        {"created_at": "2025-09-10T12:00:02Z", "type": "function_result", "name": "dict", "result": {"stdout": "hola"}},
        {"timestamp": "2025-09-10T12:00:03Z", "type": "world_state", "payload": {"full": True}},
        {"type": "response_item", "payload": "not an object"},
        17,
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome(path)
    assert found.said == [
        ("user", "user", "Translate hello."),
        ("tool", "assistant", "dict hello"),
        ("tool", "tool", "hola"),
    ]
    assert found.problems == [("drift.jsonl", 6, "is not a line of a rollout: expected an object")]


def test_claude_code_keeps_what_was_said_and_drops_what_the_program_added() -> None:
    found = outcome(FIXTURES / "claude_code.jsonl")
    assert found.formats == ["claude-code"]
    assert [(m.thread, m.id, m.role, m.source, m.text) for m in found.messages] == [
        ("claude-code/sess-1", "u2", "user", "user", "Use ruff, not flake8."),
        ("claude-code/sess-1", "u3", "assistant", "assistant", "I will look."),
        ("claude-code/sess-1", "u3/2", "tool", "assistant", 'WebFetch {"url": "https://example.org"}'),
        ("claude-code/sess-1", "u4/0", "tool", "web", "Ruff is fast."),
        ("claude-code/sess-1/agent-a7", "u5", "user", "agent", "Count the files."),
        ("claude-code/sess-1/agent-a7", "u6", "assistant", "assistant", "Three files."),
        ("claude-code/sess-1", "u10", "assistant", "assistant", "Switched to ruff."),
    ]
    assert found.skipped == {
        "summary": 1,
        "injected context (reminders, commands)": 3,
        "reasoning": 1,
        "compaction summary": 1,
        "error of the provider": 1,
        "session metadata": 1,
    }
    assert found.problems == [
        ("claude_code.jsonl", 7, "is not JSON: Expecting value"),
        ("claude_code.jsonl", 14, "user record without a message"),
    ]


def test_a_tool_result_of_claude_code_is_kept_whole() -> None:
    result = outcome(FIXTURES / "claude_code.jsonl").messages[3]
    assert result.payload == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [{"type": "text", "text": "Ruff is fast."}],
        "toolUseResult": {"stdout": "Ruff is fast."},
    }


def test_a_claude_code_export_and_older_records_are_read(tmp_path: Path) -> None:
    path = tmp_path / "web.json"
    lines = [
        {"type": "user", "timestamp": "2025-12-24T10:00:00Z", "message": {"role": "user", "content": "Open README"}},
        {"type": "tool_use", "name": "Read", "input": {"path": "README"}, "uuid": "t1"},
        {"type": "tool_result", "name": "Read", "output": "# Title", "uuid": "r1"},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "fallback"}, "Done."]}},
    ]
    path.write_text(json.dumps({"loglines": lines}))
    found = outcome(path)
    assert found.formats == ["claude-code"]
    assert found.said == [
        ("user", "user", "Open README"),
        ("tool", "assistant", 'Read {"path": "README"}'),
        ("tool", "file", "# Title"),
        ("assistant", "assistant", "Done."),
    ]
    assert {message.thread for message in found.messages} == {"claude-code/web"}
    assert found.skipped == {"part 'fallback' not known": 1}


def test_opencode_is_read_from_its_folder_in_order() -> None:
    found = outcome(FIXTURES / "opencode")
    assert found.formats == ["opencode"]
    assert [(m.id, m.role, m.source, m.text, m.at.isoformat()) for m in found.messages] == [
        ("msg_u1", "user", "user", "List the beds.", "2024-10-27T03:33:21+00:00"),
        ("prt_4", "tool", "assistant", 'bash {"command": "ls"}', "2024-10-27T03:33:22.500000+00:00"),
        ("prt_4/result", "tool", "tool", "north south", "2024-10-27T03:33:23+00:00"),
        ("msg_a1", "assistant", "assistant", "Two beds.", "2024-10-27T03:33:23.100000+00:00"),
    ]
    assert {message.thread for message in found.messages} == {"opencode/ses_garden"}
    assert found.skipped == {"synthetic text": 1, "step marker": 1}
    assert found.problems == [("msg_broken.json", 1, "is not JSON: Unterminated string starting at")]


def test_legacy_opencode_finds_parts_by_message_and_trusts_no_summary() -> None:
    found = outcome(FIXTURES / "opencode_legacy")
    assert found.formats == ["opencode"]
    assert found.said == [("user", "agent", "Open the gate"), ("assistant", "assistant", "It is open.")]


def test_sessions_of_other_agents_in_a_folder_are_named_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "qwen.jsonl").write_text(
        json.dumps(
            {"uuid": "1", "sessionId": "s", "type": "user", "message": {"role": "user", "parts": [{"text": "hi"}]}}
        )
    )
    (tmp_path / "copilot.jsonl").write_text(json.dumps({"type": "user.message", "data": {"content": "hi"}, "id": "e2"}))
    (tmp_path / "droid.jsonl").write_text(json.dumps({"type": "message", "role": "user", "text": "hi"}))
    (tmp_path / "mine.jsonl").write_text(json.dumps({"role": "user", "content": "hi"}))
    found = outcome(tmp_path)
    assert (found.formats, found.said) == (["jsonl"], [("user", "user", "hi")])
    assert found.skipped == {"format not known; --format says which it is": 3}
