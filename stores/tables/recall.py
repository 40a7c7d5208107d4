"""Recall: what an identity may read and what fits here and now, scored, weighed, best first.

Who may read what, status and validity decide before anything is scored: the statistics are those of exactly the
readable records (R164).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from everthread.errors import UsageError
from everthread.stores.access import may_read, narrows, searched_owners, unfit
from everthread.stores.answers import answering
from everthread.stores.database import Connection, Cursor, Database
from everthread.stores.identity import Identity, Owner, Scope, aware
from everthread.stores.passages import LONG, Part, sentences
from everthread.stores.ranking import collapse, entity_links, once, signals_of, task_matches, weigh
from everthread.stores.reach import is_reached
from everthread.stores.record import Evidence, Hit, Recall, Record, Signals
from everthread.stores.scoring import Corpus, Document, Query, Scores, pieces
from everthread.stores.tables.indexing import Indexer
from everthread.stores.tables.reindexing import lacks_past
from everthread.stores.tables.rows import (
    BY_IDS,
    NO_THREAD,
    OF_THESE,
    PERMITTED,
    Asked,
    Rows,
    Stored,
    histories,
    in_its_time,
    permission,
    texts_of,
)
from everthread.stores.tables.search import (
    SearchIndex,
    evidence_space,
    is_past_space,
    record_space,
    versions_of,
    whose_past,
)
from everthread.stores.tables.times import micros
from everthread.stores.tables.transcripts import Transcripts, searchable
from everthread.stores.text import ends_of, is_telling, query_terms, terms

__all__ = ["Question", "Recaller"]

MAX_QUERY = 4_000
"""Characters of a query that are searched: a question is short, and a pasted book must not stall a turn."""
CUT = f"query: only its first and last {MAX_QUERY // 2:,} characters were searched"
"""What is said of a longer one."""
POOL = 40
"""Candidates that are weighed, or four for each hit that is asked for."""
LINKED_SHARE = 0.9
"""A record that stands against (or narrows) a hit comes with it, nearly as relevant: both sides are to be seen."""
EXPLAINED = 50
"""With `explain`, how many records that match but do not fit are listed."""

NEIGHBOURS = """
SELECT id, target FROM relations
WHERE kind IN ('contradicts', 'narrows') AND id IN (SELECT value FROM json_each(:ids))
UNION
SELECT target, id FROM relations
WHERE kind IN ('contradicts', 'narrows') AND target IN (SELECT value FROM json_each(:ids))
"""


SUCCESSORS = """
SELECT id FROM relations WHERE kind = 'supersedes' AND target IN (SELECT value FROM json_each(:ids))
"""


class Question(NamedTuple):
    """What `recall` was asked, checked."""

    identity: Identity
    text: str
    limit: int
    owners: tuple[tuple[Owner, str], ...]
    scopes: Sequence[Scope] | None
    thread_id: str | None
    as_of: datetime | None
    now: datetime
    floor: float | None
    explain: bool
    asked_at: datetime | None = None
    task: str | None = None
    in_its_time: bool = False
    """Whether it is about what held at `now`, superseded since or not."""

    @property
    def pool(self) -> int:
        """How many candidates an arm brings."""
        return max(POOL, 4 * self.limit)


class Found(NamedTuple):
    """What one source answered: the best first, and with `explain` what was left out."""

    hits: list[Hit]
    dropped: list[Hit]
    doubt: str | None = None
    """Why vectors said less than they should."""


class Chosen(NamedTuple):
    """What is best in a corpus, and what the tables were asked of it."""

    corpus: Corpus
    scores: Scores
    best: dict[str, int]
    """The candidates: id -> where it stands in the corpus."""
    neighbours: Cursor
    """Rows of `NEIGHBOURS` of the best of them."""
    rows: Asked | None
    """Their rows as they stand; None where they are read as they stood."""


class Candidate(NamedTuple):
    """A record on its way to a hit."""

    record: Record
    score: float
    graph: float = 0.0
    task: float = 0.0
    linked_to: str | None = None
    """The hit that brought it, when its own words did not."""
    ranks: dict[str, int] | None = None
    """With `explain`: its place in each arm."""


class Recaller:
    """Answers `MemoryStore.recall`."""

    def __init__(
        self,
        database: Database,
        rows: Rows,
        index: SearchIndex,
        indexer: Indexer,
        transcripts: Transcripts,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._rows = rows
        self._index = index
        self._indexer = indexer
        self._transcripts = transcripts
        self._clock = clock

    def recall(
        self,
        identity: Identity,
        query: str,
        *,
        limit: int,
        sources: Collection[str],
        thread_id: str | None,
        scopes: Sequence[Scope] | None,
        as_of: datetime | None,
        now: datetime | None,
        floor: float | None,
        explain: bool,
        asked_at: datetime | None = None,
        task: str | None = None,
    ) -> Recall:
        """See `MemoryStore.recall`."""
        wanted = _checked_sources(sources)
        if limit < 1:
            raise UsageError(f"recall: limit is {limit}; ask for at least one hit")
        asked = Question(
            identity=identity,
            text=_searchable(query),
            limit=limit,
            owners=searched_owners(identity, scopes, thread_id),
            scopes=scopes,
            thread_id=thread_id,
            as_of=as_of,
            now=aware(now or as_of or self._clock(), "now"),
            floor=floor,
            explain=explain,
            asked_at=asked_at,
            task=_searchable(task or ""),
            in_its_time=now is not None,
        )
        degraded = [CUT] if len(query) > MAX_QUERY else []
        if not is_telling(asked.text):
            reason = "the query has no word to search for"
            return Recall(query=asked.text, abstained=reason, degraded=tuple(degraded))
        vector = self._indexer.query(asked.text)
        prepared = Query.of(asked.text, vector.vector, tokens=vector.tokens, today=(asked.asked_at or asked.now).date())
        if asked.as_of is not None and "records" in wanted:
            with self._database.read(asked.identity.tenant) as connection:
                if lacks_past(connection):
                    degraded.append("history: what was changed since is not searchable yet; a job makes it so")
        answers = [
            self._records(asked, prepared) if source == "records" else self._evidence(asked, prepared)
            for source in wanted
        ]
        doubt = (
            vector.degraded if vector.vector is None else next(filter(None, (found.doubt for found in answers)), None)
        )
        if doubt or vector.degraded:
            degraded.append(doubt or str(vector.degraded))
        return _answer(asked, answers, degraded)

    # -------------------------------------------------------------------------------------------------------- records

    def _records(self, asked: Question, query: Query) -> Found:
        spaces = [record_space(asked.identity.tenant, owner, owner_id) for owner, owner_id in asked.owners]
        allows, now = partial(_allows, asked), micros(asked.now)
        with self._database.read(asked.identity.tenant) as connection:
            doubted = self._indexer.doubt(connection)
            if asked.as_of is None:
                # What was searched last is mostly what is there still: its records are asked for with its versions.
                standing = self._index.versions(connection, spaces)
                kept = self._index.kept(spaces, allows=allows, now=now)
                chosen = None if kept is None else self._chosen(connection, asked, query, kept.corpus)
                known = versions_of(standing)
                if kept is None or chosen is None or not kept.is_still(spaces, known):
                    corpus = self._index.answering(connection, spaces, query, known, allows=allows, now=now)
                    chosen = self._chosen(connection, asked, query, corpus)
            else:
                then = micros(asked.as_of)
                corpus, past = self._index.corpus_then(connection, spaces, allows=allows, now=now, as_of=then)
                chosen = self._chosen(connection, asked, query, corpus, past)
            best = chosen.best
            stored = self._stood(connection, asked, list(best), chosen.rows)
            linked = self._linked(connection, asked, chosen.neighbours, chosen.corpus)
            stored |= self._stood(connection, asked, [id for id in linked if id not in best])
            unfit = self._left_out(connection, asked, query.text) if asked.explain and asked.as_of is None else []
            doubt = doubted()
        if asked.as_of is not None:  # what stands against each other now may not have done so then
            readable = {id: found.record for id, found in stored.items() if _may_use(asked, found)}
            stood = _links_between(readable, list(best)[: asked.limit])
            linked = {id: (n, stood[id]) for id, (n, _) in linked.items() if id in stood}
        wanted = best | {id: n for id, (n, _) in linked.items()}
        links = {id: by for id, (_, by) in linked.items()}
        return _weighed(asked, chosen.scores, wanted, links, stored, unfit)._replace(doubt=doubt)

    def _chosen(
        self, connection: Connection, asked: Question, query: Query, corpus: Corpus, past: int | None = None
    ) -> Chosen:
        """The candidates of a corpus, and the question for what is in the tables of them; from `past` on its documents
        are of the past."""
        scores = corpus.score(query)
        chosen = _best(scores, asked.pool, far=EXPLAINED if asked.explain else 0)
        called = zip(corpus.ids_of(chosen), chosen, strict=True)
        best = {id if past is None or n < past else whose_past(id): n for id, n in called}
        neighbours = connection.execute(NEIGHBOURS, {"ids": json.dumps(list(best)[: asked.limit])})
        rows = self._rows.ask(connection, asked.identity.tenant, best) if asked.as_of is None else None
        return Chosen(corpus, scores, best, neighbours, rows)

    def _stood(
        self, connection: Connection, asked: Question, ids: Sequence[str], rows: Asked | None = None
    ) -> dict[str, Stored]:
        """Records by id as they stand, or stood at `as_of`; without those that were superseded by what did not begin
        when their own time ended: they were wrong. `rows`: what `Rows` was asked for them, if it was."""
        if not ids:
            return {}
        found = self._as_of(connection, asked, ids) if rows is None else self._rows.read(rows)
        over = [id for id, stored in found.items() if stored.record.status == "superseded"]
        if not over:
            return found
        after = [str(id) for (id,) in connection.execute(SUCCESSORS, {"ids": json.dumps(over)})]
        known = [stored.record for stored in self._as_of(connection, asked, after).values()]
        return {id: stored._replace(record=in_its_time(stored.record, known)) for id, stored in found.items()}

    def _as_of(self, connection: Connection, asked: Question, ids: Sequence[str]) -> dict[str, Stored]:
        tenant = asked.identity.tenant
        if asked.as_of is None:
            return self._rows.several(connection, tenant, ids)
        values = {"tenant": tenant, "ids": json.dumps(list(ids))}
        return {stored.record.id: stored for stored in self._rows.standing(connection, asked.as_of, BY_IDS, values)}

    def _linked(
        self, connection: Connection, asked: Question, neighbours: Cursor, corpus: Corpus
    ) -> dict[str, tuple[int, str]]:
        """Readable records that stand against the best candidates, or narrow them: id -> (position, the candidate)."""
        pairs = neighbours.fetchall()
        called = {str(neighbour): str(neighbour) for _, neighbour in pairs}
        if asked.as_of is not None and called:
            called = _called_then(connection, called, micros(asked.as_of))
        found = ((str(neighbour), corpus.find(called.get(str(neighbour), "")), str(id)) for id, neighbour in pairs)
        return {neighbour: (n, id) for neighbour, n, id in found if n is not None}

    def _left_out(self, connection: Connection, asked: Question, text: str) -> list[Hit]:
        """Records of the identity that share a word with the question but do not fit here and now."""
        words = set(query_terms(text))
        left: list[Hit] = []
        for owner, owner_id in asked.owners:
            values = permission(asked.identity, owner, owner_id, asked.thread_id) | {"most": 20 * EXPLAINED}
            for stored in self._rows.find(connection, f"{PERMITTED} ORDER BY recorded_at DESC LIMIT :most", values):
                reason = unfit(stored.record, asked.identity, asked.now)
                if (
                    reason
                    and narrows(asked.scopes, stored.record.scope)
                    and words & set(terms(stored.record.statement))
                ):
                    left.append(_hit(Candidate(stored.record, 0.0), Signals(), f"dropped: {reason}"))
        return left[:EXPLAINED]

    # ------------------------------------------------------------------------------------------------------- evidence

    def _evidence(self, asked: Question, query: Query) -> Found:
        """Messages of the identity's own threads, in the order of the fused score, what is said again only once."""
        with self._database.read(asked.identity.tenant) as connection:
            doubted = self._indexer.doubt(connection)
            corpus = self._index.corpus(connection, [evidence_space(asked.identity)])
            scores = corpus.score(query)
            # The fused score orders; the best relevance sets its scale, so that it compares with records and a floor.
            scale = float(scores.relevance.max(initial=0))
            hits: list[Hit] = []
            kept: list[Hit] = []
            repeated: list[Hit] = []
            order = [n for n in _descending(scores.fused, asked.pool) if scores.fused[n] > 0]
            for start in range(0, len(order), asked.limit):
                some = order[start : start + asked.limit]
                found = self._transcripts.lookup(connection, [corpus.id(n) for n in some])
                hits += [
                    _evidence_hit(
                        said,
                        _steady(float(scores.fused[n]) * scale),
                        _found(scores, n),
                        _passage(corpus, query, n, said),
                        _ranks(scores, n) if asked.explain else None,
                    )
                    for n, said in zip(some, found, strict=True)
                    if said is not None and (asked.as_of is None or said.at <= asked.as_of)
                ]
                kept, repeated = once(hits)
                if len(kept) >= asked.limit and not asked.explain:
                    break
            doubt = doubted()
        return Found(kept, repeated, doubt)


def _checked_sources(sources: Collection[str]) -> list[str]:
    wanted = [source for source in ("records", "evidence") if source in sources]
    if not wanted:
        raise UsageError(f'recall: sources are "records" and "evidence", not {sources!r}; give one of them, or both')
    return wanted


def _searchable(query: str) -> str:
    """The query without what cannot be searched (NUL, lone surrogates), not longer than a question is."""
    return ends_of(query, MAX_QUERY).replace("\x00", " ").encode("utf-8", "replace").decode()


def _allows(asked: Question, scope: Scope, reach: str | None) -> bool:
    """Whether records of this owner and reach may be read and fit here."""
    thread_id = asked.thread_id or NO_THREAD
    return is_reached(
        reach,
        scope,
        asked.identity,
        thread_id=thread_id,
        scopes=asked.scopes,
        now=asked.now,
        superseded=asked.in_its_time,
    )


def _may_use(asked: Question, stored: Stored) -> bool:
    """Once more what the query has filtered by: an error in it must not become a leak."""
    return (
        may_read(asked.identity, stored.record, author=stored.author, thread_id=asked.thread_id or NO_THREAD)
        and unfit(stored.record, asked.identity, asked.now) is None
        and narrows(asked.scopes, stored.record.scope)
    )


def _called_then(connection: Connection, ids: Iterable[str], as_of: int) -> dict[str, str]:
    """What the texts that these records had then are called in the index: record -> id."""
    return {
        (whose_past(document.id) if is_past_space(space) else document.id): document.id
        for tenant, author, history in histories(connection, OF_THESE, {"ids": json.dumps(list(ids))})
        for space, document in texts_of(tenant, author, history)
        if document.bounds.known <= as_of and (document.bounds.gone is None or as_of < document.bounds.gone)
    }


def _links_between(records: dict[str, Record], best: Sequence[str]) -> dict[str, str]:
    """`Recaller._linked` from the records themselves."""
    links: dict[str, str] = {}
    for record in records.values():
        for relation in record.relations:
            if relation.kind not in ("contradicts", "narrows") or relation.target not in records:
                continue
            if record.id in best:
                links[relation.target] = record.id
            if relation.target in best:
                links[record.id] = relation.target
    return links


def _steady(score: float) -> float:
    """A score to four digits: the last bits depend on the order of the rows, and an index that was built again has
    another one."""
    return round(score, 4)


def _descending(values: np.ndarray[Any, np.dtype[np.float32]], most: int) -> list[int]:
    """The positions of the highest values, the highest first; equal ones in their order."""
    if most >= len(values):
        return [int(n) for n in np.argsort(-values, kind="stable")]
    least = np.partition(values, len(values) - most)[len(values) - most]
    above, ties = np.flatnonzero(values > least), np.flatnonzero(values == least)
    return [int(n) for n in (*above[np.argsort(-values[above], kind="stable")], *ties[: most - len(above)])]


def _best(scores: Scores, most: int, *, far: int = 0) -> list[int]:
    """The candidates: the best of each arm, and of both together, so that none is lost for the other's sake.

    `far`: how many that have nothing to do with the question to add, for an explanation.
    """
    chosen = dict.fromkeys(_descending(scores.relevance, most))
    for arm in (scores.fused, scores.keyword, scores.semantic):
        chosen.update(dict.fromkeys(_descending(arm, most // 4)))
    there = np.maximum(scores.relevance, scores.fused)
    near = [n for n in chosen if there[n] > 0]
    return near + [n for n in chosen if not there[n] > 0][:far]


def _weighed(
    asked: Question,
    scores: Scores,
    wanted: dict[str, int],
    linked: dict[str, str],
    stored: dict[str, Stored],
    unfit: list[Hit],
) -> Found:
    """The candidates as hits, best first, without near-duplicates. `wanted`: where each stands in `scores`."""
    records = [stored[id].record for id in wanted if id in stored]
    named, matched = entity_links(asked.text, records), task_matches(asked.task, records)
    rows = list(wanted.values())
    scored = dict(zip(wanted, scores.relevance[rows].astype(np.float64).round(4).tolist(), strict=True))
    candidates: dict[str, Candidate] = {}
    for record, graph, task in zip(records, named, matched, strict=True):
        relevance = scored[record.id]
        brought_by = linked.get(record.id)
        through = LINKED_SHARE * scored[brought_by] if brought_by in scored else 0.0
        if through > relevance:
            relevance, graph = through, 1.0
        else:
            brought_by = None
        score = round(weigh(record, relevance=relevance, graph=graph, task=task, now=asked.now), 4)
        candidates[record.id] = Candidate(record, score, graph, task, brought_by)
    if asked.explain:
        candidates = _ranked_in_each_arm(candidates, scores, wanted)
    ranked = sorted(candidates.values(), key=lambda c: (-c.score, -c.record.recorded_at.timestamp(), c.record.id))
    # who may see a record is asked once it is its turn
    usable = ((each.record, each.score) for each in ranked if _may_use(asked, stored[each.record.id]))
    kept, duplicates = collapse(usable, most=None if asked.explain else asked.limit)
    shown = [candidates[record.id] for record, score in kept if score > 0]

    def signals(candidate: Candidate) -> Signals:
        found = _found(scores, wanted[candidate.record.id])
        return signals_of(candidate.record, found=found, graph=candidate.graph, task=candidate.task, now=asked.now)

    hits = [_hit(each, said := signals(each), _why(each, said)) for each in shown]
    if not asked.explain:
        return Found(hits, [])
    left = [(candidates[duplicate.record.id], f"dropped: it {duplicate.reason}") for duplicate in duplicates]
    left += [(candidates[record.id], FAR) for record, score in kept if score <= 0]
    fit = {record.id for record, _ in kept} | {each.record.id for each, _ in left}
    dropped = [_hit(each, signals(each), why) for each, why in left]
    return Found(hits, dropped + [hit for hit in unfit if hit.record_id not in fit])


def _ranked_in_each_arm(
    candidates: dict[str, Candidate], scores: Scores, wanted: dict[str, int]
) -> dict[str, Candidate]:
    """The candidates with their places: among all that were scored, and for the graph among the candidates."""
    linked = np.array([candidate.graph for candidate in candidates.values()])
    ranked = {}
    for id, candidate in candidates.items():
        ranks = _ranks(scores, wanted[id])
        if candidate.graph > 0:
            ranks["graph"] = int((linked > candidate.graph).sum()) + 1
        ranked[id] = candidate._replace(ranks=ranks)
    return ranked


def _ranks(scores: Scores, n: int) -> dict[str, int]:
    """The place of a text in each arm that found it."""
    arms = {"keyword": scores.keyword, "semantic": scores.semantic}
    return {arm: int((found > found[n]).sum()) + 1 for arm, found in arms.items() if found[n] > 0}


def _found(scores: Scores, n: int) -> Signals:
    """What the search says of a text."""
    return Signals(
        semantic=_steady(float(scores.semantic[n])),
        keyword=_steady(float(scores.keyword[n])),
        likeness=_steady(float(scores.meaning[n])),
        coverage=_steady(float(scores.coverage[n])),
        context=_steady(float(scores.context[n])),
        time=float(scores.of_days[n]),
        speaker=float(scores.of_speaker[n]),
    )


def _hit(candidate: Candidate, signals: Signals, why: str) -> Hit:
    record = candidate.record
    return Hit(
        source="records",
        record_id=record.id,
        revision=record.revision,
        thread_id=record.provenance.thread_id,
        message_ids=record.provenance.message_ids,
        statement=record.statement,
        at=record.provenance.observed_at,
        score=candidate.score,
        signals=signals,
        ranks=candidate.ranks or {},
        why=why,
    )


def _why(candidate: Candidate, signals: Signals) -> str:
    """What speaks for a record, and what against it, in a sentence."""
    record = candidate.record
    reasons = [*_reasons(signals)]
    if candidate.linked_to:
        reasons.append(f"belongs to {candidate.linked_to}")
    elif signals.graph:
        reasons.append("is about what the question names")
    said = f"{record.authority.value.replace('_', ' ')}, observed {_day(record.provenance.observed_at)}"
    doubts = [text for text, there in DOUBTS.items() if getattr(signals, there)]
    if record.ended_at and record.valid_to:
        doubts.append(f"it held until {_day(record.valid_to)}")
    return "; ".join((", ".join(reasons) or "nothing else came closer", said, *doubts))


def _day(at: datetime) -> str:
    return at.date().isoformat()


FAR = "dropped: it shares no word with the question and is not close in meaning"

DOUBTS = {"it is contested": "contradiction", "it is to be verified before use": "staleness"}
"""What is said when a penalty is there."""


def _reasons(signals: Signals) -> Iterable[str]:
    """What speaks for a text: absolute, and beside the best candidate of this question, which may be poor itself."""
    if signals.keyword:
        yield f"has {signals.coverage:.2f} of the question's words ({signals.keyword:.2f} of the best)"
    if signals.semantic > 0:
        yield f"is alike in meaning by {signals.likeness:.2f} ({signals.semantic:.2f} of the best)"
    if signals.time:
        yield "is of the days that the question names"
    if signals.speaker:
        yield "was said by whom it names"


def _passage(corpus: Corpus, query: Query, n: int, said: Evidence) -> Part | None:
    """Which sentence of a message answers best; None for one that has a single one."""
    text = searchable(said.text)
    if len(sentences(text)) < 2:
        return None
    if len(text) < LONG:  # so short a text is a piece or two, which are alike to the question or not as a whole
        return answering(text, query)
    return answering(text, query, corpus.likeness(n, query), pieces(Document("", text)))


def _evidence_hit(
    said: Evidence, score: float, signals: Signals, passage: Part | None, ranks: dict[str, int] | None
) -> Hit:
    reasons = ", ".join(_reasons(signals)) or "stands beside what answers"
    return Hit(
        source="evidence",
        thread_id=said.thread_id,
        message_ids=(said.message_id,),
        statement=said.text,
        passage=passage,
        speaker=said.speaker or said.role,
        at=said.at,
        score=score,
        signals=signals,
        ranks=ranks or {},
        why=f"{reasons}; said in thread {said.thread_id} on {_day(said.at)}",
    )


def _answer(asked: Question, answers: Sequence[Found], degraded: Sequence[str]) -> Recall:
    """All sources in one order, cut at the floor and at the limit."""
    ranked = sorted((hit for found in answers for hit in found.hits), key=lambda hit: -hit.score)
    above = [hit for hit in ranked if asked.floor is None or hit.score >= asked.floor]
    dropped = [hit for found in answers for hit in found.dropped]
    if asked.explain:
        below = [_dropped(hit, f"its score is below the floor of {asked.floor}") for hit in ranked[len(above) :]]
        late = [_dropped(hit, f"it comes after the first {asked.limit}") for hit in above[asked.limit :]]
        dropped = [*late, *below, *dropped]
    return Recall(
        query=asked.text,
        hits=tuple(above[: asked.limit]),
        abstained=None if above else _silence(asked, ranked),
        degraded=tuple(degraded),
        dropped=tuple(dropped) if asked.explain else (),
    )


def _dropped(hit: Hit, reason: str) -> Hit:
    return hit.model_copy(update={"why": f"dropped: {reason} ({hit.why})"})


def _silence(asked: Question, ranked: Sequence[Hit]) -> str:
    if ranked:
        return f"nothing reaches the floor of {asked.floor}; the best scored {ranked[0].score:.2f}"
    return "nothing that may be read has to do with the question"
