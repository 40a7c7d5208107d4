"""Users who talk and are remembered, so that memory grows as it does in life."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from zlib import crc32

from benchmarks.meter import Meter
from benchmarks.stores import DIMS, Vectors, made

DRAWN = made(4711, 20_000)[1]
RECORDS = 200
"""Records a user."""
TENANTS = 10


class Life:
    """Users who talk and are remembered, in a store of their own."""

    def __init__(self, url: str, users: int, **options: Any) -> None:
        from everthread.stores import PostgresStore
        from everthread.stores.embedding import StaticEmbedder, Tokens

        class Drawn(StaticEmbedder):
            """Some vector for each text, always the same: which one costs the store nothing, nor does making it."""

            id, dims = "drawn/256", DIMS

            def embed_documents(self, texts: Sequence[str]) -> Vectors:
                """One unit row a text."""
                return DRAWN[[crc32(text.encode()) % len(DRAWN) for text in texts]]

            def embed_query(self, text: str) -> Vectors:
                """One unit vector."""
                return DRAWN[crc32(text.encode()) % len(DRAWN)]

            def embed_tokens(self, text: str) -> Tokens:
                """The rows of a query."""
                return Tokens([(0, len(text))], self.embed_query(text)[None])

        self.users = users
        self.store = PostgresStore(url, embedder=Drawn(), **options)

    def who(self, user: int) -> Any:
        """A user, in one of the tenants."""
        from everthread import Identity

        return Identity(tenant=f"tenant-{user % TENANTS}", user=f"user-{user}")

    def origin(self, user: int, number: int) -> Any:
        """Where a record comes from."""
        from everthread.stores.record import Provenance, now_utc

        return Provenance(
            source="user", thread_id=f"thread-{user}", message_ids=(f"q{number}",), actor=f"user-{user}",
            observed_at=now_utc(), extracted_by="rules/1",
        )  # fmt: skip

    def record(self, user: int, number: int, text: str) -> Any:
        """A record of theirs."""
        from everthread import Record, Scope

        return Record(
            statement=text, subject="user", predicate=f"says {number}", value=str(number),
            scope=Scope(owner="user", owner_id=f"user-{user}"), provenance=self.origin(user, number),
            authority="user_explicit", write_reason="the user said so",
        )  # fmt: skip

    def commit(self, user: int, number: int, text: str) -> Any:
        """One record in one commit."""
        from everthread.stores.record import Change

        change = Change(action="create", record=self.record(user, number, text), rule="new", reason="nothing like it")
        return self.store.commit(self.who(user), [change], key=f"{user}/{number}")

    def supersede(self, user: int, number: int, old: Any, text: str) -> Any:
        """A newer record in the place of one."""
        from everthread.stores.record import Change

        change = Change(
            action="supersede", record=self.record(user, number, text), target=old.id, expected=old.revision,
            rule="newer", reason="the user said otherwise",
        )  # fmt: skip
        return self.store.commit(self.who(user), [change], key=f"{user}/{number}")

    def append(self, user: int, number: int, texts: Sequence[str]) -> Any:
        """One exchange: what was asked, and the answer."""
        from everthread.stores.record import Evidence, now_utc

        said = [
            Evidence(
                thread_id=f"thread-{user}", message_id=f"{kind}{number}", role=role, speaker=speaker, text=text,
                at=now_utc(), source=role,
            )
            for kind, role, speaker, text in (("q", "user", f"user-{user}", texts[0]), ("a", "assistant", "", texts[1]))
        ]  # fmt: skip
        return self.store.transcripts.append(self.who(user), said)

    def recall(self, user: int, text: str) -> Any:
        """A search of a user's memory."""
        return self.store.recall(self.who(user), text, limit=10)


def grown(life: Life, meter: Meter, do: Callable[[int, int], Any], measured_last: int) -> dict[str, Any]:
    """Let `do` be done for each user and number, in turns; what the last ones cost each."""
    works = [(user, number) for number in range(RECORDS) for user in range(life.users)]
    first = len(works) - measured_last
    for user, number in works[:first]:
        do(user, number)
    return meter.spent([lambda user=user, number=number: do(user, number) for user, number in works[first:]])  # type: ignore[misc]


@contextmanager
def living(url: str, users: int, **options: Any) -> Iterator[Life]:
    """A store of these users, closed at the end: the server then knows all that was done."""
    life = Life(url, users, **options)
    try:
        yield life
    finally:
        life.store.close()


def settle(life: Life) -> None:
    """Let the store's idle sessions tell the server what they have counted."""
    for session in list(life.store._database._pool._pool):  # type: ignore[attr-defined]
        session.execute("SELECT pg_stat_force_next_flush()")


def settled(life: Life, meter: Meter) -> dict[str, int]:
    """What was changed, once all is told."""
    settle(life)
    return meter.changed()
