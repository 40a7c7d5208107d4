"""Who is asking, and how far a memory reaches.

`Identity` comes from the runtime context, never from a model. A `Scope` says whose a record is; `owners_of` says which
owners an identity can read at all. Both are plain data: no I/O, no LangGraph.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from everthread.errors import AccessDenied, UsageError

__all__ = [
    "NAMESPACE_ROOT",
    "Frozen",
    "Identity",
    "Label",
    "Memory",
    "MemoryContext",
    "Owner",
    "Scope",
    "Within",
    "complaint",
    "identity_from",
    "owners_of",
    "within_holds",
]

NAMESPACE_ROOT = "everthread"
"""First label of every namespace that holds records. ("memories" is common in users' code and in langmem.)"""

Memory = Literal["on", "read", "off"]
"""Whether a run or thread recalls and learns, only recalls, or neither (R288)."""

Owner = Literal["session", "user", "agent", "project", "team", "organization"]
"""Whose a memory is (R153), from the narrowest to the widest."""


class Frozen(BaseModel):
    """Base of our data: immutable, no unknown fields, the docstring under a field is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def sound_text(text: str) -> str:
    """The text if it can be stored and shown anywhere; ValueError if it is empty, or has a NUL or a lone surrogate."""
    if not text.strip():
        raise ValueError("must not be empty")
    if "\x00" in text:
        raise ValueError("must not contain a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode (it has a lone surrogate)") from None
    return text


MAX_LABEL = 512
Label = Annotated[str, Field(max_length=MAX_LABEL), AfterValidator(sound_text)]
"""A name chosen by the host: not empty, no NUL, at most 512 characters."""


class Identity(Frozen):
    """On whose behalf a turn runs. Given as the run's `context`; never read from tool arguments or `configurable`."""

    tenant: Label
    """The customer or installation. Nothing crosses it, ever."""
    user: Label
    """A stable id of the person (R154), not a device, cookie or display name."""
    application: Label | None = None
    """The host application, for memories that hold only there."""
    agent: Label | None = None
    """The agent's family name; opens that agent's own memory."""
    agent_version: Label | None = None
    """The agent's version, compared with the range that agent memory was learnt for (R155)."""
    project: Label | None = None
    """The project or repository of this turn; opens its memory."""
    team: Label | None = None
    """The team; opens its memory."""
    organization: Label | None = None
    """The organization; opens its policies."""
    environment: Label | None = None
    """Where the agent acts (production, staging); records bound to another one are not read."""
    roles: frozenset[Literal["curator", "admin"]] = frozenset()
    """Grants: `curator` reviews and writes wider scopes, `admin` erases and exports for others in the tenant."""


class MemoryContext(Frozen):
    """The `context_schema` of our graphs. A bare `Identity` is accepted in its place."""

    identity: Identity
    """On whose behalf the turn runs."""
    memory: Memory = "on"
    """Per run: `read` recalls but learns nothing and keeps no transcript, `off` does neither (R288)."""
    as_of: AwareDatetime | Literal["now"] | None = None
    """Recall memory as it was known at this time. The gate sets it when an old checkpoint is replayed or forked, unless
    it is set: "now" forks with what memory knows today."""

    root: bool = True
    """Whether this is the outermost agent. A sub-agent's run (`as_agent`) gets neither inputs nor notices (R305)."""

    @property
    def moment(self) -> datetime | None:
        """The time to recall memory at; None for now."""
        return None if self.as_of == "now" else self.as_of

    @model_validator(mode="before")
    @classmethod
    def _identity_alone(cls, found: Any) -> Any:
        """The fields of an identity stand for it: without a gate LangGraph makes the context from a dict."""
        return {"identity": found} if isinstance(found, Mapping) and "identity" not in found else found


class Within(Frozen):
    """What narrows a scope further. Fields that are set must all match (R161)."""

    application: Label | None = None
    """Holds only in this application."""
    project: Label | None = None
    """Holds only in this project."""
    agent: Label | None = None
    """Holds only for this agent."""
    thread: Label | None = None
    """Holds only in this thread."""


class Scope(Frozen):
    """Whose a record is, always inside one tenant: `Scope(owner="user", owner_id="ana")`."""

    owner: Owner
    """The kind of owner (R153)."""
    owner_id: Label
    """The owner's id within its tenant; a thread id when the owner is a session."""
    within: Within = Within()
    """What narrows it: `{"application": "billing"}` means "ana, only in billing"."""

    @model_validator(mode="after")
    def _narrowing_is_not_repeated(self) -> Self:
        if self.owner == "session" and self.within.thread not in (None, self.owner_id):
            raise ValueError("within.thread: a session scope already is one thread; leave it out")
        if self.owner in ("project", "agent") and getattr(self.within, self.owner) not in (None, self.owner_id):
            raise ValueError(f"within.{self.owner}: contradicts owner_id; leave it out")
        return self

    def namespace(self, tenant: str) -> tuple[str, str, str, str]:
        """The LangGraph namespace of this scope: root, tenant, owner, owner id, each label percent-encoded."""
        return NAMESPACE_ROOT, encode_label(tenant), self.owner, encode_label(self.owner_id)

    def __str__(self) -> str:
        narrowed = ", ".join(f"{k}={v}" for k, v in self.within.model_dump(exclude_none=True).items())
        return f"{self.owner}:{self.owner_id}" + (f" ({narrowed})" if narrowed else "")


def encode_label(label: str) -> str:
    """A label as one namespace element: percent-encoded, "." included, since LangGraph joins namespaces with it."""
    return quote(label, safe="").replace(".", "%2E")


def identity_from(context: Any) -> Identity:
    """The identity in a run's context.

    Accepts an `Identity`, a `MemoryContext`, a dict of either, or a host's own object with an `.identity` that is one.
    Raises AccessDenied for everything else: without an identity nothing is read or written (R294).
    """
    return memory_context(context).identity


def memory_context(context: Any) -> MemoryContext:
    """The whole memory context of a run; raises AccessDenied as `identity_from` does."""
    if isinstance(context, MemoryContext):
        return context
    if isinstance(context, Identity):
        return MemoryContext(identity=context)
    if isinstance(context, dict):
        if "identity" in context:  # a host's own fields may stand beside it
            context = {key: context[key] for key in MemoryContext.model_fields if key in context}
        return _parsed(context)
    inner = getattr(context, "identity", None)
    if isinstance(inner, Identity | MemoryContext | dict):
        return memory_context(inner)
    raise AccessDenied(
        f"no identity in the run's context (got {type(context).__name__}); "
        'pass context=Identity(tenant="...", user="...") to invoke or stream'
    )


def _parsed(fields: dict[str, Any]) -> MemoryContext:
    try:
        return MemoryContext.model_validate(fields)
    except ValidationError as error:
        raise AccessDenied(
            f"the run's context is not an identity: {complaint(error)}; "
            'pass context=Identity(tenant="...", user="...") to invoke or stream'
        ) from error


def complaint(error: ValidationError) -> str:
    """What pydantic found wrong, in one line: "user: must not be empty". The input is not repeated."""
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"].removeprefix("Value error, "))))
        for each in error.errors(include_input=False, include_url=False)
    )


def owners_of(identity: Identity, thread_id: str | None = None) -> tuple[tuple[Owner, str], ...]:
    """Every (owner, owner id) that this identity reads, narrowest first (R171). `thread_id` opens that session's."""
    pairs: tuple[tuple[Owner, str | None], ...] = (
        ("session", thread_id),
        ("user", identity.user),
        ("agent", identity.agent),
        ("project", identity.project),
        ("team", identity.team),
        ("organization", identity.organization),
    )
    return tuple((owner, owner_id) for owner, owner_id in pairs if owner_id)


def within_holds(within: Within, identity: Identity, thread_id: str | None = None) -> bool:
    """Whether everything that narrows a scope is true of this identity (and thread)."""
    return (
        within.application in (None, identity.application)
        and within.project in (None, identity.project)
        and within.agent in (None, identity.agent)
        and within.thread in (None, thread_id)
    )


def thread_name_check(name: str) -> str:
    """`name` when it can name a thread; raises UsageError otherwise."""
    if len(name) > MAX_LABEL:
        raise UsageError(f"thread name {name[:40]!r}... is longer than {MAX_LABEL} characters; shorten it")
    try:
        return sound_text(name)
    except ValueError as error:
        raise UsageError(f"thread name {name!r} {error}") from None


def aware(moment: datetime, what: str) -> datetime:
    """`moment` if it carries an offset; raises UsageError naming `what` otherwise (a naive time is nobody's time)."""
    if moment.tzinfo is None:
        raise UsageError(f"{what} has no time zone; use datetime.now(timezone.utc) or give an offset")
    return moment
