"""What every backend says of an argument that cannot be one: the same, by its name, before anything is read or written.

Which methods there are, and what each takes, is read from their signatures: a new one is held to this, too."""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore

from everthread import Identity
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.jobs import Job
from everthread.stores.record import Selection

GOOD: dict[str, Any] = {
    "older_than": timedelta(days=1),
    "every": timedelta(days=1),
    "now": datetime(2026, 5, 1, tzinfo=UTC),
    "due_at": datetime(2026, 5, 1, tzinfo=UTC),
    "payload": {},
    "handlers": {},
    "memory": "on",
    "kind": "summary",
    "selection": Selection(record_ids=("r",)),
    "job": Job(id="j", kind="k", payload={}, attempts=1, token=1, tenant="acme", user="ana"),
}
"""By an argument's name, where neither a text nor an empty list will do."""
ANYTHING = {"message_ids", "evidence", "changes", "events", "after", "task_ids", "artifact_ids", "record_ids", "words"}
"""Arguments that take a list."""


def methods(store: MemoryStore) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public method that takes something, by its name."""
    for part in ("transcripts", "artifacts", "tasks", "inbox", "jobs"):
        for name, method in inspect.getmembers(getattr(store, part), inspect.ismethod):
            if not name.startswith("_") and inspect.signature(method).parameters:
                yield f"{part}.{name}", method
    for name in vars(MemoryStore).keys() - set(dir(BaseStore)) - {"bound", "acommit", "arecall", "aerase"}:
        method = getattr(store, name)
        if not name.startswith("_") and inspect.ismethod(method) and inspect.signature(method).parameters:
            yield name, method


def sound(name: str, identity: Identity) -> Any:
    """An argument of this name that is of its type."""
    return identity if name == "identity" else [] if name in ANYTHING else GOOD.get(name, "embed")


def test_what_is_not_of_its_type_is_refused_by_its_name(store: MemoryStore, ana: Identity) -> None:
    seen = set()
    for called, method in methods(store):
        parameters = inspect.signature(method).parameters
        if "connection" in parameters:
            continue  # within another method's transaction
        needed = {name: sound(name, ana) for name, each in parameters.items() if each.default is each.empty}
        for name in parameters:
            refusal = AccessDenied if name == "identity" else UsageError
            with pytest.raises(refusal, match=rf"^{name}(:| is) .*a value of type object"):
                method(**{**needed, name: object()})
            seen.add((called, name))
    assert {("inbox.admit", "text"), ("tasks.create", "text"), ("events", "after"), ("commit", "changes")} <= seen


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s, ana: s.inbox.admit(ana, "t", "m", None), "text: must be a valid string, not None"),
        (lambda s, ana: s.tasks.create(ana, None), "text: must be a valid string, not None"),
        (lambda s, ana: s.inbox.promote(ana, "t", "m1"), "message_ids: is one text; give a list of them"),
        (lambda s, ana: s.jobs.claim("embed"), "kinds: is one text; give a list of them"),
        (lambda s, ana: s.recall(ana, "tea", sources="records"), "sources: is one text; give a list of them"),
        (lambda s, ana: s.tasks.deliver(ana, ["a", None]), "task_ids[1]: must be a valid string, not None"),
        (lambda s, ana: s.events(ana, "0"), "after: must be a valid integer, not a value of type str"),
        (
            lambda s, ana: s.artifacts.put(ana, "poem", "x"),
            "kind: must be 'summary', 'coverage', 'task_state', 'instructions', 'tool_result', 'original' or "
            "'answered', not 'poem'",
        ),
        (
            lambda s, ana: s.tasks.of(ana, statuses=["delivered"]),
            "statuses[0]: must be 'scheduled', 'running', 'completed', 'failed' or 'cancelled', not 'delivered'",
        ),
    ],
)
def test_an_argument_that_cannot_be_is_named_with_what_it_must_be(
    store: MemoryStore, ana: Identity, ask: Callable[[MemoryStore, Identity], Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        ask(store, ana)
    assert str(refused.value) == said


def test_no_text_that_was_given_is_repeated(store: MemoryStore, ana: Identity) -> None:
    given: Any = ["my password is hunter2"]
    with pytest.raises(UsageError) as refused:
        store.tasks.create(ana, given)
    assert str(refused.value) == "text: must be a valid string, not a value of type list"
    assert refused.value.__cause__ is None


def test_nobody_may_do_anything(store: MemoryStore, ana: Identity) -> None:
    nobody: Any = {"tenant": "acme"}
    with pytest.raises(AccessDenied) as refused:
        store.inbox.admit(nobody, "t", "m", "hello")
    assert str(refused.value) == 'identity is a value of type dict; pass Identity(tenant="...", user="...")'
    assert store.inbox.admit(ana, "t", "m", "hello")


def test_too_few_and_too_many_arguments_are_told_as_python_tells_them(store: MemoryStore, ana: Identity) -> None:
    call: Any = store.inbox.admit
    with pytest.raises(TypeError, match="missing a required argument: 'text'"):
        call(ana, "t", "m")
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'when'"):
        call(ana, "t", "m", "hello", when="now")


def test_a_text_may_be_any_text(store: MemoryStore, ana: Identity) -> None:
    texts = ["", "a\x00b", "\ud800", HumanMessage("\ud801").text]
    for n, text in enumerate(texts):
        store.inbox.admit(ana, "t", f"m{n}", text, delivery="steer")
    assert store.inbox.pending(ana, "t") == [(f"m{n}", text) for n, text in enumerate(texts)]
