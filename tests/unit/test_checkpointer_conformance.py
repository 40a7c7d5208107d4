"""LangGraph's own suite for checkpointers, base and extended, over ours."""

from __future__ import annotations

from collections.abc import AsyncIterator

from langgraph.checkpoint.conformance import checkpointer_test, validate

from everthread.stores import open_checkpointer
from everthread.stores.checkpoints import Saver

CAPABILITIES = {
    "copy_thread",
    "delete_for_runs",
    "delete_thread",
    "get_tuple",
    "list",
    "prune",
    "put",
    "put_writes",
}


async def test_langgraphs_conformance_suite_passes_whole(threads_url: str) -> None:
    @checkpointer_test(name="everthread")
    async def ours() -> AsyncIterator[Saver]:
        async with open_checkpointer(threads_url) as saver:
            yield saver

    report = await validate(ours)
    assert [failure for result in report.results.values() for failure in result.failures or []] == []
    assert {name for name, result in report.results.items() if result.passed} == CAPABILITIES
    assert report.passed_all()
