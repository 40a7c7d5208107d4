"""What memory makes of poisoned writes, on public cases that are labelled ALLOW, DENY or QUARANTINE.

    python benchmarks/poison.py --data DIR [--json]          DIR holds poison/

Each labelled write comes through three doors: `put`, a tool's write to the namespace of the case by
`store.bound(identity, remember=door(store))`; `memory_save`, called by the model in a whole turn of the agent, with
the session of the case; and `extracted`, a tool's result that a gullible model proposes as the user's own word.
ALLOW: it is kept by the first two, active or waiting for review (nobody but an agent has said it, so it waits
unless the user's message says the same). DENY: nothing of it is stored. QUARANTINE: it is not active.

The experience seeds stand in a page, in the result of a tool, and in that of a tool that the host trusts; the
gullible model proposes each as a fact and as a procedure, for the user, the project and the agent. None may become
active.

Models are scripted. The exit status is 1 when a case fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from everthread import Identity
from everthread.errors import AccessDenied, UsageError
from everthread.graphs import create_memory_agent
from everthread.nodes import Extract, door, memory_tools
from everthread.nodes.extract import Candidate, ModelExtractor
from everthread.nodes.extract.model import Proposals
from everthread.nodes.node import runtime_for
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import Status

CASES = Path("poison/aws_memory_poisoning/test-payloads/test-cases.json")
SEEDS = Path("poison/metagpt_experience_seeds.json")
KEPT: Sequence[Status] = ("active", "contested", "pending")
TRUSTED = frozenset({"trusted_tool"})


class Result(NamedTuple):
    """One write through one door."""

    case: str
    expected: str
    by: str
    found: str
    """`active`, `pending` or `refused`."""
    rule: str
    """The rules that decided."""

    @property
    def passed(self) -> bool:
        """Whether it went as it had to."""
        match self.expected:
            case "ALLOW":
                return self.found in ("active", "pending")
            case "DENY":
                return self.found == "refused"
            case "QUARANTINE":
                return self.found != "active"
            case _:
                return True


class Scripted(GenericFakeChatModel):
    """LangChain's fake model; tools may be bound to it."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """The same model."""
        return self


def scripted(*replies: AIMessage) -> Scripted:
    """A model that gives these replies."""
    return Scripted(messages=iter(replies))


def call(tool: str, **arguments: Any) -> AIMessage:
    """A model's call of one tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": f"call-{tool}"}])


def gullible(candidates: Iterable[Candidate]) -> ModelExtractor:
    """An extractor whose model proposes these, whatever it is shown."""
    proposed = [candidate.model_dump(mode="json", exclude_none=True) for candidate in candidates]
    return ModelExtractor(scripted(call(Proposals.__name__, candidates=proposed)), name="gullible")


def outcome(store: MemoryStore, identity: Identity) -> tuple[str, str]:
    """What was stored of the one write into this store, and the rules that decided."""
    statuses = {record.status for record in store.records(identity, statuses=KEPT)}
    writes = store.audit(identity, action="write")
    rules = sorted({decision[1] for entry in writes for decision in entry.detail["decisions"]})
    found = "active" if statuses & {"active", "contested"} else "pending" if statuses else "refused"
    return found, ", ".join(rules)


def by_put(case: dict[str, Any], home: str, identity: Identity) -> tuple[str, str]:
    """A tool's write to the namespace of the case."""
    kind, whose, *_ = case["targetNamespace"].split("/")
    with open_store(f"sqlite:{home}", embedder="none") as store:
        try:
            bound = store.bound(identity, remember=door(store))
            bound.put(("everthread", identity.tenant, kind, whose), "case", {"content": case["writeContent"]})
        except (AccessDenied, UsageError) as error:
            return outcome(store, identity)[0], type(error).__name__
        return outcome(store, identity)


def by_tool(case: dict[str, Any], home: str, identity: Identity) -> tuple[str, str]:
    """The model calls `memory_save` in a turn that says what the session of the case says."""
    asked, *answers = case["sessionContext"]
    model = scripted(call("memory_save", statement=case["writeContent"]), *map(AIMessage, answers[-1:]))
    url = f"sqlite:{home}"
    with open_store(url, embedder="none") as store, open_checkpointer(url) as saver:
        agent = create_memory_agent(model, tools=memory_tools()).compile(checkpointer=saver, store=store)
        agent.invoke({"messages": [("user", asked)]}, {"configurable": {"thread_id": "case"}}, context=identity)
        return outcome(store, identity)


def by_extraction(case: dict[str, Any], home: str, identity: Identity) -> tuple[str, str]:
    """A tool's result says it, and the extracting model takes it for the user's word."""
    asked, *answers = case["sessionContext"]
    text = case["writeContent"]
    messages = turn(asked, "search", text, answers[-1])
    proposed = Candidate(statement=text, content_type="preference", messages=(3,), write_reason="the user said so")
    with open_store(f"sqlite:{home}", embedder="none") as store:
        learn(store, identity, messages, [proposed, proposed.model_copy(update={"messages": (1, 3)})])
        return outcome(store, identity)


def turn(asked: str, tool: str, result: str, answer: str) -> list[AnyMessage]:
    """A turn in which a tool was used."""
    return [
        HumanMessage(asked, id="m1"),
        AIMessage("", id="m2", tool_calls=[{"name": tool, "args": {}, "id": "c1"}]),
        ToolMessage(result, id="m3", tool_call_id="c1", name=tool),
        AIMessage(answer, id="m4"),
    ]


def learn(store: MemoryStore, identity: Identity, messages: list[AnyMessage], candidates: list[Candidate]) -> None:
    """The extract node on these messages, with a model that proposes these candidates."""
    Extract(gullible(candidates), trusted_tools=TRUSTED, when="inline")(
        {"messages": messages}, runtime_for(identity, store, f"case-{identity.tenant}")
    )


def labelled(data: Path) -> list[Result]:
    """The labelled writes, each through its doors."""
    results = []
    for case in json.loads((data / CASES).read_text(encoding="utf-8")):
        identity = Identity(tenant="acme", user=case["userId"])
        for by, door_of in (("put", by_put), ("memory_save", by_tool), ("extracted", by_extraction)):
            if by == "extracted" and case["expectedDecision"] == "ALLOW":
                continue  # what a tool's result says in the user's name is no case to allow
            with TemporaryDirectory() as home:
                results.append(Result(case["name"], case["expectedDecision"], by, *door_of(case, home, identity)))
    return results


def seeds(data: Path) -> list[Result]:
    """The poisoned experiences, by source; and the harmless ones, for which nothing is expected."""
    found = json.loads((data / SEEDS).read_text(encoding="utf-8"))
    results = []
    with TemporaryDirectory() as home, open_store(f"sqlite:{home}", embedder="none") as store:
        for kind, expected in (("poisoned_experiences", "QUARANTINE"), ("benign_experiences", "-")):
            for seed in found[kind]:
                for by, tool in (("tool", "search"), ("trusted tool", "trusted_tool"), ("web", "fetch_url")):
                    # A tenant for each, so that none finds what another left.
                    whose = {"tenant": f"{seed['id']}-{tool}", "user": "ana", "project": "analysis"}
                    identity = Identity(**whose, agent="interpreter", agent_version="1.0")
                    learn(store, identity, turn(seed["req"], tool, experience(seed), "Done."), proposals(seed))
                    results.append(Result(seed["id"], expected, by, *outcome(store, identity)))
    return results


def experience(seed: dict[str, Any]) -> str:
    """The seed as a note holds it."""
    return f"{seed['req']}\n{seed['resp']}\nTags: {seed['tag']}"


def proposals(seed: dict[str, Any]) -> list[Candidate]:
    """Every way in which a gullible model could propose it."""
    owners: tuple[Any, ...] = ("user", "project", "agent")
    kinds: tuple[Any, ...] = (("fact", "semantic"), ("procedural", "procedural"))
    return [
        Candidate(
            statement=statement,
            content_type=content_type,
            kind=kind,
            owner=owner,
            messages=numbers,
            write_reason="it worked before",
            outcome="verified",
        )
        for statement in (seed["resp"], experience(seed))
        for content_type, kind in kinds
        for owner in owners
        for numbers in ((3,), (1, 3))
    ]


def main() -> int:
    """Print the tables; 1 when a case failed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder that holds poison/")
    options.add_argument("--json", action="store_true", help="one JSON list of every write")
    asked = options.parse_args()
    results = [*labelled(asked.data), *seeds(asked.data)]
    failed = [result for result in results if not result.passed]
    if asked.json:
        print(json.dumps([{**result._asdict(), "passed": result.passed} for result in results], indent=1))
        return 1 if failed else 0
    print(f"{'case':<42}{'expected':<12}{'by':<14}{'found':<10}rules")
    for result in results:
        if result.expected != "-" and not result.case.startswith("exp_"):
            print(f"{result.case:<42}{result.expected:<12}{result.by:<14}{result.found:<10}{result.rule}")
    print()
    for by in ("tool", "trusted tool", "web"):
        for kind in ("exp_poison", "exp_benign"):
            of = [result for result in results if result.by == by and result.case.startswith(kind)]
            counts = {status: sum(each.found == status for each in of) for status in ("active", "pending", "refused")}
            print(f"{kind} from {by}: {len(of)} seeds, {counts}")
    print()
    for label in ("ALLOW", "DENY", "QUARANTINE"):
        of = [result for result in results if result.expected == label]
        print(f"{label}: {sum(result.passed for result in of)} of {len(of)}")
    for result in failed:
        print(f"FAILED {result.case} by {result.by}: expected {result.expected}, found {result.found} ({result.rule})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
