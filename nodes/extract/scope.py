"""Whose a candidate becomes. Routing rules of R153 to R159; when in doubt the narrower owner (R107)."""

from __future__ import annotations

from typing import NamedTuple

from everthread.nodes.extract.candidate import Candidate
from everthread.stores.identity import Identity, Scope
from everthread.stores.record import Authority

__all__ = ["Route", "route"]


class Route(NamedTuple):
    """Where a candidate goes, and whether it may go there without review."""

    scope: Scope
    """Its scope."""
    review: str | None
    """Why somebody must look at it first; None when nobody has to."""


def route(candidate: Candidate, reach: str, authority: Authority, identity: Identity, thread_id: str) -> Route:
    """Where this candidate belongs.

    | proposed owner     | becomes                                              | without review                |
    |--------------------|------------------------------------------------------|-------------------------------|
    | any, short reach   | this session                                         | yes                           |
    | user               | the user                                             | yes                           |
    | project            | the project; the user, when the turn has no project  | a member's explicit statement |
    | agent              | the agent; the user, when the turn names no agent    | a curator's                   |
    | team, organization | that; the project or the user, when it is not known  | a curator's                   |
    """
    if reach != "lasting" or candidate.owner == "session":
        return Route(Scope(owner="session", owner_id=thread_id), None)
    curator = "curator" in identity.roles
    explicit = authority >= Authority.USER_EXPLICIT
    match candidate.owner:
        case "organization" if identity.organization:
            return Route(
                Scope(owner="organization", owner_id=identity.organization),
                "what holds for the organization is reviewed (R159)",
            )
        case "team" if identity.team:
            review = None if curator and explicit else "what holds for a team is reviewed (R159)"
            return Route(Scope(owner="team", owner_id=identity.team), review)
        case "agent" if identity.agent:
            review = None if curator and explicit else "what an agent learns for everybody is reviewed (R159)"
            return Route(Scope(owner="agent", owner_id=identity.agent), review)
        case "project" | "team" | "organization" if identity.project:
            review = None if explicit else "what a project's members did not say themselves is reviewed"
            return Route(Scope(owner="project", owner_id=identity.project), review)
        case _:
            return Route(Scope(owner="user", owner_id=identity.user), None)
