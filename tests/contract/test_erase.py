"""What every backend promises about erasure: it is gone, it stays gone, and the receipt tells the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic import ValidationError
from support.records import NOON, create, keep, learnt, said_by, write
from support.threads import Checkpoints

from everthread import Evidence, Identity, Record, Scope
from everthread.errors import AccessDenied, UsageError
from everthread.nodes import archive, correct, review, unarchive, verify
from everthread.nodes.extract.review import Verdict
from everthread.stores import MemoryStore
from everthread.stores.identity import Within
from everthread.stores.record import Change, Coverage, Relation, Selection
from everthread.stores.threads import below

SECRET = 'Ana keeps the Xylophon-4711 under the "blue" carpet'


def only(*records: Record) -> Selection:
    return Selection(record_ids=tuple(record.id for record in records))


def said(message_id: str, text: str, thread_id: str = "t1", role: Any = "user") -> Evidence:
    return Evidence(thread_id=thread_id, message_id=message_id, role=role, text=text, at=NOON, source=role)


def test_nothing_of_an_erased_record_is_left(
    store: MemoryStore, ana: Identity, stored_bytes: Callable[[], bytes]
) -> None:
    (record,) = keep(
        store, ana, learnt(SECRET, subject="Ana", predicate="hides", value="Xylophon-4711", tags=("Xylophon",))
    )
    revised = record.model_copy(update={"statement": SECRET + ", since Monday"})
    change = Change(action="revise", target=record.id, expected=1, record=revised, rule="r", reason=f"not: {SECRET}")
    receipt = store.commit(ana, [change], key="k")
    assert b"Xylophon" in stored_bytes()

    erasure = store.erase(ana, only(record), reason="she asked for it")

    assert erasure.erased == {"records": 1, "revisions": 2, "index": 2}
    assert erasure.record_ids == (record.id,)
    assert (erasure.verified, erasure.reason) == (True, "she asked for it")
    assert b"Xylophon" not in stored_bytes()
    assert store.record(ana, record.id) is None
    assert store.history(ana, record.id) == []
    assert store.current(ana, "ana", "hides") == []
    assert store.recall(ana, "where is the Xylophon?", explain=True).dropped == ()
    (decision,) = (store.receipt(ana, receipt.id) or receipt).decisions
    assert (decision.record_id, decision.rule, decision.reason) == (record.id, "r", "the record was erased")
    assert all(finding.ok for finding in store.doctor())


def test_what_was_erased_is_not_learnt_again(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana lives in Brno", subject="ana", predicate="home", value="Brno"))
    store.erase(ana, only(record), reason="asked")
    later = said_by("ana", "t1", "m7")
    again = [
        learnt("  ana LIVES in brno. ", provenance=later),
        learnt("Her home is Brno", subject="Ana", predicate="Home", value="BRNO", provenance=later),
        learnt("Ana lives in Brno", "project", "billing", provenance=later),
    ]
    (kept,) = keep(store, ana, learnt("Ana likes tea", provenance=later))
    takes_over = Change(action="supersede", target=kept.id, expected=1, record=again[0], rule="r", reason="x")
    decisions = write(
        store, ana, *map(create, again), takes_over, create(learnt("Ana works in Prague", provenance=later))
    )
    assert [(d.outcome, d.rule) for d in decisions] == [("refused", "tombstone")] * 4 + [("created", "new")]
    assert {found.statement for found in store.records(ana)} == {"Ana likes tea", "Ana works in Prague"}
    # for another user it is another matter
    (decision,) = write(store, ben, create(learnt("Ana lives in Brno", owner_id="ben")))
    assert decision.outcome == "created"


def test_other_values_may_be_learnt(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana is 5 years old", subject="ana", predicate="age", value="5"))
    store.erase(ana, only(record), reason="asked")
    six = learnt("Ana is 6 years old", subject="ana", predicate="age", value="6", provenance=said_by("ana", "t1", "m7"))
    (decision,) = write(store, ana, create(six))
    assert decision.outcome == "created"


def test_without_its_source_the_receipt_names_what_remains(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", f"Remember: {SECRET}")])
    (record,) = keep(store, ana, learnt(SECRET))
    erasure = store.erase(ana, only(record), reason="asked")
    assert erasure.verified is False
    assert erasure.remains == (
        "the messages that it came from, and their checkpoints: with_source=True erases them too",
        "the same words in messages that were not selected",
    )
    assert len(store.transcripts.read(ana, "t1")) == 1


def test_with_its_source_messages_replies_and_checkpoints_go(
    store: MemoryStore, ana: Identity, stored_bytes: Callable[[], bytes]
) -> None:
    messages = [
        said("m1", f"Remember: {SECRET}"),
        said("m2", f"I will remember that {SECRET.lower()}.", role="assistant"),
        said("m3", "And the weather?"),
    ]
    store.transcripts.append(ana, messages)
    summary = store.artifacts.put(ana, "summary", f"She said that {SECRET}", thread_id="t1")
    paraphrase = store.artifacts.put(ana, "summary", "They spoke about her instrument", thread_id="t1")
    other = store.artifacts.put(ana, "tool_result", "Sunny until Friday", thread_id="t1")
    (record,) = keep(store, ana, learnt(SECRET))
    checkpoints = Checkpoints()

    erasure = store.erase(ana, only(record), reason="asked", with_source=True, threads=checkpoints)

    assert (erasure.verified, erasure.remains) == (True, ())
    assert erasure.erased == {
        "records": 1,
        "revisions": 1,
        "index": 1,
        "evidence": 2,
        "artifacts": 2,
        "checkpoints": 2,
    }
    assert checkpoints.asked == [("t1", ("m1", "m2"), (SECRET,))]
    assert [message.message_id for message in store.transcripts.read(ana, "t1")] == ["m3"]
    assert store.artifacts.get(ana, summary) is None
    assert store.artifacts.get(ana, paraphrase) is None, "in whose words it repeats them cannot be known"
    assert store.artifacts.get(ana, other) is not None
    assert b"Xylophon" not in stored_bytes()
    assert store.transcripts.append(ana, messages) == 0


def test_with_its_source_replies_in_other_threads_go_too(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    (record,) = keep(store, ana, learnt(SECRET))
    store.transcripts.append(ana, [said("m9", "What do I play?")])
    replies = [
        said("r1", f"From memory: {SECRET} It is nice.", role="assistant"),
        said("r2", f"As {record.id} says, the bars one.", role="assistant"),
    ]
    elsewhere = [reply.model_copy(update={"thread_id": "t2"}) for reply in replies]
    store.transcripts.append(ana, elsewhere)
    others = [reply.model_copy(update={"thread_id": "t3"}) for reply in replies]
    store.transcripts.append(ben, others)
    checkpoints = Checkpoints()
    erasure = store.erase(ana, only(record), reason="asked", with_source=True, threads=checkpoints)
    assert (erasure.verified, erasure.remains) == (True, ()), "that ben keeps the same words is not ana's to know"
    assert ("t2", ("r1", "r2"), (SECRET,)) in checkpoints.asked
    assert store.transcripts.read(ana, "t2") == []
    assert [message.message_id for message in store.transcripts.read(ana, "t1")] == ["m9"]
    assert store.transcripts.read(ben, "t3") == others, "what another user was told is theirs to erase"


def test_checkpoints_out_of_reach_are_named(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET)])
    (record,) = keep(store, ana, learnt(SECRET))
    erasure = store.erase(ana, only(record), reason="asked", with_source=True)
    assert erasure.remains == ("checkpoints of thread t1: pass threads=checkpointer to redact them",)
    assert erasure.verified


def test_a_failing_checkpointer_leaves_all_to_be_tried_again(store: MemoryStore, ana: Identity) -> None:
    class Broken(Checkpoints):
        def redact(self, thread_id: str, message_ids: Sequence[str], words: Sequence[str]) -> int:
            raise OSError("disk")

    (record,) = keep(store, ana, learnt(SECRET))
    with pytest.raises(OSError, match="disk"):
        store.erase(ana, only(record), reason="asked", with_source=True, threads=Broken())
    assert store.record(ana, record.id) == record


def test_a_thread_can_be_erased_whole(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET), said("m2", "hello"), said("m3", "elsewhere", "t2")])
    (gone,) = keep(store, ana, learnt(SECRET))
    (kept,) = keep(store, ana, learnt("Ana likes tea", provenance=said_by("ana", "t2", "m3")))
    erasure = store.erase(ana, Selection(thread_id="t1"), reason="asked", with_source=True, threads=Checkpoints())
    assert erasure.record_ids == (gone.id,)
    assert store.records(ana) == [kept]
    assert store.transcripts.read(ana, "t1") == []
    assert len(store.transcripts.read(ana, "t2")) == 1
    assert erasure.verified


def test_the_threads_of_sub_agents_go_with_a_thread_and_no_others(
    store: MemoryStore, ana: Identity, ben: Identity
) -> None:
    sub, deep = f"{below('t1')}x", f"{below(below('t1') + 'x')}y"
    for thread_id in ("t1", sub, deep, "t11", f"{below('t2')}x"):
        store.transcripts.append(ana, [said(f"m-{thread_id}", "hello", thread_id)])
    store.transcripts.bind(ben, f"{below('t1')}of-ben")
    (gone,) = keep(store, ana, learnt(SECRET, provenance=said_by("ana", deep, f"m-{deep}")))
    saver = Checkpoints()
    erasure = store.erase(ana, Selection(thread_id="t1"), reason="asked", with_source=True, threads=saver)
    assert (erasure.record_ids, sorted(saver.deleted)) == ((gone.id,), sorted(["t1", sub, deep]))
    left = {info.thread_id for info in store.transcripts.threads(ana)}
    assert left == {"t11", f"{below('t2')}x"}
    assert [info.thread_id for info in store.transcripts.threads(ben)] == [f"{below('t1')}of-ben"]
    assert store.transcripts.erase_thread(ana, "t11", reason="asked")["evidence"] == 1


def test_a_thread_narrowed_by_something_else_stays(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET), said("m2", "hello")])
    keep(store, ana, learnt(SECRET, subject="Ana"))
    saver, some = Checkpoints(), Selection(thread_id="t1", subject="Ana")
    store.erase(ana, some, reason="asked", with_source=True, threads=saver)
    assert saver.deleted == []
    assert [each.message_id for each in store.transcripts.read(ana, "t1")] == ["m2"]


@pytest.mark.parametrize(
    "selection",
    [
        Selection(scope=Scope(owner="user", owner_id="ana")),
        Selection(subject="ANA"),
        Selection(scope=Scope(owner="user", owner_id="ana"), subject="Ana", thread_id="t1"),
    ],
)
def test_selections_are_combined_and_reach_every_revision_of_it(
    store: MemoryStore, ana: Identity, selection: Selection
) -> None:
    shop = Scope(owner="user", owner_id="ana", within=Within(application="shop"))
    mine = keep(store, ana, learnt("Ana likes tea", subject="Ana"))
    write(store, ana, create(learnt("Ana likes coffee", subject="ana", scope=shop)))
    tea = mine[0]
    write(store, ana, Change(action="end", target=tea.id, expected=1, status="archived", rule="r", reason="x"))
    project = learnt("The project likes tea", "project", "billing", subject="the project")
    write(store, ana, create(project))
    erasure = store.erase(ana, selection, reason="asked")
    assert len(erasure.record_ids) == 2
    assert [found.id for found in store.records(ana)] == [project.id]


def test_what_matches_only_in_part_stays(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana likes tea", subject="Ana"))
    erasure = store.erase(ana, Selection(record_ids=(tea.id,), subject="Ben"), reason="asked")
    assert (erasure.record_ids, erasure.erased) == ((), {})
    assert store.records(ana) == [tea]


def test_summaries_of_what_is_erased_go_too(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt(SECRET))
    derived = Relation(kind="derived_from", target=record.id, reason="summed up")
    covers = Coverage(thread_id="t1", first_message="m1", last_message="m2", generator="rules/1")
    summary = learnt(f"In short: {SECRET}", content_type="summary", covers=covers, relations=(derived,))
    second = learnt("A view of it", relations=(Relation(kind="derived_from", target=summary.id, reason="summed up"),))
    keep(store, ana, summary, second)
    erasure = store.erase(ana, only(record), reason="asked")
    assert set(erasure.record_ids) == {record.id, summary.id, second.id}
    assert store.records(ana) == []


def test_relations_to_what_is_erased_go(store: MemoryStore, ana: Identity, stored_bytes: Callable[[], bytes]) -> None:
    (old,) = keep(store, ana, learnt(SECRET))
    new = learnt("Ana keeps it at the bank")
    reason = f"no longer: {SECRET}"
    write(store, ana, Change(action="supersede", target=old.id, expected=1, record=new, rule="r", reason=reason))
    assert store.erase(ana, only(old), reason="asked").verified
    stored = store.record(ana, new.id)
    assert stored is not None
    assert (stored.relations, stored.status) == ((), "active")
    assert b"Xylophon" not in stored_bytes()


def test_what_was_contested_by_it_stands_again(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana drinks tea"))
    coffee = learnt("Ana drinks coffee")
    write(store, ana, Change(action="contest", target=tea.id, expected=1, record=coffee, rule="r", reason="both?"))
    store.erase(ana, only(coffee), reason="asked")
    assert [(found.id, found.status) for found in store.records(ana)] == [(tea.id, "active")]
    assert [found.revision for found in store.history(ana, tea.id)] == [1, 2, 3]
    assert all(finding.ok for finding in store.doctor())


def test_erasing_twice_is_no_error(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt(SECRET))
    store.erase(ana, only(record), reason="asked")
    again = store.erase(ana, only(record), reason="asked")
    assert (again.record_ids, again.erased, again.verified) == ((), {}, True)


def test_others_cannot_erase_it(store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity) -> None:
    (record,) = keep(store, ana, learnt(SECRET))
    for identity in (ben, stranger):
        assert store.erase(identity, only(record), reason="malice").record_ids == ()
    assert store.record(ana, record.id) == record


def test_a_members_word_is_the_members_to_erase(store: MemoryStore, ana: Identity) -> None:
    ben = Identity(tenant="acme", user="ben", project="billing")
    (record,) = keep(store, ana, learnt("We use PostgreSQL", "project", "billing"))
    with pytest.raises(AccessDenied, match="curator"):
        store.erase(ben, only(record), reason="no")
    assert store.erase(ana, only(record), reason="mine").record_ids == (record.id,)


def test_an_admin_erases_for_others_of_the_tenant(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("m1", SECRET)])
    (record,) = keep(store, ana, learnt(SECRET))
    foreign = Identity(tenant="other", user="root", roles=frozenset({"admin"}))
    assert store.erase(foreign, Selection(scope=record.scope), reason="no").record_ids == ()
    admin = Identity(tenant="acme", user="root", roles=frozenset({"admin"}))
    erasure = store.erase(admin, Selection(scope=record.scope), reason="law", with_source=True, threads=Checkpoints())
    assert (erasure.record_ids, erasure.verified) == ((record.id,), True)
    assert store.transcripts.read(ana, "t1") == []


def test_messages_of_another_user_are_named_and_kept(store: MemoryStore, ana: Identity) -> None:
    curator = Identity(tenant="acme", user="cleo", project="billing", roles=frozenset({"curator"}))
    store.transcripts.append(ana, [said("m1", "We use PostgreSQL")])
    (record,) = keep(store, ana, learnt("We use PostgreSQL", "project", "billing"))
    erasure = store.erase(curator, only(record), reason="wrong", with_source=True, threads=Checkpoints())
    assert erasure.remains[0] == "messages of thread t1, which are another user's: ask an admin"
    assert len(store.transcripts.read(ana, "t1")) == 1


def test_an_empty_selection_erases_nothing() -> None:
    with pytest.raises(ValidationError, match="an empty one would erase all"):
        Selection()


def test_an_erasure_needs_a_reason(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="reason"):
        store.erase(ana, Selection(subject="ana"), reason=" ")


async def test_erasure_runs_under_asyncio(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt(SECRET))
    erasure = await store.aerase(ana, only(record), reason="asked")
    assert erasure.record_ids == (record.id,)


@pytest.mark.parametrize("with_source", [False, True])
def test_a_reason_that_repeats_it_goes_too(
    store: MemoryStore, ana: Identity, stored_bytes: Callable[[], bytes], with_source: bool
) -> None:
    """A person's reason stands with another record: in its history, its edges, and the receipt."""
    old, tea, waits = keep(
        store,
        ana,
        learnt(SECRET, subject="user", predicate="hides"),
        learnt("The user likes tea."),
        learnt("The user hides nothing at all.", subject="user", predicate="hides", status="pending"),
    )
    why = f"no longer: {SECRET.upper()}"
    correct(store, ana, old.id, "I hide the key under the mat.", reason=why)
    archive(store, ana, tea.id, reason=why)
    unarchive(store, ana, tea.id, reason=why)
    verify(store, ana, tea.id, reason=why)
    review(store, ana, waits.id, Verdict(verdict="edit", statement="I hide the keys elsewhere.", reason=why))
    assert b"XYLOPHON" in stored_bytes()

    erasure = store.erase(ana, only(old), reason="she asked for it", with_source=with_source)

    assert b"xylophon" not in stored_bytes().lower()
    assert erasure.verified
    reasons = [each.reason for receipt in store.receipts(ana, tea.id) for each in receipt.decisions]
    assert reasons[-3:] == ["the record was erased"] * 3
    (kept,) = [record for record in store.records(ana, statuses=("active",)) if record.id == waits.id]
    assert (kept.statement, kept.write_reason) == ("I hide the keys elsewhere.", "the record was erased")


def test_a_reason_of_another_user_s_is_left(
    store: MemoryStore, ana: Identity, ben: Identity, stored_bytes: Callable[[], bytes]
) -> None:
    (old,) = keep(store, ana, learnt(SECRET))
    (tea,) = keep(store, ben, learnt("Ben likes tea.", owner_id="ben"))
    archive(store, ben, tea.id, reason=SECRET)
    assert store.erase(ana, only(old), reason="asked").verified
    assert [each.reason for each in store.receipts(ben, tea.id)[-1].decisions] == [SECRET]
