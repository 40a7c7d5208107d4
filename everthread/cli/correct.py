"""A person's rights over one memory: `everthread correct`, `archive` and `verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from everthread.cli.acting import AgentOption, OrganizationOption, RoleOption, TeamOption, acting
from everthread.cli.home import Here, with_home
from everthread.cli.review import told

__all__ = ["archive", "correct", "verify"]

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A record's id, such as mem_1f0c...")]
ReasonOption = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the receipt.")]


@with_home
def correct(
    here: Here,
    id: IdArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What holds instead, in your own words.")],
    reason: ReasonOption = None,
    role: RoleOption = None,
    agent: AgentOption = None,
    team: TeamOption = None,
    organization: OrganizationOption = None,
) -> None:
    """Correct a memory: your words take its place, and it stays in the history.

    They pass the same rules as what is said in a conversation, with you as their source. Ends with 1 when a rule
    refuses them; what holds for others may have to wait for a curator.

    \b
    Examples:
      everthread correct mem_1f0c... "I live in Porto."
      everthread correct mem_1f0c... "We use CockroachDB for billing." --project billing --reason "since the move"
    """
    from everthread.nodes.extract.correction import correct

    identity = acting(here, role, agent, team, organization)
    with here.open_store() as store:
        here.known_record(store, identity, id)
        told(here, correct(store, identity, id, text, reason=reason))


@with_home
def archive(
    here: Here,
    id: IdArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back into use.")] = False,
    reason: ReasonOption = None,
    role: RoleOption = None,
    agent: AgentOption = None,
    team: TeamOption = None,
    organization: OrganizationOption = None,
) -> None:
    """Take a memory out of use without erasing it: it is no longer recalled, and can be brought back.

    It stays readable by its id, in its history and in the audit log. To be rid of it, `everthread forget ID`.

    \b
    Examples:
      everthread archive mem_1f0c... --reason "the project is over"
      everthread archive mem_1f0c... --undo
    """
    from everthread.nodes.extract.correction import archive, unarchive

    identity = acting(here, role, agent, team, organization)
    with here.open_store() as store:
        here.known_record(store, identity, id)
        told(here, (unarchive if undo else archive)(store, identity, id, reason=reason))


@with_home
def verify(
    here: Here,
    id: IdArgument,
    reason: ReasonOption = None,
    role: RoleOption = None,
    agent: AgentOption = None,
    team: TeamOption = None,
    organization: OrganizationOption = None,
) -> None:
    """Confirm that a memory still holds: its time to expire begins anew, and an expired one comes back.

    `everthread review --unverified` lists what nobody has looked at for the longest time.

    \b
    Examples:
      everthread verify mem_1f0c...
      everthread verify mem_1f0c... --project billing --role curator --json
    """
    from everthread.nodes.extract.correction import verify

    identity = acting(here, role, agent, team, organization)
    with here.open_store() as store:
        here.known_record(store, identity, id)
        told(here, verify(store, identity, id, reason=reason))
