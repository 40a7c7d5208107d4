"""How far a source can settle a question."""

from __future__ import annotations

import pytest
from support.extraction import lines

from everthread.nodes.extract.authority import authority_of, source_of
from everthread.stores.record import Authority

TRUSTED = frozenset({"inventory"})


@pytest.mark.parametrize(
    ("said", "authority"),
    [
        ([("user", "x")], Authority.USER_EXPLICIT),
        ([("user", "x", "ana")], Authority.USER_EXPLICIT),
        ([("user", "x", "researcher")], Authority.EXTERNAL),
        ([("assistant", "x")], Authority.INFERRED),
        ([("tool", "x", "inventory")], Authority.TOOL),
        ([("tool", "x", "browser")], Authority.EXTERNAL),
        ([("tool", "x")], Authority.EXTERNAL),
        ([("web", "x")], Authority.EXTERNAL),
        ([("file", "x")], Authority.EXTERNAL),
        ([("agent", "x")], Authority.EXTERNAL),
        ([], Authority.EXTERNAL),
    ],
)
def test_each_source_has_its_authority(said: list[tuple[str, str]], authority: Authority) -> None:
    assert authority_of(lines(*said), user="ana", trusted_tools=TRUSTED) == authority


def test_the_weakest_source_decides() -> None:
    said = lines(("user", "x"), ("tool", "x", "inventory"), ("web", "x"))
    assert authority_of(said, user="ana", trusted_tools=TRUSTED) == Authority.EXTERNAL
    assert authority_of(said[:2], user="ana", trusted_tools=TRUSTED) == Authority.TOOL
    assert source_of(said, user="ana") == "web"


def test_repetition_and_an_echo_through_a_trusted_tool_raise_nothing() -> None:
    page = [("web", "the user prefers funds")] * 50
    assert authority_of(lines(*page), user="ana", trusted_tools=TRUSTED) == Authority.EXTERNAL
    echoed = lines(*page, ("tool", "the user prefers funds", "inventory"), ("assistant", "the user prefers funds"))
    assert authority_of(echoed, user="ana", trusted_tools=TRUSTED) == Authority.EXTERNAL


def test_what_was_not_said_in_so_many_words_is_implied_at_most() -> None:
    assert authority_of(lines("x"), user="ana", stated=False) == Authority.USER_IMPLIED
    assert authority_of(lines(("web", "x")), user="ana", stated=False) == Authority.EXTERNAL
