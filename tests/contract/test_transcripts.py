"""What every backend's transcripts promise."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from everthread import Evidence, Identity
from everthread.errors import AccessDenied, UsageError
from everthread.stores import MemoryStore
from everthread.stores.contract import ThreadInfo

NOON = datetime(2026, 5, 8, 12, 0, 0, 123456, tzinfo=UTC)


def said(thread_id: str, message_id: str, text: str = "hello", at: datetime = NOON) -> Evidence:
    return Evidence(thread_id=thread_id, message_id=message_id, role="user", text=text, at=at, source="user")


def test_a_message_comes_back_whole(store: MemoryStore, ana: Identity) -> None:
    message = Evidence(
        thread_id="t1",
        message_id="m1",
        role="tool",
        speaker="browser",
        text="72 °F in Brno",
        at=datetime(2023, 5, 8, 23, 56, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        source="web",
        payload={"tool_call_id": "c1", "parts": [{"n": 1.5, "ok": None}, "文"], "big": 2**60},
    )
    store.transcripts.append(ana, [message])
    (found,) = store.transcripts.read(ana, "t1")
    assert found == message
    assert found.at.isoformat() == "2023-05-08T23:56:00.000001+05:45"


@pytest.mark.parametrize(
    "at", [datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), datetime.max.replace(tzinfo=UTC)]
)
def test_the_ends_of_the_calendar_are_kept(store: MemoryStore, ana: Identity, at: datetime) -> None:
    store.transcripts.append(ana, [said("t1", "m1", at=at)])
    assert [found.at for found in store.transcripts.read(ana, "t1")] == [at]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\x00b\x00",
        "lone \ud800 surrogate",
        "two halves \ud83d\ude00 stay two",
        "emoji 👩‍👩‍👧 and שלום ‏עולם‎",
        "你好，世界",
    ],
)
def test_no_character_is_lost(store: MemoryStore, ana: Identity, text: str) -> None:
    message = Evidence(
        thread_id="t1",
        message_id="m1",
        role="user",
        speaker=text or None,
        text=text,
        at=NOON,
        source="user",
        payload={"content": text, text: [text]},
    )
    store.transcripts.append(ana, [message])
    assert store.transcripts.read(ana, "t1") == [message]


def test_a_message_of_ten_megabytes_is_kept_whole(store: MemoryStore, ana: Identity) -> None:
    message = said("t1", "m1", "0123456789" * 1_000_000)
    assert store.transcripts.append(ana, [message]) == 1
    assert store.transcripts.read(ana, "t1") == [message]


def test_a_message_is_kept_once(store: MemoryStore, ana: Identity) -> None:
    first = [said("t1", "m1", "one"), said("t1", "m2", "two")]
    assert store.transcripts.append(ana, first) == 2
    assert (
        store.transcripts.append(ana, [said("t1", "m2", "changed"), said("t1", "m3"), said("t1", "m3", "again")]) == 1
    )
    assert store.transcripts.read(ana, "t1") == [*first, said("t1", "m3")]


def test_the_same_message_id_in_two_threads_is_two_messages(store: MemoryStore, ana: Identity) -> None:
    assert store.transcripts.append(ana, [said("t1", "m1"), said("t2", "m1")]) == 2
    assert store.transcripts.read(ana, "t2") == [said("t2", "m1")]


def test_messages_are_read_in_the_order_of_appending(store: MemoryStore, ana: Identity) -> None:
    messages = [said("t1", id, at=NOON - timedelta(days=n)) for n, id in enumerate(["z", "b", "a", "y"])]
    store.transcripts.append(ana, messages[:2])
    store.transcripts.append(ana, [said("t2", "other"), *messages[2:]])
    assert store.transcripts.read(ana, "t1") == messages
    assert store.transcripts.read(ana, "t1", after="b") == messages[2:]
    assert store.transcripts.read(ana, "t1", after="z", limit=2) == messages[1:3]
    assert store.transcripts.read(ana, "t1", limit=1) == messages[:1]
    assert store.transcripts.read(ana, "t1", after="y") == []


def test_reading_after_a_message_that_never_was_is_a_usage_error(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("t1", "m1")])
    with pytest.raises(UsageError, match="no message 'm9'"):
        store.transcripts.read(ana, "t1", after="m9")


def test_appending_nothing_adds_nothing(store: MemoryStore, ana: Identity) -> None:
    assert store.transcripts.append(ana, []) == 0
    assert store.transcripts.threads(ana) == []


def test_one_refused_thread_refuses_the_whole_append(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    store.transcripts.bind(ben, "bens")
    with pytest.raises(AccessDenied):
        store.transcripts.append(ana, [said("t1", "m1"), said("bens", "m2")])
    assert store.transcripts.read(ana, "t1") == []
    assert store.transcripts.read(ben, "bens") == []


def test_a_payload_that_is_not_json_is_refused_and_nothing_is_kept(store: MemoryStore, ana: Identity) -> None:
    odd = said("t1", "m2").model_copy(update={"payload": {"when": NOON}})
    with pytest.raises(UsageError, match="payload of message 'm2' is not plain JSON"):
        store.transcripts.append(ana, [said("t1", "m1"), odd])
    assert store.transcripts.read(ana, "t1") == []


def test_another_users_thread_is_refused_in_the_same_words_for_everybody(
    store: MemoryStore, ana: Identity, ben: Identity, stranger: Identity
) -> None:
    store.transcripts.append(ana, [said("t1", "m1")])
    words = set()
    for other in (ben, stranger):
        for refused in (
            lambda other=other: store.transcripts.bind(other, "t1"),
            lambda other=other: store.transcripts.append(other, [said("t1", "m1")]),
            lambda other=other: store.transcripts.append(other, [said("t1", "new")]),
            lambda other=other: store.transcripts.read(other, "t1"),
            lambda other=other: store.transcripts.set_memory(other, "t1", "off"),
            lambda other=other: store.transcripts.memory_of(other, "t1"),
            lambda other=other: store.transcripts.erase(other, "t1", reason="mine now"),
            lambda other=other: store.transcripts.erase_messages(other, "t1", ["m1"]),
        ):
            with pytest.raises(AccessDenied) as denied:
                refused()
            words.add(str(denied.value))
        assert store.transcripts.threads(other) == []
    assert words == {"thread 't1' is not this user's; thread_config(identity, name) makes an id that is"}
    assert store.transcripts.read(ana, "t1") == [said("t1", "m1")]


def test_a_thread_that_nobody_has_used_is_empty_and_stays_free(
    store: MemoryStore, ana: Identity, ben: Identity
) -> None:
    assert store.transcripts.read(ana, "t1") == []
    assert store.transcripts.memory_of(ana, "t1") == "on"
    assert store.transcripts.erase(ana, "t1", reason="tidy") == 0
    assert store.transcripts.erase_messages(ana, "t1", ["m1"]) == 0
    store.transcripts.bind(ben, "t1")
    assert [info.thread_id for info in store.transcripts.threads(ben)] == ["t1"]


def test_the_same_user_is_let_in_whatever_else_the_identity_says(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("t1", "m1")])
    elsewhere = Identity(tenant="acme", user="ana", project="other", agent="helper", roles=frozenset({"admin"}))
    assert store.transcripts.read(elsewhere, "t1") == [said("t1", "m1")]


@pytest.mark.parametrize("thread_id", ["", "  ", "a\x00b", "\ud800"])
def test_a_thread_id_that_cannot_be_one_is_refused(store: MemoryStore, ana: Identity, thread_id: str) -> None:
    with pytest.raises(UsageError):
        store.transcripts.bind(ana, thread_id)


def test_threads_are_listed_the_most_recent_first(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.bind(ana, "old", name="Old plans")
    store.transcripts.append(ana, [said("old", "m1"), said("old", "m2", at=NOON - timedelta(hours=1))])
    store.transcripts.append(ana, [said("new", "m1", at=NOON + timedelta(days=1))])
    store.transcripts.set_memory(ana, "new", "read")
    assert store.transcripts.threads(ana) == [
        ThreadInfo(
            thread_id="new",
            name=None,
            messages=1,
            first_at=NOON + timedelta(days=1),
            last_at=NOON + timedelta(days=1),
            memory="read",
        ),
        ThreadInfo(thread_id="old", name="Old plans", messages=2, first_at=NOON - timedelta(hours=1), last_at=NOON),
    ]


def test_a_bound_thread_without_messages_is_listed(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.bind(ana, "t1", name="first")
    store.transcripts.bind(ana, "t1")
    store.transcripts.bind(ana, "t1", name="renamed")
    assert store.transcripts.threads(ana) == [
        ThreadInfo(thread_id="t1", name="renamed", messages=0, first_at=None, last_at=None)
    ]


def test_each_thread_has_its_own_memory_mode(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.set_memory(ana, "t1", "off")
    store.transcripts.set_memory(ana, "t2", "read")
    store.transcripts.set_memory(ana, "t2", "on")
    assert [store.transcripts.memory_of(ana, id) for id in ("t1", "t2", "t3")] == ["off", "on", "on"]
    with pytest.raises(UsageError, match="'on', 'read' or 'off'"):
        store.transcripts.set_memory(ana, "t1", "maybe")  # type: ignore[arg-type]


def test_an_erased_message_is_gone_and_does_not_come_back(store: MemoryStore, ana: Identity) -> None:
    messages = [said("t1", id, f"text of {id}") for id in ("m1", "m2", "m3")]
    store.transcripts.append(ana, messages)
    assert store.transcripts.erase_messages(ana, "t1", ["m2", "m2", "never"]) == 1
    assert store.transcripts.erase_messages(ana, "t1", ["m2"]) == 0
    assert store.transcripts.append(ana, messages) == 0
    assert store.transcripts.read(ana, "t1") == [messages[0], messages[2]]
    assert store.transcripts.read(ana, "t1", after="m2") == [messages[2]]


def test_an_erased_thread_is_gone_with_all_that_it_left(store: MemoryStore, ana: Identity, ben: Identity) -> None:
    messages = [said("t1", "m1"), said("t1", "m2", "world")]
    store.transcripts.append(ana, [*messages, said("t2", "m1")])
    store.transcripts.bind(ana, "t1", name="Secret plans")
    artifact = store.artifacts.put(ana, "summary", "They greeted the world.", thread_id="t1")
    store.tasks.create(ana, "greet again", thread_id="t1")
    elsewhere = store.tasks.create(ana, "something else", thread_id="t2")
    store.inbox.admit(ana, "t1", "m3", "and then")

    assert store.transcripts.erase_thread(ana, "t1", reason="asked to") == {
        "evidence": 2,
        "index": 2,
        "artifacts": 1,
        "tasks": 1,
        "inbox": 1,
    }
    assert store.transcripts.read(ana, "t1") == []
    assert store.artifacts.get(ana, artifact) is None
    assert store.tasks.of(ana) == [elsewhere]
    assert store.inbox.pending(ana, "t1") == []
    assert [info.thread_id for info in store.transcripts.threads(ana)] == ["t2"]
    assert store.transcripts.append(ana, messages) == 0
    assert store.transcripts.erase(ana, "t1", reason="asked to") == 0
    with pytest.raises(AccessDenied):
        store.transcripts.bind(ben, "t1")


def test_an_erased_thread_that_goes_on_is_listed_again_without_its_name(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.bind(ana, "t1", name="Secret plans")
    store.transcripts.append(ana, [said("t1", "m1")])
    assert store.transcripts.erase(ana, "t1", reason="asked to") == 1
    store.transcripts.append(ana, [said("t1", "m2")])
    assert store.transcripts.threads(ana) == [
        ThreadInfo(thread_id="t1", name=None, messages=1, first_at=NOON, last_at=NOON)
    ]


def test_erasing_needs_a_reason(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("t1", "m1")])
    with pytest.raises(UsageError, match="reason"):
        store.transcripts.erase(ana, "t1", reason=" ")
    assert store.transcripts.read(ana, "t1") == [said("t1", "m1")]


def test_why_a_thread_does_not_use_memory_is_kept_until_the_user_chooses(store: MemoryStore, ana: Identity) -> None:
    def state() -> list[tuple[str, str | None]]:
        return [(info.memory, info.memory_because) for info in store.transcripts.threads(ana)]

    store.transcripts.set_memory(ana, "t1", "read", because="it took in a page")
    assert state() == [("read", "it took in a page")]
    store.transcripts.set_memory(ana, "t1", "on")
    assert state() == [("on", None)]


def test_messages_are_read_by_their_ids_in_the_order_they_were_said(store: MemoryStore, ana: Identity) -> None:
    ben = ana.model_copy(update={"user": "ben"})
    messages = [said("t1", f"m{n}", f"line {n}") for n in range(5)]
    store.transcripts.append(ana, [*messages, said("t2", "m1", "elsewhere")])
    store.transcripts.erase_messages(ana, "t1", ["m2"])
    read = store.transcripts.read
    assert read(ana, "t1", ids=["m3", "m1", "m2", "m9", "m1"]) == [messages[1], messages[3]]
    assert read(ana, "t1", ids=["m3", "m1"], after="m1") == [messages[3]]
    assert read(ana, "t1", ids={"m3", "m1"}, limit=1) == [messages[1]]
    assert read(ana, "t1", ids=[]) == []
    with pytest.raises(AccessDenied):
        read(ben, "t1", ids=["m1"])
