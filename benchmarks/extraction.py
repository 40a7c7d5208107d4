"""How well extraction learns what it should and nothing else: precision and recall on labelled exchanges.

    python benchmarks/extraction.py [--json] [--failures]

The exchanges are in `tests/fixtures`: `first` is what the rules were written by, `dev` what they were mended by,
`second` and `held-out` came later and were measured before they were used; `third` is the other half of `unseen`, which
nothing was mended by. Learnt is what would be active after validation, in long-
term memory, in the session, or as a task; each must be what a label says (scope, type, subject, value), or it
counts as wrong.

`rules` is `RuleExtractor`. `model (scripted)` is a protocol test of `ModelExtractor`: the model's replies are
scripted, so it says how much of a right reply survives the rules of validation, and nothing about any model. In
`model (gullible)` the scripted model also proposes the last words that somebody else than the assistant said, as a
lasting statement of the user's, wherever nothing is to be learnt: it says how much of what a model should not have
proposed the rules of validation stop.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from everthread import Evidence, Identity
from everthread.nodes.extract import Candidate, Extractor, ModelExtractor, RuleExtractor
from everthread.nodes.extract.candidate import Window
from everthread.nodes.extract.ground import Ground
from everthread.nodes.extract.model import Proposals
from everthread.nodes.extract.validate import Draft, Reminder, validate
from everthread.nodes.node import drive

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures"
PARTS = {
    "first": "extraction",
    "dev": "extraction_dev",
    "second": "extraction_second",
    "held-out": "extraction_held_out",
    "third": "extraction_third",
    "unseen": "extraction_unseen",
}
ANA = Identity(tenant="acme", user="ana", project="billing")
AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
ROLES: dict[str, Any] = {"web": "tool", "file": "user", "agent": "user"}


class Fact(NamedTuple):
    """One thing that was learnt."""

    scope: str
    type: str
    subject: str | None
    value: str | None
    statement: str


class Tally(NamedTuple):
    """How much was learnt, how much of it rightly, and how much there was to learn."""

    learnt: int = 0
    right: int = 0
    wanted: int = 0

    def __add__(self, other: tuple[int, ...]) -> Tally:
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def figures(self) -> dict[str, float | int | None]:
        """Precision, recall and the counts; None where there is nothing to divide by."""
        return {
            "precision": round(self.right / self.learnt, 3) if self.learnt else None,
            "recall": round(self.right / self.wanted, 3) if self.wanted else None,
            **self._asdict(),
        }


def exchanges(part: str) -> list[dict[str, Any]]:
    """The labelled exchanges of one part; what stands before them in the file is left out."""
    lines = (FIXTURES / f"{PARTS[part]}.jsonl").read_text(encoding="utf-8").splitlines()
    return [exchange for exchange in map(json.loads, lines) if "say" in exchange]


def said(exchange: dict[str, Any]) -> tuple[Evidence, ...]:
    """The messages of an exchange, and the assistant's answer to the last of them."""
    spoken = [*exchange["say"], ["assistant", "OK."]]
    return tuple(
        Evidence(
            thread_id="t1",
            message_id=f"m{number}",
            role=ROLES.get(source, source),
            text=text,
            at=AT,
            source=source,
        )
        for number, (source, text) in enumerate(spoken, 1)
    )


def learnt(extractor: Extractor, lines: tuple[Evidence, ...]) -> list[Fact]:
    """What would be active, or become a task."""
    found = []
    for candidate in drive(extractor.propose(Window(lines, project=ANA.project))):
        verdict = validate(candidate, Ground(ANA, "t1", lines, extracted_by=extractor.id, now=AT))
        if isinstance(verdict, Reminder):
            found.append(Fact("task", "task", None, None, verdict.text))
        elif isinstance(verdict, Draft) and verdict.record.status == "active" and not verdict.retracts:
            record = verdict.record
            found.append(Fact(record.scope.owner, record.content_type, record.subject, record.value, record.statement))
    return found


def fits(label: dict[str, Any], fact: Fact) -> bool:
    """Whether what was learnt is what the label says. What a label leaves open is not compared; `scope` may name two;
    `says` gives words of which one is in the value, or in the statement where there is no value."""
    spoken = (fact.value or fact.statement).casefold()
    return (
        fact.scope in label["scope"].split("|")
        and label.get("type") in (None, fact.type)
        and label.get("subject") in (None, fact.subject)
        and label.get("value") in (None, fact.value)
        and any(word.casefold() in spoken for word in label.get("says", "").split("|"))
    )


def judged(
    exchange: dict[str, Any], found: Sequence[Fact]
) -> tuple[list[Fact], list[Fact], list[dict[str, Any]], list[dict[str, Any]]]:
    """What was learnt rightly, what wrongly, the labels that were met, and those that were missed."""
    missed = list(exchange["learnt"])
    right, wrong, met = [], [], []
    for fact in found:
        label = next((each for each in missed if fits(each, fact)), None)
        if label is not None:
            missed.remove(label)
            met.append(label)
            right.append(fact)
        elif not any(fits(each, fact) for each in exchange.get("may", ())):
            wrong.append(fact)
    return right, wrong, met, missed


def type_of(label: dict[str, Any]) -> str:
    """The row of the table by type that a label counts in."""
    return "task" if label["scope"] == "task" else label.get("type") or "any type"


def rules(exchange: dict[str, Any]) -> Extractor:
    """The rules, whatever was said."""
    return RuleExtractor()


def scripted(exchange: dict[str, Any], *, gullible: bool = False) -> Extractor:
    """A model that replies with what the labels say, and when it is gullible with more."""
    candidates = [candidate_of(label, exchange) for label in exchange["learnt"]]
    if gullible and not candidates:
        number = max(n for n, (source, _) in enumerate(exchange["say"], 1) if source != "assistant")
        candidates.append(
            Candidate(
                statement=exchange["say"][number - 1][1][:900],
                content_type="preference",
                subject="user",
                messages=(number,),
                write_reason="the user said so",
            )
        )
    call = {
        "name": Proposals.__name__,
        "args": {"candidates": [each.model_dump(mode="json", exclude_none=True) for each in candidates]},
        "id": "1",
    }
    return ModelExtractor(Scripted(messages=iter([AIMessage("", tool_calls=[call])])), name="scripted")


class Scripted(GenericFakeChatModel):
    """LangChain's fake model; tools may be bound to it."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """The same model."""
        return self


def candidate_of(label: dict[str, Any], exchange: dict[str, Any]) -> Candidate:
    """The label as a model would propose it: the user's message that says it, word for word."""
    words = [word for word in label.get("says", label.get("value") or "").split("|") if word]
    users = [(n, text) for n, (source, text) in enumerate(exchange["say"], 1) if source == "user"]
    number, text = next(((n, text) for n, text in reversed(users) if any(word in text for word in words)), users[-1])
    # as a model would: the part of the message that says it, not the whole
    parts = re.split(r"[,，;；。\n]|[.!?！？](?=\s|$)", text)
    text = next((part.strip() for part in parts for word in words if word in part), text)
    task = label["scope"] == "task"
    owner = label["scope"].split("|")[0]
    value = next((word for word in words if word in text), label.get("value"))
    return Candidate(
        statement=text[:900],
        content_type=label.get("type") or "fact",
        kind="prospective" if task else "semantic",
        due_at=AT if task else None,
        subject=label.get("subject") or ("user" if owner == "user" else "billing"),
        predicate="said" if value else None,
        value=value,
        owner="user" if task else owner,
        reach="session" if owner == "session" else "lasting",
        messages=(number,),
        write_reason="the user said so",
    )


EXTRACTORS: dict[str, Callable[[dict[str, Any]], Extractor]] = {
    "rules": rules,
    "model (scripted)": scripted,
    "model (gullible)": lambda exchange: scripted(exchange, gullible=True),
}


def measure(name: str, part: str) -> dict[str, Any]:
    """The figures of one extractor on one part: both languages, each, and by type; and what went wrong."""
    tallies: Counter[str] = Counter()
    by: dict[str, Tally] = {}
    failures: list[str] = []
    for exchange in exchanges(part):
        found = learnt(EXTRACTORS[name](exchange), said(exchange))
        right, wrong, met, missed = judged(exchange, found)
        language = exchange["language"]
        tallies[language] += 1
        whole = Tally(len(right) + len(wrong), len(right), len(exchange["learnt"]))
        for row in ("all", language):
            by[row] = by.get(row, Tally()) + whole
        # A wrong fact counts in the row of the type that it was learnt as.
        rows = [(type_of(each), Tally(1, 1, 1)) for each in met] + [(type_of(each), Tally(0, 0, 1)) for each in missed]
        for row, tally in [*rows, *((fact.type, Tally(1)) for fact in wrong)]:
            by[row] = by.get(row, Tally()) + tally
        text = exchange["say"][-1][1]
        failures += [f"{exchange['id']} wrong: {text!r}: {tuple(fact)}" for fact in wrong]
        failures += [f"{exchange['id']} missed: {text!r}: {label}" for label in missed]
    return {
        "extractor": name,
        "part": part,
        "exchanges": dict(tallies),
        "figures": {row: tally.figures() for row, tally in by.items()},
        "failures": failures,
    }


def main() -> None:
    """Print the table, or all of it as JSON."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="one JSON list instead of tables")
    options.add_argument("--failures", action="store_true", help="what the rules got wrong, in all parts but unseen")
    asked = options.parse_args()
    measured = [measure(name, part) for name in EXTRACTORS for part in PARTS]
    if asked.json:
        print(json.dumps(measured, ensure_ascii=False, indent=1))
        return
    print(
        f"{'extractor':<18}{'part':<10}{'of':<12}{'precision':>10}{'recall':>8}{'right':>7}{'learnt':>7}{'wanted':>8}"
    )
    for each in measured:
        for row, figures in each["figures"].items():
            precision, recall = (
                "-" if figures[key] is None else f"{figures[key]:.3f}" for key in ("precision", "recall")
            )
            print(
                f"{each['extractor']:<18}{each['part']:<10}{row:<12}{precision:>10}{recall:>8}"
                f"{figures['right']:>7}{figures['learnt']:>7}{figures['wanted']:>8}"
            )
    print("model: a protocol test, the model's replies are scripted")
    if asked.failures:
        for each in measured:
            if each["extractor"] == "rules" and each["part"] != "unseen":
                print(*each["failures"], sep="\n")


if __name__ == "__main__":
    main()
