"""For whom a command acts beyond the user: options of the commands that decide about shared memory.

The command line grants no role by itself. Whoever can open the files owns what is in them, so `--role` is believed, and
written into the audit log with what was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.stores.identity import Identity

__all__ = ["AgentOption", "OrganizationOption", "RoleOption", "TeamOption", "acting"]

_PANEL = "Whose memory is decided about"

RoleOption = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="NAME",
        help="Act with this role: curator decides about shared memory. The audit log keeps it.",
        rich_help_panel=_PANEL,
    ),
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="Agent whose memory to open.", rich_help_panel=_PANEL)
]
TeamOption = Annotated[
    str | None, typer.Option("--team", metavar="ID", help="Team whose memory to open.", rich_help_panel=_PANEL)
]
OrganizationOption = Annotated[
    str | None,
    typer.Option("--organization", metavar="ID", help="Organization whose policies to open.", rich_help_panel=_PANEL),
]


def acting(here: Here, role: str | None, agent: str | None, team: str | None, organization: str | None) -> Identity:
    """The identity of the command with these scopes and this role; UsageError when one of them cannot be."""
    from pydantic import ValidationError

    from everthread.stores.identity import Identity, complaint

    if role not in (None, "curator"):
        raise UsageError(f"--role {role!r} is not known here; curator is the one that decides")
    fields = here.identity.model_dump() | {"agent": agent, "team": team, "organization": organization}
    try:
        return Identity.model_validate(fields | {"roles": frozenset({role} - {None})})
    except ValidationError as error:
        raise UsageError(f"--{complaint(error)}") from error
