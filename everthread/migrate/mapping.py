"""The mapping file: which namespace of the source becomes whose memory.

[[map]]
namespace = ["memories", "{user}"]
owner = "user"
owner_id = "{user}"
text = "content.content"
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from everthread.errors import UsageError
from everthread.migrate.items import Layout
from everthread.stores.identity import Frozen, Scope, complaint

__all__ = ["Map", "load_maps", "scope_of", "text_of"]

_CAPTURE = re.compile(r"\{(\w+)\}")


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Map(Frozen):
    """One namespace pattern and whose memory it becomes."""

    namespace: Annotated[tuple[str, ...], Field(min_length=1)]
    """Its labels, all of them: a literal, or `{name}` for any one label."""
    owner: Literal["user", "project", "agent", "team", "organization"] = "user"
    """Whose memory it becomes. What becomes anybody's but a user's waits for review."""
    owner_id: str
    """The owner's id: literal, or with `{name}` of the namespace."""
    text: Annotated[tuple[str, ...], BeforeValidator(_listed), Field(min_length=1)]
    """Where the statement is in the value, as a dotted path; of several the first that leads to text."""
    authority: Literal["user_implied", "inferred"] = "user_implied"
    """`user_implied` when it was learnt from what the user said; `inferred` waits for review."""
    content_type: Literal["fact", "episodic", "procedural"] = "fact"
    """What is said."""

    @model_validator(mode="after")
    def _captures_are_known(self) -> Self:
        names = [name for label in self.namespace for name in _CAPTURE.findall(label)]
        if len(set(names)) < len(names):
            raise ValueError("namespace: each {name} stands for one label; use another name for the second")
        if any("{" in label and not _CAPTURE.fullmatch(label) for label in self.namespace):
            raise ValueError("namespace: a label is a literal or one {name}, not both")
        if unknown := sorted(set(_CAPTURE.findall(self.owner_id)) - set(names)):
            raise ValueError(f"owner_id: {{{unknown[0]}}} is not in the namespace")
        return self


TEXT: Mapping[str, tuple[str, ...]] = {"langmem": ("content.content", "content"), "mem0": ("memory",)}
"""Where these layouts have their statements: langmem's manager and its tools differ."""
DEFAULTS: Mapping[str, tuple[Map, ...]] = {
    "langmem": (Map(namespace=("memories", "{user}"), owner_id="{user}", text=TEXT["langmem"]),),
    "mem0": (
        Map(namespace=("user_id", "{user}"), owner_id="{user}", text=TEXT["mem0"]),
        Map(namespace=("user_id", "{user}", "agent_id", "{agent}"), owner_id="{user}", text=TEXT["mem0"]),
    ),
}
"""What is mapped without a file. LangGraph's stores have no layout that could be known."""


def load_maps(path: Path | None, layout: Layout) -> tuple[Map, ...]:
    """The maps of a TOML or JSON file, in its order; without a file those of the layout.

    Raises UsageError when there is none, when the file cannot be read, and when a map is not one.
    """
    if path is None:
        if layout not in DEFAULTS:
            raise UsageError("--map is missing: name a TOML or JSON file that says whose memory each namespace becomes")
        return DEFAULTS[layout]
    found = _parsed(path)
    listed = found.get("map") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not listed or set(found) - {"map"}:
        raise UsageError(f'{path}: holds a list "map" and nothing else; begin each map with [[map]]')
    return tuple(_map(path, number, each, layout) for number, each in enumerate(listed, 1))


def _parsed(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from error


def _map(path: Path, number: int, found: Any, layout: Layout) -> Map:
    if isinstance(found, dict) and layout in TEXT:
        found = {"text": TEXT[layout], **found}
    try:
        return Map.model_validate(found)
    except ValidationError as error:
        raise UsageError(f"{path}: map {number}: {complaint(error)}") from error


def scope_of(maps: Sequence[Map], namespace: Sequence[str]) -> tuple[Map, Scope] | None:
    """The first map that fits the whole namespace, and the scope it comes to; None when none fits, or the label that it
    takes for an owner cannot be one."""
    for each in maps:
        captured = _captured(each.namespace, namespace)
        if captured is None:
            continue
        owner_id = _CAPTURE.sub(lambda name, found=captured: found[name[1]], each.owner_id)  # type: ignore[misc]
        try:
            return each, Scope(owner=each.owner, owner_id=owner_id)
        except ValidationError:
            return None
    return None


def _captured(pattern: Sequence[str], namespace: Sequence[str]) -> dict[str, str] | None:
    if len(pattern) != len(namespace):
        return None
    captured = {}
    for label, found in zip(pattern, namespace, strict=True):
        if name := _CAPTURE.fullmatch(label):
            captured[name[1]] = found
        elif label != found:
            return None
    return captured


def text_of(value: Mapping[str, Any], paths: Sequence[str]) -> str | None:
    """The first text that a path leads to; None when none does, or it is blank."""
    for path in paths:
        found: Any = value
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if isinstance(found, str) and found.strip():
            return found.strip()
    return None
