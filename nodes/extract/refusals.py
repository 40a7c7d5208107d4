"""The rules that refuse a candidate, each a small pure function of it and its `Ground` (R88, R98 to R105)."""

from __future__ import annotations

from everthread.nodes.extract import wording
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.ground import Ground, Rule, Verdict, all_said, is_injected
from everthread.nodes.extract.sensitive import Sensitivity, class_of, has_personal_number, has_secret
from everthread.stores.door import unsound
from everthread.stores.record import Authority

__all__ = ["RULES", "sensitivity_of"]

MAX_LEARNT = 1_000
"""Characters of a statement that is learnt: longer text is an artifact, not a minimal fact (R92)."""


def source_missing(candidate: Candidate, ground: Ground) -> Verdict:
    numbers = set(candidate.messages)
    if not numbers or not numbers <= set(range(1, len(ground.lines) + 1)):
        return "it points to no message, or to one that does not exist"
    return None


def foreign_source(candidate: Candidate, ground: Ground) -> Verdict:
    if any(line.thread_id != ground.thread_id for line in ground.rests_on(candidate)):
        return "it rests on a message of another thread"
    return None


def injected(candidate: Candidate, ground: Ground) -> Verdict:
    if any(is_injected(line) for line in ground.rests_on(candidate)):
        return "it rests on text that was put into the conversation by the memory itself (R111)"
    return None


def do_not_remember(candidate: Candidate, ground: Ground) -> Verdict:
    return "the user asked not to remember it" if ground.forbidden & set(candidate.messages) else None


def failed_turn(candidate: Candidate, ground: Ground) -> Verdict:
    return "its turn has no answer, so it is not completed" if ground.unfinished & set(candidate.messages) else None


def assistant_guess(candidate: Candidate, ground: Ground) -> Verdict:
    if all(line.source == "assistant" for line in ground.rests_on(candidate)):
        return "only the assistant said it, and its own words are not a source"
    return None


def malformed(candidate: Candidate, ground: Ground) -> Verdict:
    if not candidate.statement.strip():
        return "it has no statement"
    if any(map(unsound, (*_texts(candidate), candidate.write_reason))):
        return "it is not sound text: it has a NUL character or half of a character"
    if (candidate.value and not candidate.predicate) or (candidate.predicate and not candidate.subject):
        return "it has a value without a predicate, or a predicate without a subject"
    if candidate.valid_from and candidate.valid_to and candidate.valid_to <= candidate.valid_from:
        return "it would end before it begins"
    return None


def too_long(candidate: Candidate, ground: Ground) -> Verdict:
    return "it is too long for one fact; keep it as an artifact" if len(candidate.statement) > MAX_LEARNT else None


def secret(candidate: Candidate, ground: Ground) -> Verdict:
    return "it holds a secret" if any(map(has_secret, _texts(candidate))) else None


def personal_number(candidate: Candidate, ground: Ground) -> Verdict:
    if any(map(has_personal_number, _texts(candidate))):
        return "it holds a card, account, identity or telephone number"
    return None


def permission(candidate: Candidate, ground: Ground) -> Verdict:
    if any(map(wording.grants_permission, _texts(candidate))):
        return "memory grants no permission and waives no check (R167)"
    return None


def orders(candidate: Candidate, ground: Ground) -> Verdict:
    words = ground.is_users_word(candidate)
    if any(wording.gives_orders(text, standing=not words) for text in _texts(candidate)):
        return "it tries to direct the agent" + ("" if words else ", and the user did not say it")
    return None


def question(candidate: Candidate, ground: Ground) -> Verdict:
    if candidate.kind == "prospective":
        return None  # "can you remind me tomorrow?" asks for it
    if _only_asks(candidate.statement) or all_said(candidate, ground, _only_asks):
        return "it was asked, not stated"
    return None


def guess(candidate: Candidate, ground: Ground) -> Verdict:
    if wording.is_guess(candidate.statement) or all_said(candidate, ground, wording.is_guess):
        return "it is a guess or an assumption"
    return None


def this_turn(candidate: Candidate, ground: Ground) -> Verdict:
    return "it was meant for this turn only (R95)" if candidate.reach == "this_turn" else None


def temporary_path(candidate: Candidate, ground: Ground) -> Verdict:
    return "it names a temporary place" if wording.is_temporary_path(candidate.statement) else None


def one_off_output(candidate: Candidate, ground: Ground) -> Verdict:
    if _has_source(candidate, ground, "tool") and wording.is_one_off_output(candidate.statement):
        return "it is the output of one run"
    return None


def live_value(candidate: Candidate, ground: Ground) -> Verdict:
    if wording.is_live_value(candidate.statement) and not wording.is_liking(candidate.statement):
        return "another system owns this value, and it changes: look it up (R182)"
    return None


def artifact_says(candidate: Candidate, ground: Ground) -> Verdict:
    lines = ground.rests_on(candidate)
    if all(line.source == "file" for line in lines) and any(candidate.statement in line.text for line in lines):
        return "the file says it already: refer to the file"
    return None


def unstable_liking(candidate: Candidate, ground: Ground) -> Verdict:
    said = [line for line in ground.rests_on(candidate) if line.source == "user"]
    if candidate.content_type == "preference" and not candidate.stated and len(said) < 2:
        return "one occasion does not make a preference"
    return None


def private_in_agent(candidate: Candidate, ground: Ground) -> Verdict:
    if candidate.owner == "agent" and (candidate.subject == "user" or class_of(candidate.statement) != "normal"):
        return "an agent's memory holds no private facts of a user (R156)"
    return None


def sensitive_not_stated(candidate: Candidate, ground: Ground) -> Verdict:
    if sensitivity_of(candidate) == "normal":
        return None
    if ground.authority(candidate) < Authority.USER_EXPLICIT:
        return "sensitive information is kept only when the user states it (R284)"
    if candidate.owner not in ("user", "session"):
        return "sensitive information about a person stays with that person"
    return None


def no_due_time(candidate: Candidate, ground: Ground) -> Verdict:
    if candidate.kind == "prospective" and candidate.due_at is None:
        return "it is to be done later, but no time was given: it is not a fact, and a task needs a time (R317)"
    return None


RULES: tuple[Rule, ...] = (
    source_missing,
    foreign_source,
    injected,
    do_not_remember,
    failed_turn,
    assistant_guess,
    malformed,
    too_long,
    secret,
    personal_number,
    permission,
    orders,
    question,
    guess,
    this_turn,
    temporary_path,
    one_off_output,
    live_value,
    artifact_says,
    unstable_liking,
    private_in_agent,
    sensitive_not_stated,
    no_due_time,
)
"""The rules that refuse, in order. Their names (with "-" for "_") are in the receipts."""


def sensitivity_of(candidate: Candidate) -> Sensitivity:
    """Its class, by its words or as proposed (R284)."""
    return class_of(f"{candidate.statement} {candidate.predicate or ''}", candidate.sensitivity)


def _texts(candidate: Candidate) -> tuple[str, ...]:
    # A word of the candidate's other fields is as stored as the statement.
    others = (candidate.subject, candidate.predicate, candidate.value, *candidate.entities)
    return (candidate.statement, " ".join(filter(None, others)))


def _only_asks(sentence: str) -> bool:
    """Whether it asks and tells nothing beside. "I'm in Oslo, what time is it?" does both."""
    return wording.is_question(sentence) and not wording.tells(sentence) and not wording.is_request(sentence)


def _has_source(candidate: Candidate, ground: Ground, source: str) -> bool:
    return any(line.source == source for line in ground.rests_on(candidate))
