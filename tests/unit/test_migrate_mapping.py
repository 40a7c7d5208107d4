"""The mapping file."""

from __future__ import annotations

from pathlib import Path

import pytest

from everthread import Scope
from everthread.errors import UsageError
from everthread.migrate import Map, load_maps
from everthread.migrate.mapping import scope_of, text_of

GOOD = '[[map]]\nnamespace = ["memories", "{user}"]\nowner_id = "{user}"\ntext = "content.content"\n'
ONE = Map(namespace=("memories", "{user}"), owner="user", owner_id="{user}", text=("content.content",))


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(GOOD)
    (tmp_path / "m.json").write_text(
        '{"map": [{"namespace": ["memories", "{user}"], "owner_id": "{user}", "text": "content.content"}]}'
    )
    assert load_maps(tmp_path / "m.toml", "langgraph") == load_maps(tmp_path / "m.json", "langgraph") == (ONE,)


def test_langmem_and_mem0_need_no_file_and_langgraph_does() -> None:
    for layout, namespace in (("langmem", ("memories", "ana")), ("mem0", ("user_id", "ana", "agent_id", "helper"))):
        found = scope_of(load_maps(None, layout), namespace)  # type: ignore[arg-type]
        assert found is not None
        assert found[1] == Scope(owner="user", owner_id="ana")
    with pytest.raises(UsageError, match="--map is missing"):
        load_maps(None, "langgraph")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not toml", "is not TOML"),
        ("", 'holds a list "map"'),
        ("map = 3", 'holds a list "map"'),
        (GOOD + "[other]\n", 'holds a list "map"'),
        (GOOD.replace('text = "content.content"\n', ""), "map 1: text: Field required"),
        (GOOD.replace('"{user}"]', '"ana"]'), r"owner_id: \{user\} is not in the namespace"),
        (GOOD.replace('"memories"', '"{user}"'), "another name for the second"),
        (GOOD.replace('"memories"', '"m-{x}"'), "a literal or one"),
        (GOOD + 'owner = "session"\n', "map 1: owner: "),
        (GOOD + 'authority = "policy"\n', "map 1: authority: "),
        (GOOD + 'authority = "user_explicit"\n', "map 1: authority: "),
        (GOOD + "surprise = 1\n", "map 1: surprise: "),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        load_maps(path, "langgraph")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"m\.toml cannot be read"):
        load_maps(tmp_path / "m.toml", "langgraph")


@pytest.mark.parametrize(
    ("namespace", "owner_id"),
    [
        (("memories", "ana"), "ana"),
        (("memories", "{user}"), "{user}"),
        (("memories", r"\1"), r"\1"),
        (("memories",), None),
        (("memories", "ana", "more"), None),
        (("Memories", "ana"), None),
        (("memories", " "), None),
        (("memories", "a\x00"), None),
    ],
)
def test_a_map_fits_a_whole_namespace_or_not_at_all(namespace: tuple[str, ...], owner_id: str | None) -> None:
    expected = None if owner_id is None else (ONE, Scope(owner="user", owner_id=owner_id))
    assert scope_of([ONE], namespace) == expected


def test_the_first_map_that_fits_counts() -> None:
    own = Map(namespace=("memories", "team"), owner="team", owner_id="core", text=("content",))
    assert scope_of([own, ONE], ("memories", "team")) == (own, Scope(owner="team", owner_id="core"))


def test_of_several_paths_the_first_that_leads_to_text_counts() -> None:
    paths = ("content.content", "content")
    assert text_of({"content": {"content": " tea "}}, paths) == "tea"
    assert text_of({"content": "tea"}, paths) == "tea"
    assert [text_of(value, paths) for value in ({}, {"content": " "}, {"content": {"content": 3}})] == [None] * 3
