"""A store that has long been open answers as one that was just opened, whatever was written meanwhile and by whom."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from support.records import NOON, Clock, TopicEmbeddings, create, learnt, write

from everthread import Evidence, Identity, Record, Scope
from everthread.stores import MemoryStore
from everthread.stores.identity import Owner, Within
from everthread.stores.record import Change, Selection

ANA = Identity(tenant="acme", user="ana", project="p", agent="a", agent_version="2.1", environment="test")
USER: tuple[Owner, str] = ("user", "ana")
PROJECT: tuple[Owner, str] = ("project", "p")
WORDS = "kitten train painting tea canvas rail feline harbour locomotive cat".split()


def invented(chance: Random, n: int) -> Record:
    owner, owner_id = chance.choice([USER, PROJECT, USER])
    fields: dict[str, Any] = {}
    if chance.random() < 0.3:
        fields["valid_to"] = NOON + timedelta(hours=chance.randint(-5, 5))
    if chance.random() < 0.2:
        fields["valid_from"] = NOON - timedelta(hours=chance.randint(6, 9))
    if chance.random() < 0.2:
        fields["environment"] = chance.choice(["test", "production"])
    if chance.random() < 0.2:
        fields |= {"agent_family": "a", "agent_versions": chance.choice([">=2", "<2"])}
    if chance.random() < 0.2:
        fields["scope"] = Scope(owner=owner, owner_id=owner_id, within=Within(application=chance.choice(["x", "y"])))
    return learnt(f"{' '.join(chance.choices(WORDS, k=4))} {n}", owner, owner_id, **fields)


def act(chance: Random, store: MemoryStore, n: int) -> None:
    known = store.records(ANA)
    action: Any = chance.choice(["create", "create", "create", "supersede", "revise", "end", "erase", "say"])
    if action == "say":
        said = Evidence(
            thread_id=f"t{n % 3}",
            message_id=f"m{n}",
            role="user",
            text=" ".join(chance.choices(WORDS, k=5)),
            at=NOON,
            source="user",
        )
        store.transcripts.append(ANA, [said])
    elif action == "create" or not known:
        write(store, ANA, *(create(invented(chance, 10 * n + i)) for i in range(chance.randint(1, 4))))
    elif action == "erase":
        store.erase(ANA, Selection(record_ids=(chance.choice(known).id,)), reason="asked")
    else:
        target = chance.choice(known)
        fields: dict[str, Any] = {"action": action, "target": target.id, "expected": target.revision}
        if action == "supersede":
            fields["record"] = invented(chance, 10 * n)
        elif action == "revise":
            fields["record"] = target.model_copy(update={"statement": f"{target.statement} again"})
        else:
            fields["status"] = "archived"
        write(store, ANA, Change(**fields, rule="r", reason="x"))


def answers(store: MemoryStore) -> list[Any]:
    """What is found, and its scores to three digits: the order of additions moves the last ones."""
    asked: list[dict[str, Any]] = [
        {},
        {"now": NOON + timedelta(hours=3)},
        {"sources": {"evidence"}},
        {"scopes": [Scope(owner="project", owner_id="p")]},
    ]
    return [
        sorted(
            (round(hit.score, 3), hit.record_id, hit.statement)
            for hit in store.recall(ANA, "kitten on a train", limit=99, **each).hits
        )
        for each in asked
    ]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_in_memory_changes_no_answer(reopen: Any, seed: int) -> None:
    chance = Random(seed)
    options: dict[str, Any] = {"embedder": TopicEmbeddings(), "synchronous": "OFF", "clock": Clock()}
    warm, other = reopen(**options), reopen(**options)
    for n in range(40):
        act(chance, chance.choice([warm, other]), n)
        expected = answers(reopen(**options))
        for store in (warm, other):
            for found, fresh in zip(answers(store), expected, strict=True):
                assert [hit[1:] for hit in found] == [hit[1:] for hit in fresh]
                assert [hit[0] for hit in found] == pytest.approx([hit[0] for hit in fresh], abs=2e-3)


def test_a_window_grows_with_what_is_said_next(reopen: Any) -> None:
    store: MemoryStore = reopen(embedder="none")

    def say(n: int, text: str) -> None:
        said = Evidence(thread_id="t", message_id=f"m{n}", role="user", text=text, at=NOON, source="user")
        store.transcripts.append(ANA, [said])

    say(1, "the harbour is closed")
    say(2, "why")
    assert [hit.statement for hit in store.recall(ANA, "storm", sources={"evidence"}).hits] == []
    say(3, "because of the storm")
    assert "why" in [hit.statement for hit in store.recall(ANA, "storm", sources={"evidence"}).hits]
