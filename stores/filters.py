"""Filters of a search over plain items: the operators of LangGraph's stores, as a pure predicate.

The predicate runs over the parsed value while rows are read, before ranking and paging. It is not SQL on purpose: no
key can be spliced into a statement, integers keep every digit, and any key works (quotes, dots, newlines).

It answers as LangGraph's InMemoryStore does wherever that answers, and says "no match" where that raises in the middle
of a search (a missing key or a list compared with `$gt`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from everthread.errors import UsageError

__all__ = ["check_filter", "matches"]

Comparison = Callable[[Any, Any], bool]

ORDER: dict[str, Comparison] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *ORDER)


def check_filter(conditions: Mapping[str, Any]) -> None:
    """Refuse a filter that cannot be evaluated, before anything is read.

    Raises UsageError for an unknown operator, a key that is not text or has an empty step (`"user."`), and an order
    that is asked of something which has none (`{"$gt": None}`).
    """
    if not isinstance(conditions, Mapping):
        raise UsageError(f"filter: must be a dict of keys and conditions, not {type(conditions).__name__}")
    for key, condition in conditions.items():
        if not isinstance(key, str):
            raise UsageError(f"filter: key {key!r} must be text, not {type(key).__name__}")
        if "" in key.split("."):
            raise UsageError(f"Invalid filter key {key!r}: a step of the path is empty; write it like 'user.name'")
        _check_condition(key, condition)


def _check_condition(key: str, condition: Any) -> None:
    if isinstance(condition, list | tuple):
        for part in condition:
            _check_condition(key, part)
    elif _has_operators(condition):
        for name, operand in condition.items():
            _check_operator(key, name, operand)
    elif isinstance(condition, Mapping):
        check_filter(condition)


def _check_operator(key: str, name: str, operand: Any) -> None:
    if name not in OPERATORS:
        raise UsageError(f"filter {key!r}: unknown operator {name!r}; use one of {', '.join(OPERATORS)}")
    if name in ORDER and not isinstance(operand, int | float | str):
        raise UsageError(f"filter {key!r}: {name} takes a number or a text, not {type(operand).__name__}")


def matches(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Whether an item's value meets every condition.

    A key with dots is a path into nested dicts, unless the value has that very key. A missing key counts as None, so
    `$ne` keeps items without the key. A dict matches by the keys it names, a list element by element and in whole.
    Numbers compare as numbers, however large, and so do texts that are numbers; other texts compare by code point; a
    number and a word have no order.
    """
    return all(_meets(_at(value, key), condition) for key, condition in conditions.items())


def _at(value: Any, key: str) -> Any:
    """What stands under a key, or at the end of a dotted path: `{"user": {"name": "ana"}}` at `user.name`."""
    if not isinstance(value, Mapping):
        return None
    if key in value or "." not in key:
        return value.get(key)
    step, _, rest = key.partition(".")
    return _at(value.get(step), rest)


def _meets(value: Any, condition: Any) -> bool:
    if _has_operators(condition):
        return all(_holds(value, name, operand) for name, operand in condition.items())
    if isinstance(condition, Mapping):
        return isinstance(value, Mapping) and matches(value, condition)
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(condition)
            and all(_meets(part, wanted) for part, wanted in zip(value, condition, strict=True))
        )
    return bool(value == condition)


def _has_operators(condition: Any) -> bool:
    return isinstance(condition, Mapping) and any(str(key).startswith("$") for key in condition)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == _as_json(operand))
    if name == "$ne":
        return bool(value != _as_json(operand))
    return _ordered(value, operand, ORDER[name])


def _ordered(value: Any, operand: Any, compare: Comparison) -> bool:
    left, right = _number(value), _number(operand)
    if left is not None and right is not None:
        return compare(left, right)
    return isinstance(value, str) and isinstance(operand, str) and compare(value, operand)


def _number(value: Any) -> int | float | None:
    """The number that this is or spells, exactly; None when it is not one."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        return None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return None


def _as_json(operand: Any) -> Any:
    """The operand as it would look after it was stored: JSON has lists, not tuples."""
    if isinstance(operand, list | tuple):
        return [_as_json(part) for part in operand]
    if isinstance(operand, Mapping):
        return {key: _as_json(part) for key, part in operand.items()}
    return operand
