"""From a candidate to a draft of a record, a reminder, or a refusal with the name of the rule (R88, R93, R98 to R105).

Every rule is a small pure function of the candidate and its `Ground`. The first one that objects decides; "remember
this" raises the intent and bypasses none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from everthread.errors import AccessDenied
from everthread.nodes.extract import wording
from everthread.nodes.extract.authority import artifact_of, authority_of, source_of
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.echo import is_echo
from everthread.nodes.extract.grounding import FRAME, GROUNDED, speaks_of, stray
from everthread.nodes.extract.scope import route
from everthread.nodes.extract.sensitive import Sensitivity, class_of, has_personal_number, has_secret, retention_of
from everthread.stores.access import check_write
from everthread.stores.identity import Identity
from everthread.stores.record import Authority, Evidence, Governance, Provenance, Record, now_utc
from everthread.stores.text import query_terms

__all__ = ["RULES", "Draft", "Ground", "Refusal", "Reminder", "forbidden", "unfinished", "validate"]

MAX_LEARNT = 1_000
"""Characters of a statement that is learnt: longer text is an artifact, not a minimal fact (R92)."""
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


class Ground:
    """What candidates are judged on: who asks, in which thread, and the messages with their real sources."""

    def __init__(
        self,
        identity: Identity,
        thread_id: str,
        lines: Sequence[Evidence],
        *,
        extracted_by: str,
        trusted_tools: frozenset[str] = frozenset(),
        known: Sequence[Record] = (),
        picked_by_model: bool = False,
        around: Sequence[Evidence] = (),
        now: datetime | None = None,
    ) -> None:
        self.identity = identity
        self.thread_id = thread_id
        self.lines = tuple(lines)
        self.extracted_by = extracted_by
        self.trusted_tools = trusted_tools
        self.known = tuple(known)
        self.picked_by_model = picked_by_model
        """Whether a model named the id of what is to be corrected, and no person."""
        self.around = tuple(around)
        """More of the thread, which nothing rests on: whose words a statement may have, too."""
        self.now = now or now_utc()

    def rests_on(self, candidate: Candidate) -> list[Evidence]:
        """The messages that the candidate points to and that exist, in the thread's order."""
        return [self.lines[position] for position in self.numbers(candidate)]

    def ids(self, candidate: Candidate) -> tuple[str, ...]:
        """Their ids."""
        return tuple(line.message_id for line in self.rests_on(candidate))

    def authority(self, candidate: Candidate) -> Authority:
        """How far the candidate's source can settle the question."""
        return authority_of(
            self.rests_on(candidate),
            user=self.identity.user,
            trusted_tools=self.trusted_tools,
            stated=candidate.stated,
            echoes=self._echoes(candidate),
        )

    def _echoes(self, candidate: Candidate) -> frozenset[str]:
        """Ids of the results of trusted tools that say the candidate in words that they were given."""
        said = f"{candidate.statement} {candidate.value or ''}"
        return frozenset(
            self.lines[position].message_id
            for position in self.numbers(candidate)
            if self.lines[position].source == "tool"
            and self.lines[position].speaker in self.trusted_tools
            and is_echo(said, position, self.lines, self.outside)
        )

    @cached_property
    def outside(self) -> frozenset[int]:
        """Positions of the messages from outside: neither the user's, nor the assistant's, nor a trusted tool's."""
        return frozenset(position for position, line in enumerate(self.lines) if self._is_outside(line))

    def told_from_outside(self, positions: Sequence[int]) -> list[str]:
        """What came from outside, in the window and around it, but for the messages at these positions."""
        within = [self.lines[position].text for position in sorted(self.outside.difference(positions))]
        return [*within, *(line.text for line in self.around if self._is_outside(line))]

    def _is_outside(self, line: Evidence) -> bool:
        return (
            line.source != "assistant"
            and authority_of([line], user=self.identity.user, trusted_tools=self.trusted_tools) == Authority.EXTERNAL
        )

    def is_users_word(self, candidate: Candidate) -> bool:
        """Whether it rests on nothing but what this user said."""
        return self.authority(candidate) >= Authority.USER_IMPLIED

    @cached_property
    def words(self) -> tuple[frozenset[str], ...]:
        """The content words of each message."""
        return tuple(frozenset(query_terms(line.text)) for line in self.lines)

    @cached_property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """The sentences of each message."""
        return tuple(tuple(wording.sentences(line.text)) for line in self.lines)

    def numbers(self, candidate: Candidate) -> list[int]:
        """Positions in `lines` of the messages that it rests on."""
        return [n - 1 for n in sorted(set(candidate.messages)) if 1 <= n <= len(self.lines)]

    @cached_property
    def forbidden(self) -> frozenset[int]:
        """Numbers of the messages that must not be remembered."""
        return forbidden(self.lines)

    @cached_property
    def unfinished(self) -> frozenset[int]:
        """Numbers of the messages of turns that got no answer."""
        return unfinished(self.lines)


def forbidden(lines: Sequence[Evidence]) -> frozenset[int]:
    """Numbers of the messages that "do not remember this" covers (R104).

    It covers the message that says it; when that says little else, the user's message before it as well; and always
    whatever follows in that turn, since an answer repeats the words.
    """
    blocked: set[int] = set()
    for index, line in enumerate(lines):
        if line.source != "user" or not wording.forbids_memory(line.text):
            continue
        first = index
        if wording.only_forbids(line.text):
            first = max((n for n in range(index) if lines[n].source == "user"), default=index)
        last = next((n for n in range(index + 1, len(lines)) if lines[n].source == "user"), len(lines))
        blocked.update(range(first + 1, last + 1))
    return frozenset(blocked)


def unfinished(lines: Sequence[Evidence]) -> frozenset[int]:
    """Numbers of the messages of turns without an answer: the model's call failed, so nothing is learnt (R102).

    A turn starts where the user speaks after somebody else did. A turn without any assistant message got no answer.
    """
    turns: list[list[int]] = []
    for index, line in enumerate(lines):
        if not turns or (line.source == "user" and lines[index - 1].source != "user"):
            turns.append([])
        turns[-1].append(index)
    # A transcript that holds one side only (imported notes) has no calls that could have failed.
    if not any(line.source == "assistant" for line in lines):
        return frozenset()
    return frozenset(n + 1 for turn in turns if all(lines[n].source != "assistant" for n in turn) for n in turn)


Verdict = str | None
"""Why a rule objects, or None."""
Rule = Callable[[Candidate, Ground], Verdict]


# --- Rules that refuse, in the order they are asked


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
    text = candidate.statement
    if not text.strip() or "\x00" in text:
        return "its statement is not sound text"
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
    if _only_asks(candidate.statement) or _all_said(candidate, ground, _only_asks):
        return "it was asked, not stated"
    return None


def guess(candidate: Candidate, ground: Ground) -> Verdict:
    if wording.is_guess(candidate.statement) or _all_said(candidate, ground, wording.is_guess):
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
    if _class(candidate) == "normal":
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


# --- Rules that send to review


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
    if candidate.kind != "prospective" and _all_said(candidate, ground, _asks_once):
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
    if _all_said(candidate, ground, lambda each: wording.is_task_text(each) or wording.takes_back(each)):
        return "it belongs to a text to work on, or was taken back"
    return None


def reported(candidate: Candidate, ground: Ground) -> Verdict:
    """ "My boss says we use Oracle": the user passes it on, and does not state it."""
    if _all_said(candidate, ground, wording.is_reported):
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

_MOST = {
    "not-in-source": Authority.INFERRED,
    "handed-over": Authority.INFERRED,
    "reported": Authority.EXTERNAL,
    "quoted": Authority.EXTERNAL,
}
"""What the words are worth that the messages they point to do not say in person: a person who approves them later does
not make them the user's."""


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
        authority = min(authority, _MOST.get(rule, authority), key=lambda each: each.rank)
    elif place.review:
        rule, reason = "wider-scope", place.review
    sensitivity = _class(candidate)
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


def _class(candidate: Candidate) -> Sensitivity:
    return class_of(f"{candidate.statement} {candidate.predicate or ''}", candidate.sensitivity)


def _texts(candidate: Candidate) -> tuple[str, ...]:
    # A word of the candidate's other fields is as stored as the statement.
    others = (candidate.subject, candidate.predicate, candidate.value, *candidate.entities)
    return (candidate.statement, " ".join(filter(None, others)))


def _all_said(candidate: Candidate, ground: Ground, test: Callable[[str], bool]) -> bool:
    """Whether every sentence of the user's that says it passes the test; without one that says most of it, whether all
    of those do that it rests on."""
    said = [
        sentence
        for position in ground.numbers(candidate)
        if ground.lines[position].source == "user"
        for sentence in ground.sentences[position]
    ]
    wanted = set(query_terms(candidate.statement)) - FRAME
    saying = [each for each in said if wanted and len(wanted & set(query_terms(each))) >= GROUNDED * len(wanted)]
    return bool(said) and all(map(test, saying or said))


def _asks_once(sentence: str) -> bool:
    return wording.is_request(sentence) and not wording.is_lasting(sentence)


def _only_asks(sentence: str) -> bool:
    """Whether it asks and tells nothing beside. "I'm in Oslo, what time is it?" does both."""
    return wording.is_question(sentence) and not wording.tells(sentence) and not wording.is_request(sentence)


def _has_source(candidate: Candidate, ground: Ground, source: str) -> bool:
    return any(line.source == source for line in ground.rests_on(candidate))


def is_injected(line: Evidence) -> bool:
    """Whether a transcript line is a message that memory itself put in (R111)."""
    payload = line.payload or {}
    kept = payload.get("data", payload)
    return "everthread" in (kept.get("additional_kwargs") or {})


def _from_version(version: str | None) -> str | None:
    return f">={version}" if version else None


def _name(rule: Rule) -> str:
    return rule.__name__.replace("_", "-")
