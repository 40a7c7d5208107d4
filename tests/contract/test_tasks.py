"""What every backend's task repository promises."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from everthread import Identity
from everthread.errors import AccessDenied, Conflict, UsageError
from everthread.stores import MemoryStore
from everthread.stores.contract import Task

NOON = datetime(2026, 5, 8, 12, 0, 0, 5, tzinfo=UTC)


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
    assert store.tasks.list(ana) == [newer, task]


def test_the_same_key_returns_the_task_that_exists(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    first = store.tasks.create(ana, "check", key="k")
    started = store.tasks.start(ana, first.id)
    assert store.tasks.create(ana, "check again", key="k") == started
    assert store.tasks.create(ben, "check", key="k").id != first.id
    assert store.tasks.list(ana) == [started]


def test_a_task_moves_through_its_states(store: MemoryStore, ana: Identity) -> None:
    id = store.tasks.create(ana, "build").id
    assert store.tasks.start(ana, id).status == "running"
    ended = store.tasks.finish(ana, id, "built\x00 \ud800")
    assert (ended.status, ended.result) == ("completed", "built\x00 \ud800")
    store.tasks.deliver(ana, [id])
    (delivered,) = store.tasks.list(ana)
    assert delivered == ended.model_copy(update={"status": "delivered"})


def test_a_task_can_fail_without_having_been_started(store: MemoryStore, ana: Identity) -> None:
    ended = store.tasks.finish(ana, store.tasks.create(ana, "build").id, "no space", failed=True)
    assert (ended.status, ended.result) == ("failed", "no space")


Move = Callable[[MemoryStore, Identity, str], object]
START: Move = lambda store, who, id: store.tasks.start(who, id)  # noqa: E731
FINISH: Move = lambda store, who, id: store.tasks.finish(who, id, "done")  # noqa: E731
CANCEL: Move = lambda store, who, id: store.tasks.cancel(who, id)  # noqa: E731
DELIVER: Move = lambda store, who, id: store.tasks.deliver(who, [id])  # noqa: E731


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ([START], START),
        ([FINISH], START),
        ([FINISH], FINISH),
        ([FINISH], CANCEL),
        ([CANCEL], START),
        ([CANCEL], FINISH),
        ([CANCEL], CANCEL),
        ([CANCEL], DELIVER),
        ([FINISH, DELIVER], START),
        ([FINISH, DELIVER], FINISH),
        ([FINISH, DELIVER], CANCEL),
    ],
)
def test_a_transition_that_is_not_named_is_a_conflict(
    store: MemoryStore, ana: Identity, path: list[Move], refused: Move
) -> None:
    id = store.tasks.create(ana, "build").id
    for move in path:
        move(store, ana, id)
    before = store.tasks.list(ana)
    with pytest.raises(Conflict, match=f"task {id} is {before[0].status} and cannot become") as conflict:
        refused(store, ana, id)
    assert conflict.value.winner == before[0].status
    assert store.tasks.list(ana) == before


def test_a_due_task_is_noticed_in_its_thread_and_one_without_a_thread_in_any(store: MemoryStore, ana: Identity) -> None:
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


def test_notice_is_given_once(store: MemoryStore, ana: Identity) -> None:
    id = store.tasks.create(ana, "remind me", due_at=NOON).id
    store.tasks.deliver(ana, [id])
    store.tasks.deliver(ana, [id])
    assert store.tasks.due(ana, "t1", NOON) == []


def test_there_is_nothing_to_deliver_of_a_task_that_neither_ended_nor_is_ever_due(
    store: MemoryStore, ana: Identity
) -> None:
    ended = store.tasks.create(ana, "ended").id
    store.tasks.finish(ana, ended, "ok")
    open_ = store.tasks.create(ana, "open").id
    with pytest.raises(UsageError, match="has not ended"):
        store.tasks.deliver(ana, [ended, open_])
    assert [task.status for task in store.tasks.list(ana)] == ["scheduled", "completed"]


def test_only_its_user_sees_and_moves_a_task(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    task = store.tasks.create(ana, "mine", due_at=NOON)
    for other in (ben, stranger):
        assert store.tasks.list(other) == []
        assert store.tasks.due(other, None, NOON) == []
        for move in (START, FINISH, CANCEL, DELIVER):
            with pytest.raises(UsageError, match="no task"):
                move(store, other, task.id)
    assert store.tasks.list(ana) == [task]


def test_a_task_in_another_users_thread_is_refused(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.transcripts.bind(ana, "t1")
    with pytest.raises(AccessDenied):
        store.tasks.create(ben, "spam", thread_id="t1")
    assert store.tasks.list(ben) == []


def test_a_task_needs_a_text_and_an_aware_time(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="text"):
        store.tasks.create(ana, " ")
    with pytest.raises(UsageError, match="due_at has no time zone"):
        store.tasks.create(ana, "check", due_at=NOON.replace(tzinfo=None))
    assert store.tasks.list(ana) == []
