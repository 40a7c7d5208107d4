"""What a user agrees to holds in the store, whatever a node thought (R289)."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from support.records import NOON, create, keep, learnt, said_by, write

from everthread import Evidence, Identity
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.record import Change, Selection


def test_who_has_said_nothing_has_what_the_store_was_opened_with(
    reopen: Callable[..., MemoryStore], ana: Identity, ben: Identity
) -> None:
    assert reopen().consent(ana) == "on"
    cautious = reopen(default_consent="off")
    assert cautious.consent(ana) == "off"
    with pytest.raises(AccessDenied, match="consent"):
        keep(cautious, ana, learnt("Ana likes tea"))
    cautious.set_consent(ana, "on")
    assert (cautious.consent(ana), cautious.consent(ben)) == ("on", "off")
    assert len(keep(cautious, ana, learnt("Ana likes tea"))) == 1
    with pytest.raises(UsageError, match='default_consent must be "on", "read" or "off", not \'maybe\''):
        reopen(default_consent="maybe")


def test_consent_is_durable_and_of_one_user_in_one_tenant(
    reopen: Callable[..., MemoryStore], ana: Identity, ben: Identity, stranger: Identity
) -> None:
    reopen().set_consent(ana, "off")
    again = reopen()
    assert [again.consent(each) for each in (ana, ben, stranger)] == ["off", "on", "on"]


def test_consent_is_audited(store: MemoryStore, ana: Identity) -> None:
    store.set_consent(ana, "read")
    store.set_consent(ana, "on")
    assert [(entry.action, entry.detail) for entry in store.audit(ana)] == [
        ("consent", {"memory": "read", "before": "on"}),
        ("consent", {"memory": "on", "before": "read"}),
    ]


def test_consent_that_is_none_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="memory: must be 'on', 'read' or 'off', not 'yes'"):
        store.set_consent(ana, "yes")  # type: ignore[arg-type]  # what the test is about


@pytest.mark.parametrize("consent", ["read", "off"])
def test_nothing_is_learnt_in_the_name_of_who_has_not_agreed(
    store: MemoryStore, ana: Identity, consent: Literal["read", "off"]
) -> None:
    (old,) = keep(store, ana, learnt("Ana lives in Rome"))
    new = learnt("Ana lives in Oslo")
    decided: dict[str, Any] = {"rule": "test", "reason": "as said"}
    on = {"target": old.id, "expected": 1, **decided}
    revised = old.model_copy(update={"statement": "Ana lives in Bergen"})
    learning = [
        create(new),
        create(learnt("Ana may move", status="pending")),
        Change(action="supersede", record=new, **on),
        Change(action="narrow", record=new, **on),
        Change(action="contest", record=new, **on),
        Change(action="confirm", source=said_by("ana", "t9"), **on),
        Change(action="revise", record=revised, **on),
    ]
    store.set_consent(ana, consent)
    for change in learning:
        with pytest.raises(AccessDenied, match=f"{change.action}: user ana has set consent to '{consent}'.*consent on"):
            write(store, ana, Change(action="refuse", **decided), change)
    assert store.records(ana) == [old]
    assert [entry.action for entry in store.audit(ana)] == ["write", "consent"]


def test_ending_refusing_reading_and_erasing_stay_possible_without_consent(store: MemoryStore, ana: Identity) -> None:
    first, second = keep(store, ana, learnt("Ana lives in Rome"), learnt("Ana likes tea"))
    store.set_consent(ana, "off")
    decided: dict[str, Any] = {"rule": "test", "reason": "as said"}
    decisions = write(
        store,
        ana,
        Change(action="end", target=first.id, expected=1, status="rejected", **decided),
        Change(action="refuse", **decided),
    )
    assert [decision.outcome for decision in decisions] == ["ended", "refused"]
    assert [hit.record_id for hit in store.recall(ana, "tea").hits] == [second.id]
    assert store.records(ana) == [second]
    assert store.erase(ana, Selection(record_ids=(second.id,)), reason="asked").verified


def test_a_commit_that_was_made_before_is_answered_again(store: MemoryStore, ana: Identity) -> None:
    change = create(learnt("Ana likes tea"))
    receipt = store.commit(ana, [change], key="k")
    store.set_consent(ana, "off")
    assert store.commit(ana, [change], key="k") == receipt


@pytest.mark.parametrize("memory", ["read", "off"])
def test_no_transcript_is_kept_of_who_has_not_agreed_nor_in_a_thread_that_is_off(
    store: MemoryStore, ana: Identity, memory: Any
) -> None:
    """Whoever appends: a node, an import of chats, code of the host's own."""
    said = [
        Evidence(thread_id=thread, message_id=f"m-{thread}", role="user", text="Hello.", at=NOON, source="user")
        for thread in ("t1", "t2")
    ]
    store.transcripts.set_memory(ana, "t1", memory)
    with pytest.raises(AccessDenied, match=rf"^thread 't1' keeps no transcript: its memory is '{memory}'"):
        store.transcripts.append(ana, said)
    assert store.transcripts.read(ana, "t2") == []
    store.transcripts.set_memory(ana, "t1", "on")
    store.set_consent(ana, memory)
    with pytest.raises(AccessDenied, match=rf"^user ana has set consent to '{memory}', so no transcript is kept"):
        store.transcripts.append(ana, said)
    store.set_consent(ana, "on")
    assert store.transcripts.append(ana, said) == 2
    store.set_consent(ana, memory)
    assert store.transcripts.append(ana, said) == 0  # what is there already is no new word
