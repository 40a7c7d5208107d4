"""Where a command works and on whose behalf: the options that every command has.

    @with_home
    def recall(here: Here, query: ...) -> None:

`with_home` adds `--home --store --tenant --user --project --json` to the command and hands them over as `here`. An
error of ours ends the command with one line.
"""

from __future__ import annotations

import getpass
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from everthread.cli.output import fail
from everthread.errors import EverthreadError, UsageError

if TYPE_CHECKING:
    from everthread.stores.contract import MemoryStore
    from everthread.stores.identity import Identity, Scope
    from everthread.stores.record import Record

__all__ = ["Here", "Model", "parse_scope", "parse_time", "with_home"]

_PANEL = "Where and who"

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        envvar="EVERTHREAD_HOME",
        metavar="DIR",
        show_default="~/.everthread",
        help="Folder that holds memory and threads.",
        rich_help_panel=_PANEL,
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="Store and threads: sqlite:DIR, or postgresql://...", rich_help_panel=_PANEL
    ),
]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="ID", help="Customer or installation.", rich_help_panel=_PANEL)
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="ID", show_default="your user name", help="Whose memory it is.", rich_help_panel=_PANEL
    ),
]
ProjectOption = Annotated[
    str | None, typer.Option("--project", metavar="ID", help="Project whose memory to open.", rich_help_panel=_PANEL)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_PANEL)]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="PROVIDER:NAME", help="Chat model; without one everything stays on this machine."),
]
"""The `--model` option, for commands that use one."""


@dataclass(frozen=True)
class Here:
    """Where a command works, on whose behalf, and how it prints."""

    home: Path
    """Folder of memory and threads."""
    url: str
    """URL of the store."""
    tenant: str
    user: str
    project: str | None
    json: bool
    """Whether to print models as JSON."""

    @cached_property
    def identity(self) -> Identity:
        """On whose behalf; UsageError when a part of it cannot be one."""
        from pydantic import ValidationError

        from everthread.stores.identity import Identity

        try:
            return Identity(tenant=self.tenant, user=self.user, project=self.project)
        except ValidationError as error:
            raise UsageError(_first_of(error, "--")) from error

    def open_store(self) -> MemoryStore:
        """The store, to be used in a `with`."""
        from everthread.stores import open_store

        return open_store(self.url)

    def thread_id(self, store: MemoryStore, thread: str) -> str:
        """The id of a thread of this user, given its name or the id itself, as `everthread threads` shows them."""
        from everthread.stores.threads import thread_id_for

        found = store.transcripts.threads(self.identity)
        known, own = {info.thread_id for info in found}, thread_id_for(self.identity, thread)
        if thread in known or own in known:
            return thread if thread in known else own
        named = [info.thread_id for info in found if info.name == thread]  # a sub-agent's has an id of another form
        return named[0] if len(named) == 1 else own

    def known_thread(self, store: MemoryStore, thread: str) -> str:
        """The same; UsageError when this user has no such thread."""
        thread_id = self.thread_id(store, thread)
        if all(info.thread_id != thread_id for info in store.transcripts.threads(self.identity)):
            raise UsageError(f"there is no thread {thread}; `everthread threads` lists them")
        return thread_id

    def known_record(self, store: MemoryStore, identity: Identity, id: str) -> Record:
        """The record with this id; UsageError when this identity has none."""
        record = store.record(identity, id)
        if record is None:
            raise UsageError(f"there is no record {id} for user {self.user}; `everthread list` shows what there is")
        return record


def with_home(function: Callable[..., None]) -> Callable[..., None]:
    """A command of `function(here, ...)` with the options that every command has. They stand after the command."""
    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]

    @wraps(function)
    def run(
        *,
        home: Path | None,
        store: str | None,
        tenant: str,
        user: str | None,
        project: str | None,
        json: bool,
        **arguments: Any,
    ) -> None:
        place = (home or Path("~/.everthread")).expanduser()
        here = Here(place, store or f"sqlite:{place}", tenant, user_name() if user is None else user, project, json)
        try:
            function(here, **arguments)
        except EverthreadError as error:
            fail(error)

    common = {
        "home": (HomeOption, None),
        "store": (StoreOption, None),
        "tenant": (TenantOption, "local"),
        "user": (UserOption, None),
        "project": (ProjectOption, None),
        "json": (JsonOption, False),
    }
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in common.items()
    ]
    # typer reads both; the signature of `run` itself would hide the command's own parameters
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def user_name() -> str:
    """The name of whoever runs this; `me` when the system does not tell."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "me"


def parse_scope(text: str) -> Scope:
    """`user:ana` as a scope; UsageError when it is none."""
    from pydantic import ValidationError

    from everthread.stores.identity import Owner, Scope

    owner, _, owner_id = text.partition(":")
    try:
        return Scope.model_validate({"owner": owner, "owner_id": owner_id})
    except ValidationError as error:
        owners = ", ".join(get_args(Owner))
        raise UsageError(f"scope {text!r} is not OWNER:ID, such as user:ana; owners are {owners}") from error


def parse_time(text: str | None) -> Any:
    """An option's time, aware (UTC when it has no offset); None stays None; UsageError when it is none."""
    from everthread.cli.formats.times import moment

    read = moment(text)
    if text is not None and read is None:
        raise UsageError(f"time {text!r} not understood; write one like 2024-03-01T09:00:00Z")
    return read


def _first_of(error: Any, prefix: str = "") -> str:
    """The first complaint of a pydantic error, in one line."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{prefix}{field} {first['msg'].removeprefix('Value error, ')}".strip()
