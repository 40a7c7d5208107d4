"""From a candidate to a draft of a record, a reminder, or a refusal with the name of the rule (R88, R93, R98 to R105).

The first rule that objects decides: those of `refusals.py`, then those of `doubts.py`. "Remember this" raises the
intent and bypasses none of them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from everthread.errors import AccessDenied
from everthread.nodes.extract import wording
from everthread.nodes.extract.authority import artifact_of, source_of
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.doubts import REVIEW, WORTH
from everthread.nodes.extract.ground import Ground, Rule
from everthread.nodes.extract.refusals import RULES, sensitivity_of
from everthread.nodes.extract.scope import route
from everthread.nodes.extract.sensitive import retention_of
from everthread.stores.access import check_write
from everthread.stores.record import Authority, Governance, Provenance, Record

__all__ = ["Draft", "Refusal", "Reminder", "validate", "write_permission"]

TASK_DAYS = 1
"""Days after which a limit of the current task no longer comes up in its thread."""


class Refusal(NamedTuple):
    """Not learnt. Holds no word of what was refused."""

    rule: str
    """Name of the rule."""
    reason: str
    """Why, in a sentence that can be shown."""
    evidence: tuple[str, ...] = ()
    """Ids of the messages it rested on."""


class Reminder(NamedTuple):
    """Something to be done at a time: it becomes a task (R317)."""

    text: str
    """What is to be done."""
    due_at: datetime
    """When."""
    evidence: tuple[str, ...]
    """Ids of the messages it rests on."""


class Draft(NamedTuple):
    """A candidate that passed: the record it would become, and how it means to touch others."""

    record: Record
    """The record, `active`, or `pending` when somebody must look first."""
    rule: str
    """Name of the rule that decided its status."""
    reason: str
    """Why, in a sentence."""
    corrects: bool = False
    """The speaker corrects what was known."""
    retracts: bool = False
    """The speaker ends what was known."""
    touches: tuple[str, ...] = ()
    """Ids of the known records it points to."""


def validate(candidate: Candidate, ground: Ground) -> Draft | Reminder | Refusal:
    """What becomes of one candidate, as far as it can be judged without looking at other records."""
    evidence = ground.ids(candidate)
    for rule in RULES:
        objection = rule(candidate, ground)
        if objection:
            return Refusal(_name(rule), objection, evidence)
    if candidate.kind == "prospective" and candidate.due_at is not None:
        if not ground.is_users_word(candidate):
            return Refusal("untrusted-source", "only the user sets reminders", evidence)
        return Reminder(candidate.statement, candidate.due_at, evidence)
    return _drafted(candidate, ground, evidence)


def _drafted(candidate: Candidate, ground: Ground, evidence: tuple[str, ...]) -> Draft | Refusal:
    authority = ground.authority(candidate)
    reach = _reach(candidate, ground)
    place = route(candidate, reach, authority, ground.identity, ground.thread_id)
    rule, reason = "accepted", candidate.write_reason
    objection = next(((_name(rule), why) for rule in REVIEW if (why := rule(candidate, ground))), None)
    if objection:
        rule, reason = objection
        authority = min(authority, WORTH.get(rule, authority), key=lambda each: each.rank)
    elif place.review:
        rule, reason = "wider-scope", place.review
    sensitivity = sensitivity_of(candidate)
    lines = ground.rests_on(candidate)
    # a message that is dated after today would never be overtaken by what is said tomorrow
    observed_at = min(max(line.at for line in lines), ground.now)
    cited = (artifact_of(line) for line in lines) if authority == Authority.ARTIFACT else iter(())
    artifact = next((named for named in cited if named), None)
    is_agents = place.scope.owner == "agent"
    record = Record(
        statement=candidate.statement.strip(),
        content_type=candidate.content_type,
        kind="episodic" if candidate.kind == "prospective" else candidate.kind,
        subject=candidate.subject,
        predicate=candidate.predicate,
        value=candidate.value,
        entities=candidate.entities,
        stated=candidate.stated,
        concerns=candidate.concerns if candidate.content_type == "preference" else None,
        scope=place.scope,
        agent_family=ground.identity.agent if is_agents else None,
        agent_versions=_from_version(ground.identity.agent_version) if is_agents else None,
        valid_from=candidate.valid_from,
        valid_to=candidate.valid_to,
        recorded_at=ground.now,
        # from when it was said: a thread that is read a year later makes nothing current again
        expires_at=observed_at + timedelta(days=TASK_DAYS) if reach == "task" else None,
        temporal_scope="session" if place.scope.owner == "session" else "long_term",
        provenance=Provenance(
            source="artifact" if artifact else source_of(lines, user=ground.identity.user),
            thread_id=ground.thread_id,
            message_ids=evidence,
            actor=ground.identity.user if ground.is_users_word(candidate) else lines[0].speaker,
            artifact=artifact.name if artifact else None,
            artifact_revision=artifact.revision if artifact else None,
            extracted_by=ground.extracted_by,
            observed_at=observed_at,
        ),
        write_reason=candidate.write_reason,
        outcome=candidate.outcome,
        authority=authority,
        status="active" if rule == "accepted" else "pending",
        governance=Governance(sensitivity=sensitivity, retention_days=retention_of(sensitivity)),
    )
    return write_permission(record, ground, evidence) or Draft(
        record,
        rule,
        reason,
        corrects=candidate.corrects,
        retracts=candidate.retracts,
        touches=tuple(ground.known[n - 1].id for n in candidate.records if 1 <= n <= len(ground.known)),
    )


def write_permission(record: Record, ground: Ground, evidence: tuple[str, ...] = ()) -> Refusal | None:
    """A refusal when this identity may not write the record in this thread: said here, before the store would (R93)."""
    try:
        check_write(ground.identity, record, thread_id=ground.thread_id)
    except AccessDenied as error:
        return Refusal("write-permission", str(error), evidence)
    return None


def _reach(candidate: Candidate, ground: Ground) -> str:
    """The proposed reach, made shorter when the words limit it: a model cannot turn "this time" into "always"."""
    if candidate.reach != "lasting":
        return candidate.reach
    return wording.limits_reach(candidate.statement) or "lasting"


def _from_version(version: str | None) -> str | None:
    return f">={version}" if version else None


def _name(rule: Rule) -> str:
    return rule.__name__.replace("_", "-")
