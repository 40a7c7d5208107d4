"""How LangGraph compares namespaces: label by label, "*" standing for any one of them."""

from __future__ import annotations

from collections.abc import Iterable

from langgraph.store.base import ListNamespacesOp, MatchCondition

__all__ = ["Namespace", "fits", "listed"]

Namespace = tuple[str, ...]


def fits(namespace: Namespace, wanted: MatchCondition) -> bool:
    """Whether a namespace starts (or ends) with a path."""
    path = tuple(wanted.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if wanted.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(expected in ("*", label) for expected, label in zip(path, part, strict=True))


def listed(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """The page that the operation asks for: what meets every condition, cut to `max_depth`, each once, sorted."""
    conditions = op.match_conditions or ()
    fitting = {labels[: op.max_depth] for labels in namespaces if all(fits(labels, wanted) for wanted in conditions)}
    return sorted(fitting)[op.offset : op.offset + op.limit]
