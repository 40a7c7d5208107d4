"""What was opened before a fork is not used in it: two processes would write into the same connections."""

import os
from collections.abc import Callable
from typing import Any

from support.records import keep, learnt

from everthread import Identity
from everthread.errors import UsageError
from everthread.stores import MemoryStore, open_checkpointer


def told_in_a_fork(*calls: Callable[[], Any]) -> list[str]:
    """What UsageErrors say in a fork of this process; "" for a call that has none."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for call in calls:
                try:
                    call()
                    os.write(writer, b"\n")
                except UsageError as error:
                    os.write(writer, f"{error}\n".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        told = answers.read().split("\n")[:-1]
    os.waitpid(child, 0)
    return told


def test_a_store_is_not_used_in_a_fork(store: MemoryStore, ana: Identity) -> None:
    kept = keep(store, ana, learnt("Ana likes tea"))
    uses = (
        lambda: store.records(ana),
        lambda: store.tasks.create(ana, "x"),
        lambda: list(store.export(ana)),
        store.doctor,
        store.close,
    )
    *told, closed = told_in_a_fork(*uses)
    assert {each.partition(" was ")[2] for each in told} == {
        "opened before this process was forked; open it again here"
    }
    assert (len(told), closed) == (4, "")
    assert store.records(ana) == kept
    assert store.verify_audit().ok


def test_threads_are_not_used_in_a_fork(store: MemoryStore, store_url: str) -> None:
    here: Any = {"configurable": {"thread_id": "t1"}}
    with open_checkpointer(store_url) as saver:
        assert saver.get_tuple(here) is None
        told, closed = told_in_a_fork(lambda: saver.get_tuple(here), saver.close)
        assert told.endswith("was opened before this process was forked; open it again here")
        assert closed == ""
        assert saver.get_tuple(here) is None
