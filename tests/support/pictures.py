"""What a picture of docs/ shows, read back from its SVG."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

__all__ = ["edges_of", "events_of", "nodes_of", "texts_of"]


def nodes_of(svg: str) -> dict[str, str]:
    """Each node of the graph, with the numbers of the steps in which it ran."""
    steps = dict(each.split(" ", 1) for each in _data(svg, "steps"))
    return {node: steps.get(node, "") for node in _data(svg, "node")}


def edges_of(svg: str) -> list[tuple[str, str, bool]]:
    """Each edge as (source, target, whether it is a decision), sorted."""
    return sorted(
        (*each.attrib["data-edge"].split(" "), "stroke-dasharray" in each.attrib)  # type: ignore[misc]  # two names
        for each in ElementTree.fromstring(svg).iter()
        if "data-edge" in each.attrib
    )


def events_of(svg: str) -> list[tuple[str, str]]:
    """Each row of the table as (node, event)."""
    return [(node, event) for node, _, event in (each.partition(" ") for each in _data(svg, "event"))]


def texts_of(svg: str) -> list[str]:
    """Every text in it, in its order."""
    return [text for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def _data(svg: str, name: str) -> Iterator[str]:
    for each in ElementTree.fromstring(svg).iter():
        if f"data-{name}" in each.attrib:
            yield each.attrib[f"data-{name}"]
