"""The rules that let nothing become active before somebody looked at it, each a small pure function (R106)."""

from __future__ import annotations

from everthread.nodes.extract import wording
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.ground import Ground, Rule, Verdict, all_said
from everthread.nodes.extract.grounding import FRAME, GROUNDED, speaks_of, stray
from everthread.stores.record import Authority
from everthread.stores.text import query_terms

__all__ = ["REVIEW", "WORTH", "quoted"]


def untrusted_source(candidate: Candidate, ground: Ground) -> Verdict:
    if ground.authority(candidate) <= Authority.INFERRED:
        return "it does not come from the user or a trusted source"
    return None


def not_in_source(candidate: Candidate, ground: Ground) -> Verdict:
    """Stops laundering: a model that was talked into a statement cannot hang it on a message that does not say it."""
    identity, positions = ground.identity, ground.numbers(candidate)
    names = filter(None, (identity.user, identity.project, identity.team, identity.agent, identity.organization))
    # A correction may be short ("MySQL, not PostgreSQL"): what it is about, the corrected record says.
    pointed = [ground.known[n - 1].statement for n in candidate.records if 1 <= n <= len(ground.known)]
    if (
        candidate.corrects
        and ground.picked_by_model
        and not any(speaks_of(candidate.statement, each) for each in pointed)
    ):
        return "it does not speak of what it would correct"
    return stray(
        candidate.statement,
        candidate.value,
        [ground.lines[position].text for position in positions],
        beside=(*names, *(pointed if candidate.corrects or candidate.retracts else ())),
        outside=ground.told_from_outside(positions),
        retracts=candidate.retracts,
    )


def asked_once(candidate: Candidate, ground: Ground) -> Verdict:
    """ "Can you use bullet points?" is done once; whether it is meant for every time, nobody has said (R101, R167)."""
    if candidate.kind != "prospective" and all_said(candidate, ground, _asks_once):
        return "it was asked for once, not for every time"
    return None


def advice(candidate: Candidate, ground: Ground) -> Verdict:
    """A tool observes. How something is to be done is for people, or an approved document, to say."""
    if ground.authority(candidate) > Authority.TOOL:
        return None
    if "procedural" in (candidate.content_type, candidate.kind) or wording.gives_advice(candidate.statement):
        return "it says how something is to be done, and neither the user nor an approved document says so"
    return None


def handed_over(candidate: Candidate, ground: Ground) -> Verdict:
    """ "Translate: I live in Paris" and "let's play, I'm a dragon" are said by the user, and not of the user."""
    lines = [line for line in ground.rests_on(candidate) if line.source == "user"]
    if any(wording.is_fiction(line.text) for line in lines):
        return "it was said in a game or a scene"
    if all_said(candidate, ground, lambda each: wording.is_task_text(each) or wording.takes_back(each)):
        return "it belongs to a text to work on, or was taken back"
    return None


def reported(candidate: Candidate, ground: Ground) -> Verdict:
    """ "My boss says we use Oracle": the user passes it on, and does not state it."""
    if all_said(candidate, ground, wording.is_reported):
        return "the user passes on what somebody else said"
    return None


def quoted(candidate: Candidate, ground: Ground) -> Verdict:
    """What a user pastes is not what a user says."""
    wanted = set(query_terms(candidate.statement)) - FRAME
    for position in ground.numbers(candidate):
        own = wording.own_words(ground.lines[position].text).replace(wording.QUOTED, "")
        said, all_said = wanted & set(query_terms(own)), wanted & ground.words[position]
        if not own.strip() or (len(all_said) >= GROUNDED * len(wanted) > len(said)):
            return "it stands in quoted or pasted text only"
    return None


REVIEW: tuple[Rule, ...] = (untrusted_source, not_in_source, asked_once, advice, handed_over, reported, quoted)
"""The rules that let nothing become active before somebody looked at it (R106)."""

WORTH = {
    "not-in-source": Authority.INFERRED,
    "handed-over": Authority.INFERRED,
    "reported": Authority.EXTERNAL,
    "quoted": Authority.EXTERNAL,
}
"""What the words are worth that the messages they point to do not say in person: a person who approves them later does
not make them the user's."""


def _asks_once(sentence: str) -> bool:
    return wording.is_request(sentence) and not wording.is_lasting(sentence)
