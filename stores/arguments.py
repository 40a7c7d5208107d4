"""What the methods of a store are called with is held against their annotations, before anything is done: a None, one
text where several are asked for. What is wrong is named the same on every backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from pydantic import ConfigDict, ValidationError, validate_call

from everthread.errors import AccessDenied, UsageError
from everthread.stores.identity import Identity

__all__ = ["checked"]

P = ParamSpec("P")
R = TypeVar("R")

STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


def checked(method: Callable[P, R]) -> Callable[P, R]:
    """The method; AccessDenied for what is no identity, UsageError for any other argument that is not of its type."""

    @cache  # what it takes to look is made at the first call, not when the module is imported
    def look() -> Callable[P, tuple[Any, Any]]:
        return validate_call(config=STRICT)(_taken_by(method))

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            found, named = look()(*args, **kwargs)
        except ValidationError as error:
            if wrong := _complaint(method, args, kwargs, error):
                raise wrong from None
            found, named = args, kwargs
        return method(*found, **named)

    return called


def _taken_by(method: Callable[P, Any]) -> Callable[P, tuple[Any, Any]]:
    """Takes what the method takes, and gives it back."""

    @wraps(method)
    def taken(*args: P.args, **kwargs: P.kwargs) -> tuple[Any, Any]:
        return args, kwargs

    return taken


def _complaint(
    method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], error: ValidationError
) -> UsageError | AccessDenied | None:
    """What is wrong with the first argument that is, by its name; no text that was given is repeated. None for a lone
    surrogate: pydantic passes it in a text, and not in one of a class of its own, as a message's `text` is. TypeError,
    as Python raises it, when there are too many arguments or too few."""
    signature(method).bind(*args, **kwargs)
    found = next((each for each in error.errors(include_url=False) if each["type"] != "string_unicode"), None)
    if found is None:
        return None
    place, names = found["loc"], list(signature(method).parameters)
    name = names[place[0]] if isinstance(place[0], int) else str(place[0])
    given = {**dict(zip(names, args, strict=False)), **kwargs}[name]
    if name == "identity" and not isinstance(given, Identity):
        return AccessDenied(f'identity is {_kind(given)}; pass Identity(tenant="...", user="...")')
    where = name + "".join(f"[{each}]" for each in place[1:2] if isinstance(each, int))
    if found["type"] == "sequence_str":
        return UsageError(f"{where}: is one text; give a list of them")
    chosen = found["type"] == "literal_error" and isinstance(found["input"], str)
    value = f"{found['input'][:40]!r}" if chosen else _kind(found["input"])
    return UsageError(f"{where}: {found['msg'].replace('Input should be', 'must be')}, not {value}")


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
