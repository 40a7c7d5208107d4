"""The retrieve node: query, search, what is read by key, checks, packing; each stage is a function of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import inf, isfinite
from typing import Any, NamedTuple, Self

from langgraph.runtime import Runtime

from everthread.errors import StoreError, UsageError
from everthread.nodes.node import Node, Steps, announce, context_of, memory_of, named_thread, store_of
from everthread.nodes.retrieve.candidate import Candidate, LeftOut
from everthread.nodes.retrieve.checks import (
    TRUST,
    Verifier,
    contradicted,
    counterparts,
    first,
    trust,
    trusted,
    unrepeated,
    verified,
)
from everthread.nodes.retrieve.pack import pack
from everthread.nodes.retrieve.query import asked_at, queries_of, task_in
from everthread.nodes.state import MemoryState, MemoryUpdate, in_view, last_request
from everthread.stores.access import unfit
from everthread.stores.contract import MemoryStore, Source, Task
from everthread.stores.identity import MemoryContext
from everthread.stores.ranking import FLOOR
from everthread.stores.record import Recall, now_utc

__all__ = ["Looked", "Retrieve"]


SPARE = 5
"""How many more hits are asked for, to take the place of what is repeated or not trusted."""
NEAR = timedelta(days=1)
"""A task is active while it runs, and from so long before it is due."""


class Looked(NamedTuple):
    """What a turn would put before the model, and everything that it would not, with the reasons."""

    recall: Recall | None
    """What the search said; None when none was made."""
    kept: list[Candidate]
    """What stands in the request: what was found, the best first, then what was read by key."""
    left_out: list[LeftOut]
    """What the stages behind the search left out, and by which rule."""


class Retrieve(Node):
    """Finds what long-term memory knows about the request, or nothing (R188, R194).

    `limit`: hits at most; 0 makes no search. `budget_tokens`, `budget_characters`: what the lines of the hits may take.
    `floor`: hits that score below it are not used; None only ranks. `sources`: "records", and "evidence" for messages
    of the user's own threads as they were said. `profile_tokens`: what the resident profile may take, the stated
    preferences about how to answer, which share no word with the request (R199, R210); 0 leaves it out. `tasks`: how
    many of the user's active tasks stand there too, by key. `trust`: records that are trusted less are not used (R180).
    `verifier`: looks now at what is to be verified before use (R181). `explain`: the stream says what became of every
    candidate.

    Presets: `Retrieve.three_hits()`, `Retrieve.five_records()`, `Retrieve.profile_only()`. Raises UsageError for a
    setting that makes no sense, when the node is made and not in a turn.

    Recall fails open: when the store cannot be searched the turn goes on without memory and says so in the stream. An
    identity that is missing or a store that is not ours still raises.
    """

    reads_messages = True

    def __init__(
        self,
        *,
        limit: int = 5,
        budget_tokens: int = 1_200,
        budget_characters: int | None = None,
        floor: float | None = FLOOR,
        sources: Iterable[Source] = ("records",),
        profile_tokens: int = 300,
        tasks: int = 3,
        trust: float = TRUST,
        verifier: Verifier | None = None,
        explain: bool = False,
    ) -> None:
        _check_amounts(
            limit=limit,
            budget_tokens=budget_tokens,
            budget_characters=0 if budget_characters is None else budget_characters,
            profile_tokens=profile_tokens,
            tasks=tasks,
        )
        if floor is not None and not _is_between(floor, -inf, inf):
            raise UsageError(f"Retrieve: floor is {floor!r}; give a score such as {FLOOR}, or None to only rank")
        if not _is_between(trust, 0, 1):
            raise UsageError(f"Retrieve: trust is {trust!r}; give a number from 0 to 1, such as {TRUST}")
        if verifier is not None and not callable(verifier):
            raise UsageError(f"Retrieve: verifier is {verifier!r}; give a function of an identity and a record")
        self.limit = limit
        self.budget_tokens = budget_tokens
        self.budget_characters = budget_characters
        self.floor = floor
        self.sources = checked_sources(sources)
        self.profile_tokens = profile_tokens
        self.tasks = tasks
        self.trust = trust
        self.verifier = verifier
        self.explain = explain

    @classmethod
    def three_hits(cls, **options: Any) -> Self:
        """The three best hits for the request (R203)."""
        return cls(**{"limit": 3, "profile_tokens": 0, "tasks": 0, **options})

    @classmethod
    def five_records(cls, **options: Any) -> Self:
        """Five records in 20,000 characters (R204)."""
        return cls(**{"limit": 5, "budget_tokens": 20_000, "budget_characters": 20_000, **options})

    @classmethod
    def profile_only(cls, **options: Any) -> Self:
        """The resident profile in 2,500 tokens (R205), and the rest by tools on demand."""
        return cls(**{"limit": 0, "profile_tokens": 2_500, "tasks": 0, **options})

    @classmethod
    def nothing(cls) -> Self:
        """Nothing by itself: memory is what the model asks its tools for (R202)."""
        return cls(limit=0, profile_tokens=0, tasks=0)

    def steps(self, state: MemoryState, runtime: Runtime[Any]) -> Steps:
        """Returns `recalled`: references (id, revision, score, why), the best first, then what was read by key; never
        texts."""
        yield from ()
        context, store = context_of(runtime), store_of(runtime)
        messages = state.get("messages", [])
        queries = queries_of(messages)
        nothing: MemoryUpdate = {"recalled": []} if state.get("recalled") else {}
        if last_request(messages) is None:
            return nothing
        if memory_of(runtime) == "off":
            announce(runtime, "retrieve", "skipped", reason="memory is off for this run or thread, or by consent")
            return nothing
        try:
            looked = self.look(
                store,
                context,
                queries,
                thread_id=named_thread(runtime),
                in_view=[message.id for message in in_view(state) if message.id],
                said_at=asked_at(messages),
                task=_task_of(state, store, context),
            )
        except StoreError as error:
            announce(runtime, "retrieve", "degraded", reason=str(error))
            return {"recalled": []}
        announce(runtime, "retrieve", "recalled" if looked.kept else "abstained", **self._told(looked))
        return {"recalled": [candidate.reference() for candidate in looked.kept]}

    def look(
        self,
        store: MemoryStore,
        context: MemoryContext,
        queries: Sequence[str],
        *,
        thread_id: str | None = None,
        in_view: Sequence[str] = (),
        said_at: datetime | None = None,
        task: str | None = None,
        explain: bool | None = None,
    ) -> Looked:
        """The stages, one after the other, for queries of which the first that finds something counts. `in_view` are
        the ids of messages that the model sees anyway, `said_at` is when the request was said, `task` what is being
        worked on."""
        identity, moment = context.identity, context.moment
        recall = self._searched(
            store, context, queries, thread_id, said_at, task, self.explain if explain is None else explain
        )
        answers = recall.hits if recall else ()
        ids = [hit.record_id for hit in answers if hit.record_id]
        records = {each.id: each for each in store.records(identity, ids=ids, as_of=moment)} if ids else {}
        partners = [id for record in records.values() for id in contradicted(record) if id not in records]
        if partners:
            known = store.records(identity, ids=partners, thread_id=thread_id or "", as_of=moment)
            fitting = (each for each in known if unfit(each, identity, moment or now_utc()) is None)
            records |= {each.id: each for each in fitting if trust(each) >= self.trust}
        hits = [
            Candidate("records" if hit.record_id else "evidence", hit, records.get(hit.record_id or ""))
            for hit in answers
            if hit.record_id is None or hit.record_id in records
        ]
        profile = self._profile(store, context, thread_id)
        unique = unrepeated([*hits, *profile, *self._tasks(store, context, thread_id)], in_view)
        worthy = trusted(unique.kept, self.trust)
        best = first(worthy.kept, self.limit)
        whole = counterparts(best.kept, records)
        # what is observed now says nothing about what was known then
        sound = verified(whole, identity, self.verifier if moment is None else None)
        found = [each for each in sound.kept if each.source != "profile"]
        searched = pack(found, self.budget_tokens, self.budget_characters)
        by_key = {each.id: each for each in profile}
        # what the search found too, and had no room for, has its place in the profile
        crowded = [by_key[left.candidate.id] for left in searched.left_out if left.candidate.id in by_key]
        resident = pack([*(each for each in sound.kept if each.source == "profile"), *crowded], self.profile_tokens)
        left_out = [left for left in searched.left_out if left.candidate.id not in by_key]
        left_out = [left for stage in (unique, worthy, best, sound) for left in stage.left_out] + left_out
        kept = [*searched.kept, *resident.kept]
        there = {each.id for each in kept}  # the other side of a contest comes whatever its place is
        return Looked(
            recall, kept, [left for left in (*left_out, *resident.left_out) if left.candidate.id not in there]
        )

    def _searched(
        self,
        store: MemoryStore,
        context: MemoryContext,
        queries: Sequence[str],
        thread_id: str | None,
        said_at: datetime | None,
        task: str | None,
        explain: bool,
    ) -> Recall | None:
        recall = None
        for query in queries if self.limit else ():
            recall = store.recall(
                context.identity,
                query,
                limit=self.limit + SPARE,
                sources=self.sources,
                thread_id=thread_id,
                as_of=context.moment,
                floor=self.floor,
                explain=explain,
                asked_at=said_at,
                task=task,
            )
            if recall.hits:
                break
        return recall

    def _profile(self, store: MemoryStore, context: MemoryContext, thread_id: str | None) -> list[Candidate]:
        if not self.profile_tokens:
            return []
        found = store.profile(context.identity, thread_id=thread_id, as_of=context.moment)
        return [Candidate("profile", record=record, why="how the user wants to be answered") for record in found]

    def _tasks(self, store: MemoryStore, context: MemoryContext, thread_id: str | None) -> list[Candidate]:
        """Open tasks that belong here: what runs first, then what is due first. One of which notice was given stands in
        a thread. Tasks have no history, so that there are none in the past."""
        if not self.tasks or context.moment is not None:
            return []
        here = [
            task
            for task in store.tasks.of(context.identity, statuses=("running", "scheduled"))
            if task.thread_id in (None, thread_id)
            and task.told_at is None
            and (task.status == "running" or _is_near(task))
        ]
        return [Candidate("task", task=task, why="it is open") for task in sorted(here, key=_urgency)[: self.tasks]]

    def _told(self, looked: Looked) -> dict[str, Any]:
        """What the stream says: ids, scores and reasons."""
        told: dict[str, Any] = {
            "hits": [
                {"id": each.id, "score": round(each.hit.score, 3), "why": each.hit.why}
                for each in looked.kept
                if each.hit
            ],
            "over_budget": [left.candidate.id for left in looked.left_out if left.rule == "over-budget"],
            "abstained": looked.recall.abstained if looked.recall else None,
            "degraded": list(looked.recall.degraded) if looked.recall else [],
        }
        if by_key := [{"id": each.id, "why": each.why} for each in looked.kept if not each.hit]:
            told["by_key"] = by_key
        unsaid = {"over-budget"} if self.explain else {"over-budget", "over-limit"}
        if others := [left for left in looked.left_out if left.rule not in unsaid]:
            told["left_out"] = [{"id": each.candidate.id, "rule": each.rule, "why": each.why} for each in others]
        if self.explain and looked.recall:
            told["candidates"] = [
                hit.model_dump(mode="json", include={"record_id", "message_ids", "score", "signals", "ranks", "why"})
                for hit in (*looked.recall.hits, *looked.recall.dropped)
            ]
        return told


def checked_sources(sources: Iterable[Source]) -> tuple[Source, ...]:
    """The sources, once a turn is set up rather than when it runs; UsageError for others."""
    given = () if isinstance(sources, str) else tuple(sources)
    if not given or set(given) - {"records", "evidence"}:
        raise UsageError(f'Retrieve: sources are "records" and "evidence", not {sources!r}; give one of them, or both')
    return given


def _check_amounts(**amounts: object) -> None:
    for name, amount in amounts.items():
        if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
            raise UsageError(f"Retrieve: {name} is {amount!r}; give a whole number, 0 for none")


def _is_between(number: object, least: float, most: float) -> bool:
    return isinstance(number, int | float) and isfinite(number) and least <= number <= most


def _task_of(state: MemoryState, store: MemoryStore, context: MemoryContext) -> str | None:
    """What the thread is about, where its TaskState is known."""
    id = state.get("window", {}).get("task_state")
    artifact = store.artifacts.get(context.identity, id) if id else None
    return task_in(artifact.text) if artifact else None


def _is_near(task: Task) -> bool:
    return task.due_at is None or task.due_at - now_utc() <= NEAR


def _urgency(task: Task) -> tuple[bool, bool, float, float]:
    due = task.due_at.timestamp() if task.due_at else 0.0
    return task.status != "running", task.due_at is None, due, task.created_at.timestamp()
