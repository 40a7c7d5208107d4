"""The operations of one batch, checked as a whole before anything is read or written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp, validate_op_namespace

from everthread.errors import UsageError
from everthread.stores.door import unsound
from everthread.stores.filters import check_filter

__all__ = ["Batch", "Place", "checked"]

Place = tuple[tuple[str, ...], str]
"""Where an item is: namespace and key."""

MAX_TTL_MINUTES = 10_000 * 366 * 24 * 60
"""Ten thousand years: a longer life cannot be counted in microseconds."""


class Batch(NamedTuple):
    """Operations that can be run."""

    ops: list[Op]
    """All of them, in order."""
    puts: dict[Place, PutOp]
    """The last write of each place."""
    values: dict[Place, str]
    """What is put there, as JSON; a place that is missing here is deleted."""

    @property
    def queries(self) -> list[str]:
        """The texts that are searched for."""
        return [op.query for op in self.ops if isinstance(op, SearchOp) and op.query]


def checked(ops: Iterable[Op]) -> Batch:
    """The operations as a batch.

    Raises UsageError that names the argument at fault, or LangGraph's InvalidNamespaceError for a namespace.
    """
    listed = list(ops)
    for op in listed:
        _check(op)
    puts = {(op.namespace, op.key): op for op in listed if isinstance(op, PutOp)}
    values = {place: _as_json(op.value, place) for place, op in puts.items() if op.value is not None}
    return Batch(listed, puts, values)


def _check(op: Op) -> None:
    validate_op_namespace(op)
    match op:
        case GetOp():
            _check_place(op.namespace, op.key)
        case PutOp():
            _check_put(op)
        case SearchOp():
            _check_text("namespace", *op.namespace_prefix)
            _check_text("query", op.query or "")
            _check_page(op.limit, op.offset)
            if op.filter:
                check_filter(op.filter)
        case ListNamespacesOp():
            _check_listing(op)
        case _:
            raise UsageError(
                f"batch: unknown operation {type(op).__name__}; use GetOp, PutOp, SearchOp, ListNamespacesOp"
            )


def _check_put(op: PutOp) -> None:
    _check_place(op.namespace, op.key)
    if not op.namespace:
        raise UsageError("namespace: must not be empty; name at least one label")
    if op.ttl is not None and not 0 < op.ttl <= MAX_TTL_MINUTES:
        raise UsageError(f"ttl: must be a positive number of minutes, not {op.ttl!r}; None keeps the item")


def _check_place(namespace: tuple[str, ...], key: str) -> None:
    if not isinstance(key, str):
        raise UsageError(f"key: must be text, not {type(key).__name__}")
    _check_text("namespace", *namespace)
    fault = unsound(key)
    if fault is not None:
        raise UsageError(f"key: {fault}")


def _check_listing(op: ListNamespacesOp) -> None:
    _check_page(op.limit, op.offset)
    if op.max_depth is not None and op.max_depth < 1:
        raise UsageError(f"max_depth: must be at least 1, not {op.max_depth}; None lists whole namespaces")
    for condition in op.match_conditions or ():
        if condition.match_type not in ("prefix", "suffix"):
            raise UsageError(f"match_type: unknown {condition.match_type!r}; use prefix or suffix")


def _check_page(limit: int, offset: int) -> None:
    if limit < 0 or offset < 0:
        raise UsageError(f"limit and offset: must not be negative, but are {limit} and {offset}")


def _check_text(name: str, *texts: str) -> None:
    for text in texts:
        if not _is_unicode(text):
            raise UsageError(f"{name}: must be valid Unicode (it has a lone surrogate)")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_json(value: Mapping[str, Any], place: Place) -> str:
    """The value as JSON, or a UsageError that names the item and the part which JSON cannot hold."""
    name = f"value of {place[1]!r} in {place[0]}"
    if not isinstance(value, Mapping):
        raise UsageError(f"{name}: must be a dict, not {type(value).__name__}")
    try:
        _check_part(dict(value), "")
        return json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise UsageError(f"{name}: is nested too deeply; store it flatter") from None
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error


def _check_part(part: Any, path: str) -> None:
    """Refuse what json.dumps would change on the way (a key that is not text) or what is not UTF-8."""
    match part:
        case str():
            if not _is_unicode(part):
                raise ValueError(f"{path} must be valid Unicode (it has a lone surrogate)")
        case dict():
            for key, inner in part.items():
                if not isinstance(key, str):
                    raise ValueError(f"{path} has the key {key!r}; keys must be text")
                _check_part(key, f"{path}.{key!r}")
                _check_part(inner, f"{path}.{key}")
        case list() | tuple():
            for n, inner in enumerate(part):
                _check_part(inner, f"{path}[{n}]")
        case None | bool() | int() | float():
            pass
        case _:
            raise ValueError(f"{path} is a {type(part).__name__}, which JSON cannot hold; store text or a number")
