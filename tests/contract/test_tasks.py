"""What every backend's task repository promises."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from support.records import keep, learnt, said_by

from everthread import Evidence, Identity
from everthread.errors import AccessDenied, Conflict, UsageError
from everthread.stores import MemoryStore
from everthread.stores.contract import Task, TaskStatus
from everthread.stores.record import Selection

NOON = datetime(2026, 5, 8, 12, 0, 0, 5, tzinfo=UTC)
ALL: tuple[TaskStatus, ...] = ("scheduled", "running", "completed", "failed", "cancelled")


def test_a_new_task_is_scheduled_and_listed(store: MemoryStore, ana: Identity) -> None:
    due_at = datetime(2026, 5, 8, 9, 0, tzinfo=timezone(timedelta(hours=8)))
    task = store.tasks.create(ana, "check the migration 检查", thread_id="t1", due_at=due_at)
    assert task == Task(
        id=task.id,
        text="check the migration 检查",
        thread_id="t1",
        due_at=due_at,
        status="scheduled",
        created_at=task.created_at,
    )
    assert task.due_at is not None
    assert task.due_at.isoformat() == "2026-05-08T09:00:00+08:00"
    newer = store.tasks.create(ana, "tell me when it is built")
    assert store.tasks.of(ana) == [newer, task]


def test_the_same_key_returns_the_task_that_exists(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    first = store.tasks.create(ana, "check", key="k")
    started = store.tasks.start(ana, first.id)
    assert store.tasks.create(ana, "check again", key="k") == started
    assert store.tasks.create(ben, "check", key="k").id != first.id
    assert store.tasks.of(ana) == [started]


Move = Callable[[MemoryStore, Identity, str], object]
MOVES: dict[str, Move] = {
    "start": lambda store, who, id: store.tasks.start(who, id),
    "complete": lambda store, who, id: store.tasks.finish(who, id, "done"),
    "fail": lambda store, who, id: store.tasks.finish(who, id, "no", failed=True),
    "cancel": lambda store, who, id: store.tasks.cancel(who, id),
    "reschedule": lambda store, who, id: store.tasks.reschedule(who, id, NOON),
    "depend": lambda store, who, id: store.tasks.depend(who, id, []),
}
TO: dict[TaskStatus, list[str]] = {
    "scheduled": [],
    "running": ["start"],
    "completed": ["complete"],
    "failed": ["fail"],
    "cancelled": ["cancel"],
}
"""How a task gets into each state."""
TABLE: dict[TaskStatus, dict[str, TaskStatus | None]] = {
    "scheduled": {
        "start": "running",
        "complete": "completed",
        "fail": "failed",
        "cancel": "cancelled",
        "reschedule": "scheduled",
        "depend": "scheduled",
    },
    "running": {
        "start": None,
        "complete": "completed",
        "fail": "failed",
        "cancel": "cancelled",
        "reschedule": "running",
        "depend": None,
    },
    "completed": dict.fromkeys(MOVES),
    "failed": dict.fromkeys(MOVES),
    "cancelled": dict.fromkeys(MOVES),
}
"""What becomes of a task in each state by each move; None is a Conflict that changes nothing."""


@pytest.mark.parametrize("status", ALL)
@pytest.mark.parametrize("move", MOVES)
def test_each_move_from_each_state(store: MemoryStore, ana: Identity, status: TaskStatus, move: str) -> None:
    id = store.tasks.create(ana, "build").id
    for step in TO[status]:
        MOVES[step](store, ana, id)
    before = store.tasks.of(ana)
    assert [task.status for task in before] == [status]
    to = TABLE[status][move]
    if to is None:
        with pytest.raises(Conflict, match=f"task {id} is {status} and cannot") as conflict:
            MOVES[move](store, ana, id)
        assert conflict.value.winner == status
        assert store.tasks.of(ana) == before
    else:
        MOVES[move](store, ana, id)
        assert [task.status for task in store.tasks.of(ana)] == [to]


def test_a_result_of_any_text_is_kept(store: MemoryStore, ana: Identity) -> None:
    ended = store.tasks.finish(ana, store.tasks.create(ana, "build").id, "built\x00 \ud800")
    assert store.tasks.of(ana) == [ended]
    assert (ended.status, ended.result) == ("completed", "built\x00 \ud800")


# --- what waits for others


def test_a_task_waits_until_those_before_it_are_completed(store: MemoryStore, ana: Identity) -> None:
    build, check = store.tasks.create(ana, "build"), store.tasks.create(ana, "check")
    release = store.tasks.create(ana, "release", after=[build.id, check.id, build.id])
    assert (release.after, release.blocked_by) == ((build.id, check.id), (build.id, check.id))
    for move in ("start", "complete"):
        with pytest.raises(Conflict, match=f"waits for {build.id}, {check.id} and cannot"):
            MOVES[move](store, ana, release.id)
    store.tasks.finish(ana, build.id)
    assert store.tasks.of(ana)[0].blocked_by == (check.id,)
    store.tasks.finish(ana, check.id, failed=True)
    with pytest.raises(Conflict, match=f"waits for {check.id}"):
        store.tasks.start(ana, release.id)
    assert store.tasks.depend(ana, release.id, [build.id]).blocked_by == ()
    assert store.tasks.start(ana, release.id).status == "running"


def test_what_waits_can_be_given_up(store: MemoryStore, ana: Identity) -> None:
    build = store.tasks.create(ana, "build")
    failed, cancelled = (store.tasks.create(ana, text, after=[build.id]) for text in ("check", "release"))
    assert store.tasks.finish(ana, failed.id, "not possible", failed=True).status == "failed"
    assert store.tasks.cancel(ana, cancelled.id).status == "cancelled"


def test_a_cycle_is_refused(store: MemoryStore, ana: Identity) -> None:
    one = store.tasks.create(ana, "one")
    two = store.tasks.create(ana, "two", after=[one.id])
    three = store.tasks.create(ana, "three", after=[two.id])
    before = store.tasks.of(ana)
    for first in (one, two, three):
        with pytest.raises(UsageError, match=f"task {one.id} would wait for itself"):
            store.tasks.depend(ana, one.id, [first.id])
    assert store.tasks.of(ana) == before
    assert store.tasks.depend(ana, three.id, [one.id]).after == (one.id,)


def test_a_task_can_wait_only_for_tasks_of_its_own_user(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    bens, mine = store.tasks.create(ben, "build"), store.tasks.create(ana, "check")
    with pytest.raises(UsageError, match="no task"):
        store.tasks.create(ana, "release", after=[bens.id])
    with pytest.raises(UsageError, match="no task"):
        store.tasks.depend(ana, mine.id, [bens.id])
    assert store.tasks.of(ana) == [mine]


def test_a_task_that_was_erased_holds_up_nothing(store: MemoryStore, ana: Identity) -> None:
    first = store.tasks.create(ana, "build", said_in="t1")
    second = store.tasks.create(ana, "check", after=[first.id])
    store.transcripts.bind(ana, "t1")
    store.transcripts.erase(ana, "t1", reason="asked to")
    assert store.tasks.of(ana) == [second.model_copy(update={"blocked_by": ()})]


# --- which there are


def test_tasks_are_listed_by_thread_and_by_status(store: MemoryStore, ana: Identity) -> None:
    told = store.tasks.create(ana, "told here", thread_id="t1")
    said = store.tasks.create(ana, "asked for here", said_in="t1")
    other = store.tasks.start(ana, store.tasks.create(ana, "elsewhere", thread_id="t2").id)
    assert store.tasks.of(ana, thread_id="t1") == [said, told]
    assert store.tasks.of(ana, statuses=["running", "failed"]) == [other]
    assert store.tasks.of(ana, thread_id="t1", statuses=["running"]) == []
    assert store.tasks.of(ana, statuses=[]) == []
    assert store.tasks.of(ana) == [other, said, told]
    unknown: list[TaskStatus] = ["delivered"]  # type: ignore[list-item]  # what a caller without types may write
    with pytest.raises(UsageError, match=r"statuses\[0\]: must be 'scheduled', 'running', "):
        store.tasks.of(ana, statuses=unknown)


# --- notices


def test_due_tasks_are_those_of_this_thread_or_of_none(store: MemoryStore, ana: Identity) -> None:
    here = store.tasks.create(ana, "here", thread_id="t1", due_at=NOON)
    store.tasks.create(ana, "there", thread_id="t2", due_at=NOON)
    anywhere = store.tasks.create(ana, "anywhere", due_at=NOON - timedelta(days=1))
    store.tasks.create(ana, "later", thread_id="t1", due_at=NOON + timedelta(microseconds=1))
    store.tasks.create(ana, "in the background", thread_id="t1")
    assert store.tasks.due(ana, "t1", NOON) == [here, anywhere]
    assert store.tasks.due(ana, None, NOON) == [anywhere]
    assert store.tasks.due(ana, "t1", NOON - timedelta(days=2)) == []


def test_background_work_is_noticed_when_it_ends(store: MemoryStore, ana: Identity) -> None:
    done, failed, cancelled, running = (store.tasks.create(ana, text, thread_id="t1").id for text in "abcd")
    ended = [store.tasks.finish(ana, done, "ok"), store.tasks.finish(ana, failed, "no", failed=True)]
    store.tasks.cancel(ana, cancelled)
    store.tasks.start(ana, running)
    assert store.tasks.due(ana, "t1", NOON) == ended


def test_what_ends_without_a_result_is_not_noticed(store: MemoryStore, ana: Identity) -> None:
    done, reminder = store.tasks.create(ana, "todo").id, store.tasks.create(ana, "remind me", due_at=NOON).id
    store.tasks.finish(ana, done)
    store.tasks.finish(ana, reminder)
    assert store.tasks.due(ana, "t1", NOON) == []


def test_notice_is_given_once(store: MemoryStore, ana: Identity) -> None:
    id = store.tasks.create(ana, "remind me", due_at=NOON).id
    store.tasks.deliver(ana, [id])
    (told,) = store.tasks.of(ana)
    assert (told.status, told.told_at is None) == ("scheduled", False), "that it rang is not that it is done"
    store.tasks.deliver(ana, [id])
    assert (store.tasks.due(ana, "t1", NOON), store.tasks.of(ana)) == ([], [told])
    assert store.tasks.finish(ana, id).status == "completed"
    assert store.tasks.due(ana, "t1", NOON) == []


def test_a_reminder_that_rang_tells_its_result_too(store: MemoryStore, ana: Identity) -> None:
    id = store.tasks.create(ana, "watch the build", due_at=NOON).id
    store.tasks.deliver(ana, [id])
    assert store.tasks.due(ana, "t1", NOON) == []
    assert store.tasks.due(ana, "t1", NOON) == [] != [store.tasks.finish(ana, id, "built")]
    assert [task.result for task in store.tasks.due(ana, "t1", NOON)] == ["built"]


def test_what_is_rescheduled_rings_again(store: MemoryStore, ana: Identity) -> None:
    zone = timezone(timedelta(hours=-7))
    id = store.tasks.create(ana, "remind me", due_at=NOON).id
    store.tasks.deliver(ana, [id])
    later = store.tasks.reschedule(ana, id, datetime(2026, 5, 9, 9, 0, tzinfo=zone))
    assert (later.told_at, later.due_at and later.due_at.isoformat()) == (None, "2026-05-09T09:00:00-07:00")
    assert store.tasks.due(ana, "t1", NOON + timedelta(hours=27)) == []
    assert store.tasks.due(ana, "t1", NOON + timedelta(hours=29)) == [later]
    assert store.tasks.reschedule(ana, id, None).due_at is None
    assert store.tasks.due(ana, "t1", NOON + timedelta(days=99)) == []
    with pytest.raises(UsageError, match="due_at has no time zone"):
        store.tasks.reschedule(ana, id, NOON.replace(tzinfo=None))


def test_one_thread_gives_notice_and_another_does_not(store: MemoryStore, ana: Identity) -> None:
    task = store.tasks.create(ana, "remind me", due_at=NOON)
    assert store.tasks.claim(ana, "t1", NOON) == [task]
    assert store.tasks.claim(ana, "t2", NOON) == []
    assert store.tasks.claim(ana, "t1", NOON) == [task], "a run that is tried again gives it again"
    store.tasks.confirm(ana, "t1", [task.id])
    later = NOON + timedelta(days=9)
    assert store.tasks.due(ana, "t2", later) == store.tasks.claim(ana, "t2", later) == []
    assert store.tasks.claim(ana, "t1", later) == [task], "not seen in the thread yet"
    store.tasks.deliver(ana, [task.id])
    assert store.tasks.claim(ana, "t1", later) == []


def test_a_thread_that_died_does_not_keep_a_notice(store: MemoryStore, ana: Identity) -> None:
    task = store.tasks.create(ana, "remind me", due_at=NOON)
    assert store.tasks.claim(ana, "t1", NOON) == [task]
    assert store.tasks.claim(ana, "t2", NOON + timedelta(minutes=9)) == []
    assert store.tasks.claim(ana, "t2", NOON + timedelta(minutes=10)) == [task]
    store.tasks.confirm(ana, "t1", [task.id])  # too late: it is no longer its own
    assert store.tasks.claim(ana, "t1", NOON + timedelta(minutes=11)) == []


def test_there_is_nothing_to_deliver_of_a_task_that_neither_ended_nor_is_ever_due(
    store: MemoryStore, ana: Identity
) -> None:
    ended = store.tasks.create(ana, "ended").id
    store.tasks.finish(ana, ended, "ok")
    open_ = store.tasks.create(ana, "open").id
    with pytest.raises(UsageError, match="has not ended"):
        store.tasks.deliver(ana, [ended, open_])
    assert [task.told_at for task in store.tasks.of(ana)] == [None, None]
    store.tasks.cancel(ana, open_)
    with pytest.raises(Conflict, match="cancelled"):
        store.tasks.deliver(ana, [open_])


# --- rings


def test_a_due_task_rings_once_for_its_user_alone(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    due = store.tasks.create(ana, "remind me", due_at=NOON)
    for left in (
        store.tasks.create(ana, "later", due_at=NOON + timedelta(seconds=1)),
        store.tasks.finish(ana, store.tasks.create(ana, "done", due_at=NOON).id),
        store.tasks.cancel(ana, store.tasks.create(ana, "off", due_at=NOON).id),
    ):
        assert left.told_at is None
    told = store.tasks.create(ana, "told", due_at=NOON)
    store.tasks.deliver(ana, [told.id])
    assert (store.tasks.ring(NOON), store.tasks.ring(NOON)) == (1, 0)
    assert [(event.kind, event.record_id, event.revision) for event in store.events(ana)] == [
        ("task.due", due.id, None)
    ]
    assert (store.events(ben), store.events(stranger)) == ([], [])
    again = store.tasks.reschedule(ana, due.id, NOON + timedelta(hours=1))
    assert store.tasks.ring(NOON + timedelta(hours=2), limit=1) == 1
    assert store.tasks.due(ana, "t1", NOON + timedelta(hours=2))[0] == again, "notice is given all the same"


def test_the_end_of_background_work_is_an_event(store: MemoryStore, ana: Identity) -> None:
    id = store.tasks.create(ana, "build").id
    store.tasks.finish(ana, id, "built")
    store.tasks.finish(ana, store.tasks.create(ana, "todo").id)
    assert [(event.kind, event.record_id) for event in store.events(ana)] == [("task.ended", id)]


# --- whose they are, and what they need


def test_only_its_user_sees_and_moves_a_task(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    task = store.tasks.create(ana, "mine", due_at=NOON)
    for other in (ben, stranger):
        assert store.tasks.of(other) == []
        assert store.tasks.due(other, None, NOON) == store.tasks.claim(other, "t9", NOON) == []
        store.tasks.confirm(other, "t9", [task.id])
        for move in MOVES.values():
            with pytest.raises(UsageError, match="no task"):
                move(store, other, task.id)
        with pytest.raises(UsageError, match="no task"):
            store.tasks.deliver(other, [task.id])
    assert store.tasks.of(ana) == [task]


def test_a_task_in_another_users_thread_is_refused(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.transcripts.bind(ana, "t1")
    with pytest.raises(AccessDenied):
        store.tasks.create(ben, "spam", thread_id="t1")
    assert store.tasks.of(ben) == []


def test_a_task_needs_a_text_and_an_aware_time(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="text"):
        store.tasks.create(ana, " ")
    with pytest.raises(UsageError, match="due_at has no time zone"):
        store.tasks.create(ana, "check", due_at=NOON.replace(tzinfo=None))
    assert store.tasks.of(ana) == []


# --- erasure


def test_a_task_goes_with_the_message_that_asked_for_it(store: MemoryStore, ana: Identity) -> None:
    said = [
        Evidence(thread_id="t1", message_id=id, role="user", text=f"remind me {id}", at=NOON, source="user")
        for id in ("m1", "m2")
    ]
    store.transcripts.append(ana, said)
    gone = store.tasks.create(ana, "call Xylophon", said_in="t1", message_ids=["m1"])
    stays = store.tasks.create(ana, "call Ben", said_in="t1", message_ids=["m2"])
    elsewhere = store.tasks.create(ana, "call Cleo", said_in="t2", message_ids=["m1"])
    (record,) = keep(store, ana, learnt("Xylophon is a friend", provenance=said_by("ana", "t1", "m1")))
    selection = Selection(record_ids=(record.id,))
    counted = store.erase(ana, selection, reason="asked to", with_source=True, dry_run=True)
    assert store.tasks.of(ana) == [elsewhere, stays, gone]
    erasure = store.erase(ana, selection, reason="asked to", with_source=True)
    assert counted.erased["tasks"] == erasure.erased["tasks"] == 1
    assert store.tasks.of(ana) == [elsewhere, stays]
    assert store.transcripts.erase_thread(ana, "t1", reason="asked to")["tasks"] == 1
    assert store.tasks.of(ana) == [elsewhere]
