"""Values that are larger than what a socket takes at once."""

from support.postgres import Postgres
from support.records import NOON
from support.threads import echo_graph, noise, on, said, say

from everthread import Evidence, Identity
from everthread.stores import open_checkpointer, open_store

LARGE = "large " * 1_500_000
ANA = Identity(tenant="acme", user="ana")


def test_a_large_message_item_and_artifact_are_written_whole(postgres: Postgres) -> None:
    evidence = Evidence(thread_id="t1", message_id="m1", role="user", speaker="ana", text=LARGE, at=NOON, source="user")
    with open_store(f"{postgres.url}{'&' if '?' in postgres.url else '?'}partitions=1", embedder="none") as store:
        store.transcripts.append(ANA, [evidence])
        store.put(("notes",), "large", {"text": LARGE})
        artifact = store.artifacts.put(ANA, "tool_result", LARGE, thread_id="t1")
        assert [each.text for each in store.transcripts.read(ANA, "t1")] == [LARGE]
        item = store.get(("notes",), "large")
        assert item is not None and item.value == {"text": LARGE}
        found = store.artifacts.get(ANA, artifact)
        assert found is not None and found.text == LARGE


def test_a_large_message_of_a_thread_is_saved_whole(postgres: Postgres) -> None:
    told = noise(8_000_000)
    with open_checkpointer(postgres.url) as saver:
        graph = echo_graph().compile(checkpointer=saver)
        graph.invoke(say(told), on("t1"))
        assert said(graph, "t1") == [told, f"re: {told}"]
