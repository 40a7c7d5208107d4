"""What does the jobs of a memory, by their kind: for a turn that drains a few, and for a worker that does them all."""

from __future__ import annotations

from collections.abc import Callable

from everthread.nodes.consolidate.passes import expire, merge
from everthread.nodes.extract import Extractor
from everthread.nodes.extract.later import extracting, job_kind
from everthread.stores.contract import MemoryStore
from everthread.stores.identity import Identity
from everthread.stores.jobs import Handlers, Job

__all__ = ["consolidating", "job_handlers"]


def job_handlers(store: MemoryStore, *extractors: Extractor, trusted_tools: frozenset[str] = frozenset()) -> Handlers:
    """The store's own jobs, the background pass, and the extractions of these extractors:
    `Worker(store, job_handlers(store, RuleExtractor(), ModelExtractor(model)))`.

    `trusted_tools`, as in `Extract`: the tools whose results may settle something.
    """
    return {
        **store.handlers(),
        "consolidate": consolidating(store),
        **{job_kind(each): extracting(store, each, trusted_tools) for each in extractors},
    }


def consolidating(store: MemoryStore) -> Callable[[Job], None]:
    """The handler of `consolidate` jobs: the whole background pass for the job's user. A payload {"identity": {...}}
    names the project, team or agent whose records are looked at, too."""

    def handle(job: Job) -> None:
        asked = job.payload.get("identity", {})
        identity = Identity.model_validate({**asked, "tenant": job.tenant, "user": job.user, "roles": ()})
        expire(identity, store)
        merge(identity, store)

    return handle
