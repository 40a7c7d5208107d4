"""The vocabulary of long-term memory: a record, where it came from, how far it is trusted, and what was decided.

Four orthogonal dimensions (R147), never one `memory_type` over them: what is said, whose it is, when it holds, and how
far to trust it. Everything here is frozen data that validates itself; nothing here does I/O.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from secrets import token_hex
from typing import Annotated, Any, Literal, Self

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from everthread.stores import display
from everthread.stores.identity import Frozen, Label, Scope, Within, sound_text

__all__ = [
    "Authority",
    "Change",
    "Coverage",
    "Decision",
    "ErasureReceipt",
    "Evidence",
    "Governance",
    "Hit",
    "Provenance",
    "Recall",
    "Receipt",
    "Record",
    "Relation",
    "Selection",
    "now_utc",
]

MAX_STATEMENT = 4_000
"""Characters of one statement. A memory is a minimal, self-contained fact (R92); longer text is an artifact."""


def now_utc() -> datetime:
    """The current time, aware, with microseconds."""
    return datetime.now(UTC)


def new_id(prefix: str) -> str:
    """A fresh id such as `mem_1f0c...`: unguessable, safe in a path, a URL and a prompt."""
    return f"{prefix}_{token_hex(16)}"


class Authority(StrEnum):
    """How far a source can settle a question, in rising order.

    Computed by code from the authenticated source of the messages (R90, R291); never taken from a model's output, and
    no summary, echo or repetition raises it (R297). Compare with `<` and `>`.
    """

    EXTERNAL = "external"
    """Web pages, files from elsewhere, other agents."""
    INFERRED = "inferred"
    """Concluded by a model or a rule, said by nobody."""
    TOOL = "tool"
    """The result of a trusted tool."""
    ARTIFACT = "artifact"
    """A reviewed document at a known revision."""
    USER_IMPLIED = "user_implied"
    """Follows from what the user said or did."""
    USER_EXPLICIT = "user_explicit"
    """The user said so, in these words."""
    POLICY = "policy"
    """An approved artifact of the organization."""

    @property
    def rank(self) -> int:
        """0 for external to 6 for policy."""
        return _RANKS[self.value]

    def __lt__(self, other: str) -> bool:
        return self.rank < Authority(other).rank

    def __le__(self, other: str) -> bool:
        return self.rank <= Authority(other).rank

    def __gt__(self, other: str) -> bool:
        return self.rank > Authority(other).rank

    def __ge__(self, other: str) -> bool:
        return self.rank >= Authority(other).rank


_RANKS = {authority.value: rank for rank, authority in enumerate(Authority)}

SourceType = Literal["user", "assistant", "tool", "web", "file", "agent", "artifact", "import", "summary"]
"""What kind of thing a statement was taken from."""


class Provenance(Frozen):
    """Where a record came from; bound when it is written and never lost (R135, R136, R290)."""

    source: SourceType
    """The kind of source."""
    thread_id: str | None = None
    """The thread in which it was said."""
    message_ids: tuple[str, ...] = ()
    """The messages it rests on, in the thread's order."""
    actor: str | None = None
    """Who said it: a user id, a tool's or an agent's name."""
    artifact: str | None = None
    """The artifact it cites, as a reference that the host can resolve (R12)."""
    artifact_revision: str | None = None
    """The revision of that artifact."""
    extracted_by: str
    """Which extractor and version proposed it, such as `rules/1` or a model's name."""
    observed_at: AwareDatetime
    """When it was said or seen, by the message's own clock."""
    authority: Authority | None = None
    """For a source that confirms: how far it could settle the question by itself. A record has its own."""

    @model_validator(mode="after")
    def _is_traceable(self) -> Self:
        if self.artifact_revision and not self.artifact:
            raise ValueError("artifact: missing, but artifact_revision is set")
        if self.message_ids and not self.thread_id:
            raise ValueError("thread_id: missing, but message_ids are set")
        if self.source == "artifact" and not self.artifact:
            raise ValueError("artifact: an artifact source must name its artifact")
        return self


RelationKind = Literal["supersedes", "contradicts", "narrows", "confirms", "derived_from"]
"""How one record stands to another (R175)."""


class Relation(Frozen):
    """A typed edge to another record, with its reason and evidence (R150)."""

    kind: RelationKind
    """How this record stands to the target."""
    target: str
    """The other record's id."""
    reason: str = Field(min_length=1)
    """Why, in a sentence."""
    evidence: tuple[str, ...] = ()
    """Ids of the messages that show it."""


class Coverage(Frozen):
    """What a summary stands for (R59, R149)."""

    thread_id: str
    """The thread."""
    first_message: str
    """Id of the first message that it covers."""
    last_message: str
    """Id of the last message that it covers."""
    generator: str
    """What wrote the summary, with its version."""


class Governance(Frozen):
    """Who may see and change it, and for how long it is kept (R143)."""

    sensitivity: Literal["normal", "personal", "health", "finance", "identity", "location"] = "normal"
    """Anything but `normal` has a higher bar to be written and a shorter life (R284)."""
    readable_by: tuple[Label, ...] = ()
    """User ids or `role:curator`; empty means whoever reads the scope."""
    writable_by: tuple[Label, ...] = ()
    """User ids or `role:curator`; empty means whoever may write the scope."""
    retention_days: Annotated[int, Field(gt=0)] | None = None
    """Days after which it expires, counted from `recorded_at`."""


Status = Literal["pending", "active", "contested", "superseded", "expired", "archived", "rejected"]
"""Where a record is in its life. Only `active` and `contested` ones are recalled."""


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a version range; write one like '>=2,<3'") from None
    return text


Text = Annotated[str, AfterValidator(sound_text)]
"""Text that can be stored and shown anywhere: not empty, no NUL, no lone surrogate."""


class Record(Frozen):
    """One thing learnt: minimal, self-contained, sourced, dated, owned (R92, R124 to R152)."""

    id: str = Field(default_factory=lambda: new_id("mem"))
    """Stable over all revisions."""
    revision: Annotated[int, Field(ge=1, lt=2**63)] = 1
    """Counts up by one with every change (R125)."""

    statement: Annotated[Text, Field(max_length=MAX_STATEMENT)]
    """What was learnt, complete in itself, as close to the speaker's words as that allows."""
    content_type: Literal["fact", "preference", "episodic", "summary", "procedural"] = "fact"
    """What is said (R127)."""
    kind: Literal["semantic", "episodic", "procedural"] = "semantic"
    """What it is for the mind (R128). A prospective statement is a task, not a record (R317)."""
    subject: str | None = None
    """What it is about. Conflicts are found on subject and predicate (R144, R172)."""
    predicate: str | None = None
    """Which property of the subject."""
    value: str | None = None
    """The property's value."""
    entities: tuple[str, ...] = ()
    """Names that occur in it."""
    tags: tuple[str, ...] = ()
    """Free keywords."""
    importance: Annotated[float, Field(ge=0, le=1)] = 0.5
    """How much it matters beside others (R145)."""
    stated: bool = True
    """Said in so many words; False for what was inferred (R166)."""
    concerns: Literal["expression", "decision"] | None = None
    """For a preference: how things are said, or what is chosen (R166). Neither is a permission (R167)."""

    scope: Scope
    """Whose it is."""
    agent_family: Label | None = None
    """Which agent it is meant for (R131)."""
    agent_versions: Annotated[str, AfterValidator(_specifier)] | None = None
    """Range of that agent's versions for which it holds, such as `>=2,<3` (R155)."""
    environment: Label | None = None
    """The environment for which it holds."""

    valid_from: AwareDatetime | None = None
    """From when it is true in the world."""
    valid_to: AwareDatetime | None = None
    """Until when it is true in the world (exclusive)."""
    recorded_at: AwareDatetime = Field(default_factory=now_utc)
    """When this revision was written (system time, R134)."""
    ended_at: AwareDatetime | None = None
    """When the store stopped believing it (system time)."""
    expires_at: AwareDatetime | None = None
    """When it leaves recall unless it is verified again."""
    verify_before_use: bool = False
    """True: look at the source before relying on it (R181)."""
    verified_at: AwareDatetime | None = None
    """When it was last checked."""
    temporal_scope: Literal["session", "long_term"] = "long_term"
    """Whether it outlives its conversation (R129)."""

    provenance: Provenance
    """Where it came from."""
    confirmed_by: tuple[Provenance, ...] = ()
    """Later sources that said the same (R187). They add evidence, never authority."""
    write_reason: str = Field(min_length=1)
    """Why it was written, in a sentence."""
    outcome: Literal["proposed", "executed", "verified"] | None = None
    """For an action: how far it got (R241)."""
    authority: Authority
    """How far its source can settle the question."""
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    """How sure the extraction is."""
    status: Status = "active"
    """Where it is in its life."""
    relations: tuple[Relation, ...] = ()
    """Edges to other records."""
    covers: Coverage | None = None
    """For a summary: what it stands for."""
    governance: Governance = Governance()
    """Who may see and change it, and for how long it is kept."""

    usage_count: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """How often it was cited (R146)."""
    last_used_at: AwareDatetime | None = None
    """When it was last cited."""

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        if (self.content_type == "summary") != (self.covers is not None):
            raise ValueError("covers: a summary must say what it covers, and only a summary may")
        if self.valid_from and self.valid_to and self.valid_to <= self.valid_from:
            raise ValueError("valid_to: must be later than valid_from")
        if self.value is not None and self.predicate is None:
            raise ValueError("predicate: missing, but value is set")
        if self.predicate is not None and self.subject is None:
            raise ValueError("subject: missing, but predicate is set")
        if self.concerns is not None and self.content_type != "preference":
            raise ValueError("concerns: only a preference concerns expression or a decision")
        if self.scope.owner == "agent" and not self.agent_family:
            raise ValueError("agent_family: memory of an agent must say for which agent it holds (R155)")
        if self.agent_versions and not self.agent_family:
            raise ValueError("agent_family: missing, but agent_versions is set")
        if self.authority == Authority.POLICY and not self.provenance.artifact_revision:
            raise ValueError("provenance.artifact_revision: policy cites the revision of an approved artifact")
        if self.authority == Authority.POLICY and self.scope.owner != "organization":
            raise ValueError("authority: only an organization's record can be policy")
        if (self.temporal_scope == "session") != (self.scope.owner == "session"):
            raise ValueError("temporal_scope: 'session' goes with a session scope, and only with one (R28)")
        if self.ended_at is not None and self.status in ("pending", "active", "contested"):
            raise ValueError(f"ended_at: set, but status is {self.status!r}")
        if self.provenance.source in ("web", "tool", "agent") and self.authority >= Authority.USER_IMPLIED:
            raise ValueError(f"authority: a {self.provenance.source} source cannot have {self.authority.value}")
        return self

    def holds_for(self, family: str | None, version: str | None) -> bool:
        """Whether this record is meant for an agent of that family and version (R155)."""
        if self.agent_family is None:
            return True
        if self.agent_family != family:
            return False
        if self.agent_versions is None:
            return True
        try:
            return version is not None and Version(version) in SpecifierSet(self.agent_versions, prereleases=True)
        except InvalidVersion:
            return False

    def is_valid_at(self, moment: datetime) -> bool:
        """Whether it is true in the world at `moment`, by `valid_from` and `valid_to`."""
        return not (self.valid_from and moment < self.valid_from) and not (self.valid_to and moment >= self.valid_to)

    def _repr_markdown_(self) -> str:
        return display.record_table(self)


class Evidence(Frozen):
    """One message as it was said. Raw material: searched on demand, never put in a prompt unasked (R42, R43)."""

    thread_id: Label
    """The thread it belongs to."""
    message_id: Label
    """Its id in that thread; the same id is stored once."""
    role: Literal["user", "assistant", "system", "tool"]
    """The role it was said in."""
    speaker: str | None = None
    """Who said it, when the role does not tell."""
    text: str
    """What was said, as text."""
    at: AwareDatetime
    """When it was said."""
    source: Literal["user", "assistant", "tool", "web", "file", "agent"]
    """Where the words came from; decides what may be learnt from them (R291)."""
    payload: dict[str, Any] | None = None
    """The original message whole: tool calls, ids, arguments, parts (R42)."""


ChangeAction = Literal["create", "supersede", "narrow", "contest", "confirm", "revise", "end", "refuse"]
"""What a change does. `end` moves a record out of use without a successor; `refuse` writes only the receipt."""


class Change(Frozen):
    """One decided change of memory, as `commit` takes it (R150)."""

    action: ChangeAction
    """What to do."""
    record: Record | None = None
    """The new record; for `revise` the whole next revision of the target; for `confirm`, `end` and `refuse` nothing."""
    target: str | None = None
    """Id of the record that is superseded, narrowed, contested, confirmed, revised or ended."""
    expected: Annotated[int, Field(lt=2**63)] | None = None
    """The target's revision that this decision was made on: another one is a Conflict (compare and set)."""
    status: Literal["expired", "archived", "rejected"] | None = None
    """For `end`: the status it ends in."""
    source: Provenance | None = None
    """For `confirm`: the source that said the same."""
    rule: str = Field(min_length=1)
    """Name of the rule that decided, such as `same-value` or `secret`."""
    reason: str = Field(min_length=1)
    """Why, in a sentence that can be shown. Never contains what was refused."""
    evidence: tuple[str, ...] = ()
    """Ids of the messages that show it."""

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        needs_record = self.action in ("create", "supersede", "narrow", "contest", "revise")
        needs_target = self.action in ("supersede", "narrow", "contest", "confirm", "revise", "end")
        if needs_record != (self.record is not None):
            raise ValueError(f"record: {'missing' if needs_record else 'not allowed'} for {self.action!r}")
        if needs_target != (self.target is not None):
            raise ValueError(f"target: {'missing' if needs_target else 'not allowed'} for {self.action!r}")
        if needs_target and self.expected is None:
            raise ValueError(f"expected: {self.action!r} needs the revision of the target that was seen")
        if (self.action == "end") != (self.status is not None):
            raise ValueError("status: goes with 'end', and 'end' needs it")
        if (self.action == "confirm") != (self.source is not None):
            raise ValueError("source: goes with 'confirm', and 'confirm' needs it")
        if self.action == "revise" and self.record is not None and self.record.id != self.target:
            raise ValueError("record.id: a revision keeps the id of its target")
        return self


class Decision(Frozen):
    """What became of one change. Holds ids and rules, never the statement: erasing a record leaves no copy here."""

    outcome: Literal[
        "created", "pending", "superseded", "narrowed", "contested", "confirmed", "revised", "ended", "refused"
    ]
    """What happened. `pending`: written, but it waits for review."""
    rule: str
    """Name of the rule that decided."""
    reason: str
    """Why, in a sentence."""
    record_id: str | None = None
    """The record that was written or changed."""
    revision: int | None = None
    """Its revision now."""
    target: str | None = None
    """The other record that was touched."""
    evidence: tuple[str, ...] = ()
    """Ids of the messages that it rests on."""


class Receipt(Frozen):
    """Proof of one commit: what was written, refused or sent to review, and which rule decided (pitfall: 200 OK and
    nothing stored). The same idempotency key returns the same receipt."""

    id: str = Field(default_factory=lambda: new_id("rcp"))
    """The receipt's id, as kept in a thread's state."""
    key: str
    """The idempotency key of the commit."""
    at: AwareDatetime
    """When it was committed."""
    thread_id: str | None = None
    """The thread whose turn it was."""
    decisions: tuple[Decision, ...]
    """One per change, in the order given."""

    def _repr_markdown_(self) -> str:
        return display.receipt_table(self)


class Signals(Frozen):
    """What a hit's score is made of; each between 0 and 1 unless said otherwise (R192)."""

    semantic: float = 0.0
    """Likeness of meaning, beside the best of this question: 1 for the best, however poor that is."""
    keyword: float = 0.0
    """Shared terms (BM25), beside the best of this question."""
    likeness: float = 0.0
    """How far its meaning is above that of unrelated texts: the same scale for every question."""
    coverage: float = 0.0
    """Which share of the question, rare and telling words counting more, it contains: the same scale as well."""
    context: float = 0.0
    """What a message's neighbours and its thread share with the question, beside the best."""
    time: float = 0.0
    """1 when it is of the days that the question names."""
    speaker: float = 0.0
    """1 when it was said by the only speaker that the question names."""
    graph: float = 0.0
    """Links through entities or relations."""
    recency: float = 0.0
    """Decay with age; episodes only (R184)."""
    importance: float = 0.0
    """The record's importance."""
    authority: float = 0.0
    """How far its source can settle the question."""
    task: float = 0.0
    """Match with the task in hand."""
    contradiction: float = 0.0
    """Penalty: it is contested."""
    staleness: float = 0.0
    """Penalty: due to be verified, or about to expire."""


class Hit(Frozen):
    """One thing recalled."""

    source: Literal["records", "evidence"]
    """A record, or a message as it was said."""
    record_id: str | None = None
    """The record's id; None for evidence."""
    revision: int | None = None
    """The record's revision that was read; None for evidence."""
    thread_id: str | None = None
    """The thread it was said in."""
    message_ids: tuple[str, ...] = ()
    """The messages it rests on; for evidence the one message."""
    statement: str
    """The record's statement, or what was said."""
    passage: tuple[int, int] | None = None
    """Of a message of several sentences the one that answers best: from which character of `statement` it goes, and to
    which."""
    speaker: str | None = None
    """Who said it, for evidence."""
    at: AwareDatetime | None = None
    """When it was said or observed."""
    score: float
    """Higher is better; comparable within one recall only."""
    signals: Signals = Signals()
    """What the score is made of."""
    ranks: dict[str, int] = Field(default_factory=dict)
    """With `explain`: its place in each arm that found it, 1 for the best: keyword, semantic, graph."""
    why: str
    """Why it was kept, or dropped, in a sentence."""


class Recall(Frozen):
    """What a search found: the best first, or nothing and the reason."""

    query: str
    """What was asked."""
    hits: tuple[Hit, ...] = ()
    """Best first."""
    abstained: str | None = None
    """Why nothing is returned: an empty answer is a normal one (R194)."""
    degraded: tuple[str, ...] = ()
    """Arms that failed and why; the others answered (R335)."""
    dropped: tuple[Hit, ...] = ()
    """With `explain`: every other candidate, each with its reason."""

    def _repr_markdown_(self) -> str:
        return display.recall_table(self)


class Selection(Frozen):
    """What to erase. Fields that are set must all match; at least one must be."""

    record_ids: tuple[str, ...] = ()
    """These records."""
    thread_id: str | None = None
    """Everything that rests on this thread."""
    message_ids: tuple[str, ...] = ()
    """Everything that rests on one of these messages of the thread; with its source, the messages themselves."""
    scope: Scope | None = None
    """Everything of this scope. A user's whole scope with its source is everything of that user, threads included."""
    subject: str | None = None
    """Everything about this subject, exactly."""
    tenant: str | None = None
    """Everything of this tenant, whoever's it is; it must be the identity's own, with the role admin. Goes alone."""

    @model_validator(mode="after")
    def _selects_something(self) -> Self:
        if self.message_ids and not self.thread_id:
            raise ValueError("thread_id: missing, but message_ids are set")
        others = self.record_ids or self.thread_id or self.scope or self.subject
        if not (others or self.tenant):
            raise ValueError("selection: name record_ids, thread_id, scope or subject; an empty one would erase all")
        if self.tenant and others:
            raise ValueError("tenant: selects everything; leave it out to select a part")
        return self

    @property
    def is_whole_user(self) -> bool:
        """Whether it names a user and narrows that by nothing."""
        return (
            self.scope is not None
            and self.scope.owner == "user"
            and self.scope.within == Within()
            and not (self.record_ids or self.thread_id or self.subject)
        )

    def is_whole_thread(self, thread_id: str) -> bool:
        """Whether it names this thread, and narrows that by nothing."""
        narrowed = self.message_ids or self.record_ids or self.scope or self.subject
        return self.thread_id == thread_id and not narrowed


class ErasureReceipt(Frozen):
    """What was erased and what could not be. Counts and ids only: it holds no word of what is gone."""

    id: str = Field(default_factory=lambda: new_id("ers"))
    """The receipt's id."""
    at: AwareDatetime
    """When."""
    reason: str
    """Why, as given."""
    erased: dict[str, int]
    """How many are gone by kind: records, revisions, relations, index, evidence, artifacts, tasks, inbox, rows of
    checkpoints that were rewritten, whole threads, backups. For a dry run: how many would go."""
    record_ids: tuple[str, ...] = ()
    """The records that are gone."""
    remains: tuple[str, ...] = ()
    """What may still hold it and was not in reach, each with the remedy (no saver given, backups)."""
    verified: bool
    """True: what the store keeps was read again afterwards, and the words are not in it. Never after a dry run."""

    def _repr_markdown_(self) -> str:
        return display.erasure_table(self)
