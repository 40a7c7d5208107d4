"""What longmemeval.py, locomo.py and madial.py share: asking every ranker every question, figures, tables, a report.

Turn R@k: mean share of a question's evidence messages among the first k. Turn any@k / all@k: whether one, or each, of
them is. Session any@k / all@k: the same of the threads that hold evidence, ranked by their best message. MRR: one over
the rank of the first evidence message. AUC: how often the best hit of a question that is answered scores above that of
one that is not. Milliseconds are those of a query for ten hits, the first of a conversation included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Conversation, Message, Question
from rankers import Build, Found, rankers, said

from everthread import Evidence
from everthread.nodes.block import render_evidence
from everthread.stores.ranking import FLOOR
from everthread.stores.text import estimate_tokens

DEPTH = 300
"""How many messages are asked for: enough to rank sessions by their best message."""
SHOWN = 10
"""Hits whose tokens are counted."""
SUMMARY, VERBATIM = 500, 4_000
"""Tokens of a rolling summary, and of the newest messages that stay beside it word for word."""
FOREIGN = 25
"""Questions of the conversation before that are asked of this one, where nothing answers them."""


class Table(NamedTuple):
    """One table of figures."""

    kind: str
    """The questions that it is about; "" for all."""
    title: str
    columns: tuple[str, ...]
    by_type: tuple[str, ...] = ()
    """The columns of the same table by type of question, for ours."""


class Benchmark(NamedTuple):
    """A set, and what is shown of it."""

    name: str
    """As in the file names."""
    title: str
    source: str
    """Where the data comes from and its licence."""
    conversations: Callable[[Path], Iterable[Conversation]]
    tables: tuple[Table, ...]
    answered: tuple[str, ...]
    """The kinds whose questions are answered."""
    unanswered: tuple[tuple[str, str], ...]
    """(kind or type of question, what it is): those whose best hit should score low."""


class Run:
    """What one ranker found, over all conversations."""

    def __init__(self, name: str, build: Build) -> None:
        self.name = name
        self._build = build
        self.figures: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        """By kind and type of question, then by figure."""
        self.best: dict[str, list[float]] = defaultdict(list)
        """The best score of each question, by kind and by type."""
        self.tokens: list[int] = []
        self.messages = 0
        self.building = 0.0
        self.asking: list[float] = []

    def add(self, conversation: Conversation, foreign: Sequence[Question]) -> None:
        """Take one conversation in and ask its questions, and some that are another's."""
        with ExitStack() as closing:
            started = time.perf_counter()
            rank = self._build(conversation, closing)
            self.building += time.perf_counter() - started
            self.messages += len(conversation.messages)
            messages = {message.id: message for message in conversation.messages}
            for question in conversation.questions:
                started = time.perf_counter()
                few = rank(question, SHOWN)
                self.asking.append(time.perf_counter() - started)
                self.tokens.append(estimate_tokens(render_evidence([_shown(messages[hit.id]) for hit in few])))
                for kind in {question.kind, question.type}:
                    self.best[kind].append(few[0].score if few else 0.0)
                for name, value in figures(question, rank(question, DEPTH), messages):
                    self.figures[question.kind, question.type][name].append(value)
            for question in foreign:
                hits = rank(question, 1)
                self.best["foreign"].append(hits[0].score if hits else 0.0)

    def values(self, kind: str, column: str, type: str | None = None) -> list[float]:
        """A figure of each question of a kind, or of every kind for ""."""
        return [
            value
            for (of, sort), found in self.figures.items()
            if kind in ("", of) and type in (None, sort)
            for value in found.get(column, ())
        ]

    def value(self, kind: str, column: str, type: str | None = None) -> float | None:
        """Their mean in percent; None when there is none."""
        values = self.values(kind, column, type)
        return round(100 * sum(values) / len(values), 1) if values else None

    def types(self, kind: str) -> list[str]:
        """The types of a kind of question."""
        return sorted({type for of, type in self.figures if of == kind and type})

    def speed(self) -> dict[str, float]:
        """Messages a second, and milliseconds a query: median and 95th percentile."""
        return {
            "messages/s": round(self.messages / self.building),
            "median ms": round(1_000 * float(np.median(self.asking)), 2),
            "p95 ms": round(1_000 * float(np.percentile(self.asking, 95)), 2),
        }


def _shown(message: Message) -> Evidence:
    return Evidence(
        thread_id=message.thread,
        message_id=message.id,
        role="user",
        speaker=message.speaker or None,
        text=message.text,
        at=message.at,
        source="user",
    )


def figures(question: Question, hits: Sequence[Found], messages: dict[str, Message]) -> Iterator[tuple[str, float]]:
    """Every figure of one question, by name."""
    ranked = [hit.id for hit in hits]
    sessions = list(dict.fromkeys(messages[id].thread for id in ranked))
    if question.sessions:
        yield "published any@5", float(bool(question.sessions & set(sessions[:5])))
    if not question.gold:
        return
    gold_sessions = {messages[id].thread for id in question.gold}
    for k in (1, 5, 10, 20):
        found = question.gold & set(ranked[:k])
        yield f"turn R@{k}", len(found) / len(question.gold)
        yield f"turn any@{k}", float(bool(found))
        yield f"turn all@{k}", float(found == question.gold)
        near = gold_sessions & set(sessions[:k])
        yield f"session any@{k}", float(bool(near))
        yield f"session all@{k}", float(near == gold_sessions)
    yield "turn MRR", next((1 / n for n, id in enumerate(ranked, 1) if id in question.gold), 0.0)


def auc(answered: Sequence[float], unanswered: Sequence[float]) -> float:
    """How often an answered question's score is above an unanswered one's; ties count half."""
    one, other = np.array(answered)[:, None], np.array(unanswered)[None]
    return float(((one > other) + 0.5 * (one == other)).mean())


class Windows:
    """What a model is shown without any search, and how much of the evidence is in it."""

    def __init__(self) -> None:
        self._full: list[float] = []
        self._rolling: list[float] = []
        self._seen: list[float] = []

    def add(self, conversation: Conversation) -> None:
        """Count one conversation for each of its questions that is answered."""
        costs = [estimate_tokens(said(message)) for message in conversation.messages]
        kept: set[str] = set()
        room = VERBATIM
        for message, cost in zip(reversed(conversation.messages), reversed(costs), strict=True):
            room -= cost
            if room < 0:
                break
            kept.add(message.id)
        for question in conversation.questions:
            if question.gold:
                self._full.append(sum(costs))
                self._rolling.append(min(sum(costs), SUMMARY + VERBATIM))
                self._seen.append(len(question.gold & kept) / len(question.gold))

    def rows(self, ours: Run, kinds: Sequence[str]) -> Iterator[tuple[str, int, str]]:
        """(what is injected, tokens, share of the evidence in it)."""
        yield "no memory", 0, "0"
        yield "full history", round(float(np.mean(self._full))), "100"
        seen = f"{100 * float(np.mean(self._seen)):.1f} word for word"
        yield f"rolling summary and the last {VERBATIM:,} tokens", round(float(np.mean(self._rolling))), seen
        found = [value for kind in kinds for value in ours.values(kind, "turn R@10")]
        yield f"everthread, {SHOWN} messages", round(float(np.mean(ours.tokens))), f"{100 * float(np.mean(found)):.1f}"


# ------------------------------------------------------------------------------------------------------------- report


def tables(benchmark: Benchmark, runs: Sequence[Run], windows: Windows) -> Iterator[str]:
    """The report in Markdown, block by block."""
    ours = runs[-1]
    for table in benchmark.tables:
        columns = [c for c in table.columns if any(run.value(table.kind, c) is not None for run in runs)]
        if not columns:
            continue
        yield f"### {table.title} (N = {len(ours.values(table.kind, columns[0]))})"
        yield _grid(["", *columns], [[run.name, *(run.value(table.kind, c) for c in columns)] for run in runs])
        if table.by_type and ours.types(table.kind):
            rows = [
                [
                    type,
                    len(ours.values(table.kind, table.by_type[0], type)),
                    *(ours.value(table.kind, column, type) for column in table.by_type),
                ]
                for type in ours.types(table.kind)
            ]
            yield "Ours by type of question:"
            yield _grid(["", "N", *table.by_type], rows)
    yield "### Tokens injected, mean of a question"
    yield _grid(["", "tokens", "evidence in it, %"], [list(row) for row in windows.rows(ours, benchmark.answered)])
    if benchmark.unanswered:
        yield "### Answered against unanswered questions"
        yield _grid(*_abstention(benchmark, runs))
    kept = [
        (_kept(ours.best[kind]), f"the answered questions of {kind}")
        for kind in benchmark.answered
        if ours.best.get(kind)
    ]
    passed = [(_kept(ours.best[kind]), label) for kind, label in benchmark.unanswered if ours.best.get(kind)]
    yield (
        f"The default floor of {FLOOR} keeps "
        + ", ".join(f"{share} of {label}" for share, label in kept + passed)
        + "."
    )
    yield "### Speed"
    speeds = [[run.name, *run.speed().values()] for run in runs]
    yield _grid(["", *ours.speed()], speeds)


def _kept(best: Sequence[float]) -> str:
    return f"{100 * (np.array(best) >= FLOOR).mean():.1f} %"


def _abstention(benchmark: Benchmark, runs: Sequence[Run]) -> tuple[list[str], list[list[Any]]]:
    there = [(kind, label) for kind, label in benchmark.unanswered if runs[-1].best.get(kind)]
    head = ["AUC of the best hit's score", *(f"{label} (N = {len(runs[-1].best[kind])})" for kind, label in there)]
    rows = [[run.name, *(round(_auc(benchmark, run, kind), 3) for kind, _ in there)] for run in runs]
    return head, rows


def _auc(benchmark: Benchmark, run: Run, kind: str) -> float:
    return auc([score for of in benchmark.answered for score in run.best[of]], run.best[kind])


def _grid(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join("" if cell is None else f"{cell}" for cell in line) + " |" for line in lines)


def chart(benchmark: Benchmark, runs: Sequence[Run], file: Path) -> None:
    """The first table as bars."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    table = benchmark.tables[0]
    columns = [column for column in table.columns if runs[-1].value(table.kind, column) is not None]
    figure, axes = plt.subplots(figsize=(9, 3.6), dpi=112)
    width = 0.8 / len(runs)
    for n, run in enumerate(runs):
        values = [run.value(table.kind, column) or 0 for column in columns]
        places = np.arange(len(columns)) + (n - (len(runs) - 1) / 2) * width
        color = "#1f4e79" if run is runs[-1] else plt.colormaps["Greys"](0.25 + 0.5 * n / len(runs))
        axes.bar(places, values, width, label=run.name, color=color)
    axes.set_xticks(range(len(columns)), columns)
    axes.set(ylim=(0, 100), ylabel="%")
    axes.set_title(f"{benchmark.title}: {table.title}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    figure.tight_layout()
    figure.savefig(file)


def commit() -> str:
    """The commit that is measured, and whether the code that searches differs from it."""

    def git(*words: str) -> str:
        home = str(Path(__file__).parent.parent)
        return subprocess.run(["git", "-C", home, *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "stores", "benchmarks/rankers.py", "benchmarks/retrieval.py")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")


def write_report(benchmark: Benchmark, text: str, file: Path) -> None:
    """Put the set's section into a file of several, in the place of an older one."""
    mark = f"## {benchmark.title}\n"
    before, _, after = (file.read_text(encoding="utf-8") if file.exists() else HEAD).partition(mark)
    rest = after[after.index("\n## ") + 1 :] if "\n## " in after else ""
    file.write_text(f"{before.rstrip()}\n\n{mark}\n{text}\n{rest and chr(10)}{rest}", encoding="utf-8")


HEAD = """# Finding again what was said

Written by `longmemeval.py`, `locomo.py` and `madial.py` with `--report`; figures in percent. The data is not part of
this repository. All rankers are given the same messages in the same order, speakers included; vectors are those of the
built-in embedder, and no model is asked. Ours is given the dates too, as every host has them; the baselines and peers
search the text alone, and mem0 runs without its keyword arm, which needs a download.
"""


def main(benchmark: Benchmark, description: str) -> None:
    """The command line of a set."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="where the set is")
    parser.add_argument("--limit", type=int, help="only the first so many conversations")
    parser.add_argument("--no-peers", action="store_true", help="without mem0 and LangGraph's SqliteStore")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the set's section of this Markdown file")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the first table as bars")
    arguments = parser.parse_args()
    runs = [Run(name, build) for name, build in rankers(peers=not arguments.no_peers).items()]
    windows, before = Windows(), ()
    conversations = 0
    for conversation in islice(benchmark.conversations(arguments.data), arguments.limit):
        for run in runs:
            run.add(conversation, before)
        windows.add(conversation)
        before = tuple(question for question in conversation.questions if question.gold)[:FOREIGN]
        conversations += 1
    if not conversations:
        raise SystemExit(f"{arguments.data} holds no conversation of {benchmark.title}")
    limited = f", the first {arguments.limit} conversations" if arguments.limit else ""
    head = (
        f"{benchmark.source} Commit {commit()}{limited}; {conversations} conversations, "
        f"{runs[-1].messages:,} messages, {os.cpu_count()} cores."
    )
    picture = [f"![{benchmark.title}, {benchmark.tables[0].title}]({arguments.chart.name})"] if arguments.chart else []
    text = "\n\n".join([head, *picture, *tables(benchmark, runs, windows)])
    print(f"{benchmark.title}\n\n{text}")
    if arguments.report:
        write_report(benchmark, text, arguments.report)
    if arguments.chart:
        chart(benchmark, runs, arguments.chart)
    if arguments.json:
        arguments.json.write_text(json.dumps(_figures(benchmark, runs), indent=1), encoding="utf-8")


def _figures(benchmark: Benchmark, runs: Sequence[Run]) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "benchmark": benchmark.name,
        "commit": commit(),
        "runs": {
            run.name: {
                **{
                    " / ".join(filter(None, key)): {
                        "N": max(map(len, found.values())),
                        **{name: round(sum(values) / len(values), 4) for name, values in found.items()},
                    }
                    for key, found in run.figures.items()
                },
                "auc": {
                    kind: round(_auc(benchmark, run, kind), 4) for kind, _ in benchmark.unanswered if run.best.get(kind)
                },
                "speed": run.speed(),
            }
            for run in runs
        },
    }
