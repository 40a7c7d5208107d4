"""Draws docs/turn.svg, a picture of one turn: `python docs/make_turn.py`.

Everything in it is from a run of `create_memory_agent()` without a model: the graph from `get_graph()`, the steps from
`stream_mode="updates"`, the table from `stream_mode="custom"`. Ids become short names and today's date "today", so that
the picture is the same each time. A test checks that the file is what this makes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import count, permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.stores import open_checkpointer, open_store

FILE = Path(__file__).with_name("turn.svg")
BEFORE = "I prefer trains over planes."
ASKED = "Do I prefer trains or planes? I live in Bern."

WIDTH, MARGIN = 900, 30
BOX, HIGH = 104, 38
ROW, GAP, LINE = 202, 120, 18
"""Height of the row of visited nodes, way down to the others, and height of a line of the table."""
COLUMNS = (MARGIN + 10, 132, 248)
"""Where node, event and data of the table begin."""
CHARACTERS = 80
"""Characters in a line of the table's data, in a monospaced font of 12."""
INK, GREY, PALE, LINES, BLUE, WASH = "#1f2933", "#6b7785", "#f4f6f8", "#a9b4c0", "#1f6feb", "#e8f1fe"
SANS = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Edge(NamedTuple):
    """An edge of the graph; `decides` when it is one of several that the node chooses from."""

    source: str
    target: str
    decides: bool


class Turn(NamedTuple):
    """What a run told of itself."""

    nodes: list[str]
    edges: list[Edge]
    path: list[str]
    """The nodes that ran, in order, between `__start__` and `__end__`."""
    events: list[dict[str, Any]]
    answer: str


class Point(NamedTuple):
    x: float
    y: float


def turn() -> Turn:
    """One turn of the agent, after an earlier thread has said something worth keeping."""
    ana = Identity(tenant="acme", user="ana")
    with TemporaryDirectory() as home, open_store(f"sqlite:{home}") as store, open_checkpointer(home) as saver:
        agent = create_memory_agent().compile(checkpointer=saver, store=store)

        def run(thread: str, text: str) -> list[tuple[str, dict[str, Any]]]:
            config = {"configurable": {"thread_id": thread}}
            said = {"messages": [("user", text)]}
            return list(agent.stream(said, config, context=ana, stream_mode=["custom", "updates"]))

        run("monday", BEFORE)
        streamed = run("tuesday", ASKED)
        last = agent.get_state({"configurable": {"thread_id": "tuesday"}}).values["messages"][-1]
        drawn = agent.get_graph()
    told = [data for mode, data in streamed if mode == "custom"]
    (*events, answer) = _named([*told, str(last.text)])
    return Turn(
        list(drawn.nodes),
        sorted(Edge(edge.source, edge.target, edge.conditional) for edge in drawn.edges),
        ["__start__", *(node for mode, data in streamed if mode == "updates" for node in data), "__end__"],
        events,
        " ".join(answer.split("\n")[:2]),
    )


def _named(value: Any) -> Any:
    """The value with its ids as `mem_1`, `rcp_1`, `msg_1`, in the order in which they come, and its date as "today"."""
    names: dict[str, str] = {}
    numbers: dict[str, Iterator[int]] = {}

    def name(found: re.Match[str]) -> str:
        kind = found[1] or "msg"
        if found[0] not in names:
            names[found[0]] = f"{kind}_{next(numbers.setdefault(kind, count(1)))}"
        return names[found[0]]

    def walk(each: Any) -> Any:
        if isinstance(each, Mapping):
            return {key: walk(inner) for key, inner in each.items()}
        if isinstance(each, list | tuple):
            return [walk(inner) for inner in each]
        if isinstance(each, str):
            each = re.sub(r"\b(?:(mem|rcp)_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b", name, each)
            return each.replace(datetime.now(UTC).date().isoformat(), "today")
        return each

    return walk(value)


# ------------------------------------------------------------------------------------------------------------ the graph


def places(told: Turn) -> dict[str, Point]:
    """The middle of each node: those that ran in a row, in their order; the others below, near what they lead to."""
    ran = list(dict.fromkeys(told.path))
    pitch = (WIDTH - 2 * MARGIN - BOX) / (len(ran) - 1)
    placed = {node: Point(MARGIN + BOX / 2 + number * pitch, ROW) for number, node in enumerate(ran)}
    rest = [node for node in told.nodes if node not in placed]
    slots = [Point(WIDTH - MARGIN - BOX / 2 - number * (BOX + 38), ROW + GAP) for number in range(len(rest))][::-1]

    def length(order: Sequence[str]) -> float:
        at = placed | dict(zip(order, slots, strict=True))
        return sum(abs(at[edge.source].x - at[edge.target].x) ** 1.5 for edge in told.edges)

    best = min(permutations(rest), key=length)
    return placed | dict(zip(best, slots, strict=True))


def ports(told: Turn, at: Mapping[str, Point]) -> dict[tuple[Edge, str], Point]:
    """Where each edge touches each of its two nodes: those on one side of a box share it, from left to right."""
    sides: dict[tuple[str, str], list[tuple[float, Edge, str]]] = {}
    for edge in told.edges:
        for end, other in ((edge.source, edge.target), (edge.target, edge.source)):
            sides.setdefault((end, _side(at[end], at[other])), []).append((at[other].x, edge, end))
    found = {}
    for (end, side), meeting in sides.items():
        meeting.sort()
        for number, (_, edge, _) in enumerate(meeting):
            shift = (number - (len(meeting) - 1) / 2) * 18
            found[edge, end] = {
                "left": Point(at[end].x - BOX / 2, at[end].y + shift),
                "right": Point(at[end].x + BOX / 2, at[end].y + shift),
                "below": Point(at[end].x + shift, at[end].y + HIGH / 2),
                "above": Point(at[end].x + shift, at[end].y - HIGH / 2),
            }[side]
    return found


def _side(here: Point, there: Point) -> str:
    if here.y != there.y:
        return "below" if there.y > here.y else "above"
    if abs(here.x - there.x) > 1.8 * BOX:  # beyond the neighbour: around it, on the far side of the other row
        return "above" if here.y == ROW else "below"
    return "right" if there.x > here.x else "left"


def curve(here: Point, there: Point) -> str:
    """A line between two ports, leaving each box straight."""
    if here.y == there.y and abs(here.x - there.x) < BOX:
        return f"M{here.x:.0f} {here.y:.0f} L{there.x:.0f} {there.y:.0f}"
    if here.y == there.y or abs(here.y - there.y) < HIGH:
        bend = -44 if here.y < ROW else 44
        ends = here.y + bend, there.y + bend
    else:
        middle = (here.y + there.y) / 2
        ends = middle, middle
    bends = f"{here.x:.0f} {ends[0]:.0f} {there.x:.0f} {ends[1]:.0f}"
    return f"M{here.x:.0f} {here.y:.0f} C{bends} {there.x:.0f} {there.y:.0f}"


def graph(told: Turn) -> Iterator[str]:
    """The edges, then the nodes over them."""
    at = places(told)
    touch = ports(told, at)
    taken = set(zip(told.path, told.path[1:], strict=False))
    for edge in sorted(told.edges, key=lambda edge: edge[:2] in taken):
        is_taken = edge[:2] in taken
        yield tag(
            "path",
            d=curve(touch[edge, edge.source], touch[edge, edge.target]),
            fill="none",
            stroke=BLUE if is_taken else LINES,
            stroke_width=2.2 if is_taken else 1.3,
            stroke_dasharray="6 4" if edge.decides else None,
            marker_end="url(#taken)" if is_taken else "url(#other)",
            data_edge=f"{edge.source} {edge.target}",
        )
    for node in told.nodes:
        x, y = at[node]
        is_end, steps = node.startswith("__"), [number for number, each in enumerate(told.path) if each == node]
        ran = bool(steps) and not is_end
        yield tag(
            "rect",
            x=x - BOX / 2,
            y=y - HIGH / 2,
            width=BOX,
            height=HIGH,
            rx=HIGH / 2 if is_end else 8,
            fill=WASH if ran else PALE,
            stroke=BLUE if ran else LINES,
            stroke_width=1.6 if ran else 1.2,
            data_node=node,
        )
        name = node.strip("_").upper() if is_end else node
        yield text(x, y + 5, name, font_size=14, fill=INK if steps else GREY, text_anchor="middle")
        if ran:
            numbers = ", ".join(map(str, steps))
            yield tag("circle", cx=x - BOX / 2, cy=y - HIGH / 2, r=11, fill=BLUE)
            white: dict[str, Any] = {"fill": "#ffffff", "text_anchor": "middle", "font_weight": "bold"}
            yield text(x - BOX / 2, y - HIGH / 2 + 4, numbers, font_size=12, **white, data_steps=f"{node} {numbers}")


# ------------------------------------------------------------------------------------------------------------ the table


def told_of(event: Mapping[str, Any]) -> str:
    """An event's data in one line: what is empty is left out."""
    data = {key: value for key, value in event.items() if key not in ("node", "event") and value not in (None, [], "")}
    return "; ".join(f"{key}: {_flat(value)}" for key, value in data.items())


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in value.items() if inner not in (None, [], ""))
    if isinstance(value, list):
        return " / ".join(map(_flat, value))
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def table(told: Turn, top: float) -> Iterator[tuple[float, str]]:
    """The heading and the rows, each with the height at which the next begins."""
    y = top + LINE + 8
    heads = zip(("node", "event", "with"), COLUMNS, strict=True)
    yield y, "".join(text(x, top + LINE - 2, name, font_size=12, fill=GREY, font_weight="bold") for name, x in heads)
    for number, event in enumerate(told.events):
        lines = textwrap.wrap(told_of(event), CHARACTERS, break_long_words=False)
        high = LINE * max(1, len(lines)) + 10
        cells = [
            tag("rect", x=MARGIN, y=y, width=WIDTH - 2 * MARGIN, height=high, fill="#ffffff" if number % 2 else PALE),
            text(COLUMNS[0], y + LINE, event["node"], font_size=13, font_weight="bold"),
            text(COLUMNS[1], y + LINE, event["event"], font_size=13, fill=BLUE),
        ]
        for row, line in enumerate(lines, 1):
            cells.append(text(COLUMNS[2], y + LINE * row, line, font_size=12, font_family=MONO))
        y += high
        yield y, tag("g", "".join(cells), data_event=f"{event['node']} {event['event']}")


# ---------------------------------------------------------------------------------------------------------- the picture


def picture(told: Turn) -> str:
    """The whole file."""
    rows = list(table(told, ROW + GAP + 84))
    height = rows[-1][0] + MARGIN
    parts = [
        tag("title", "One turn of create_memory_agent: its graph, the nodes that ran, and its custom events"),
        tag("defs", marker("taken", BLUE, 11) + marker("other", LINES, 9)),
        tag("rect", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=10, fill="#ffffff", stroke="#d9dfe5"),
        *words(("an earlier thread", BEFORE), ("this turn", ASKED), ("the answer", told.answer)),
        *graph(told),
        *key(ROW + GAP + 62),
        *(row for _, row in rows),
    ]
    size = {"viewBox": f"0 0 {WIDTH} {height:g}", "width": WIDTH, "height": height}
    svg = tag("svg", "\n" + "\n".join(parts) + "\n", xmlns="http://www.w3.org/2000/svg", font_family=SANS, **size)
    return svg + "\n"


def words(*said: tuple[str, str]) -> Iterator[str]:
    """What was said, above the graph."""
    y = 44
    for label, each in said:
        yield text(COLUMNS[0], y, label, font_size=13, fill=GREY)
        for line in textwrap.wrap(each, 92):
            yield text(COLUMNS[0] + 132, y, line, font_size=14)
            y += 20
        y += 8


def key(y: float) -> Iterator[str]:
    """What the lines mean."""
    kinds = (("taken in this turn", BLUE, 2.2, None), ("always", LINES, 1.3, None), ("a decision", LINES, 1.3, "6 4"))
    x: float = COLUMNS[0]
    for name, colour, width, dashes in kinds:
        yield tag("path", d=f"M{x} {y} h34", stroke=colour, stroke_width=width, stroke_dasharray=dashes)
        yield text(x + 42, y + 4, name, font_size=12, fill=GREY)
        x += 76 + 7 * len(name)


def marker(name: str, colour: str, size: int) -> str:
    """The head of an arrow."""
    box = {"viewBox": "0 0 10 10", "refX": 9, "refY": 5, "markerWidth": size, "markerHeight": size}
    return tag(
        "marker",
        tag("path", d="M0 0 L10 5 L0 10 z", fill=colour),
        id=name,
        **box,
        markerUnits="userSpaceOnUse",
        orient="auto",
    )


def text(x: float, y: float, said: str, **attributes: Any) -> str:
    return tag("text", escape(said), x=x, y=y, **({"fill": INK} | attributes))


def tag(tag_name: str, content: str = "", **attributes: Any) -> str:
    """An element; an attribute that is None is left out, and "_" in its name is "-"."""
    written = "".join(
        f' {name.replace("_", "-")}="{_written(value)}"' for name, value in attributes.items() if value is not None
    )
    return f"<{tag_name}{written}>{content}</{tag_name}>" if content else f"<{tag_name}{written}/>"


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else escape(str(value))


if __name__ == "__main__":
    FILE.write_text(picture(turn()), encoding="utf-8")
