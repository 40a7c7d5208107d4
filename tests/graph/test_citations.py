"""What an answer cites counts as used, once; and nobody but the model sees the markers (R208, R211)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from support.models import FakeModel
from support.records import keep, learnt

from everthread import Identity, MemoryContext
from everthread.graphs import MemoryMiddleware, create_memory_agent, gate
from everthread.nodes import Retrieve, memory_block, note_answer, runtime_for
from everthread.nodes.block import CITING
from everthread.nodes.reason.citing import Cited, unmarked
from everthread.nodes.reason.streams import UnmarkedStream, unmarked_events
from everthread.stores import MemoryStore, open_checkpointer, open_store
from everthread.stores.record import new_id

Home = tuple[MemoryStore, Any]
TEA, COAT = "Ana prefers tea over coffee.", "安娜的大衣是红色的。"
ASKED = "Does Ana prefer tea or coffee? 安娜的大衣是什么颜色？"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def ask(text: str = ASKED) -> Any:
    return {"messages": [HumanMessage(text)]}


def agent_of(kind: str, home: Home, model: Any, **options: Any) -> Any:
    store, saver = home
    if kind == "graph":
        return create_memory_agent(model, recall="automatic", **options).compile(checkpointer=saver, store=store)
    middleware = MemoryMiddleware(recall="automatic", **options)
    return gate(create_agent(model, middleware=[middleware], checkpointer=saver, store=store))


def known(store: MemoryStore, identity: Identity) -> dict[str, str]:
    """id by statement, of the two things that are known."""
    return {record.statement: record.id for record in keep(store, identity, learnt(TEA), learnt(COAT))}


def used(store: MemoryStore, identity: Identity) -> dict[str, int]:
    return {record.statement: record.usage_count for record in store.records(identity)}


def marker(model: FakeModel, statement: str) -> str:
    """The marker of a statement in the last request."""
    lines = model.prompts[-1][0].text.split("\n")
    return next(line for line in lines if statement in line).split("] ")[0].removeprefix("- ") + "]"


class Citing(FakeModel):
    """Answers with markers of what it is shown: `{tea}` and `{coat}` stand for them."""

    def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
        result = super()._generate(messages, *args, **options)
        (generation,) = result.generations
        message = generation.message
        for name, statement in {"tea": TEA, "coat": COAT}.items():
            if isinstance(message.content, str) and f"{{{name}}}" in message.content:
                message.content = message.content.replace(f"{{{name}}}", marker(self, statement))
        generation.text = str(message.text)
        return result


class Streaming(FakeModel):
    """Answers in pieces of three characters."""

    def _stream(self, messages: Any, *args: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        text = str(self._generate(messages).generations[0].message.text)
        for start in range(0, len(text), 3):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text[start : start + 3]))


KINDS = pytest.mark.parametrize("kind", ["graph", "middleware"])


@KINDS
def test_what_is_cited_counts_and_the_marker_is_in_no_message(home: Home, ana: Identity, kind: str) -> None:
    store, _ = home
    ids = known(store, ana)
    model = Citing(replies=["You prefer tea {tea}, I think [m9]. Red{coat}。"])
    agent = agent_of(kind, home, model)
    state = agent.invoke(ask(), at("a"), context=ana)
    assert state["messages"][-1].text == "You prefer tea, I think. Red。"
    assert used(store, ana) == {TEA: 1, COAT: 1}
    assert CITING in model.prompts[0][0].text
    (entry,) = store.audit(ana, action="cite")
    assert sorted(entry.detail["records"]) == sorted([id, 1] for id in ids.values())
    assert "[m" not in str([each.values["messages"] for each in agent.get_state_history(at("a"))])
    assert "[m" not in str(store.transcripts.read(ana, "a"))


@KINDS
async def test_the_same_holds_under_asyncio(home: Home, ana: Identity, kind: str) -> None:
    store, _ = home
    known(store, ana)
    state = await agent_of(kind, home, Citing(replies=["茶{tea}。"])).ainvoke(ask(), at("a"), context=ana)
    assert (state["messages"][-1].text, used(store, ana)) == ("茶。", {TEA: 1, COAT: 0})


def test_an_unknown_marker_and_a_foreign_id_are_ignored(home: Home, ana: Identity, ben: Identity) -> None:
    store, _ = home
    known(store, ana)
    (other,) = keep(store, ben, learnt("Ben prefers mate.", "user", "ben"))
    (unseen,) = keep(store, ana, learnt("The quarterly figures are due in June."))
    agent_of("graph", home, Citing(replies=[f"Tea [m7], [m0], {other.id}, {unseen.id}."])).invoke(
        ask(), at("a"), context=ana
    )
    assert (set(used(store, ana).values()), set(used(store, ben).values())) == ({0}, {0})


def test_an_answer_counts_once_however_often_it_is_made_again(home: Home, ana: Identity) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of("graph", home, Citing(replies=["Tea {tea}.", "Tea {tea}, red {coat}."]))
    agent.invoke(ask(), at("a"), context=ana)
    before = next(each for each in agent.get_state_history(at("a")) if each.next == ("reason",)).config
    for _ in range(2):
        agent.invoke(None, before, context=ana)
    assert used(store, ana) == {TEA: 1, COAT: 1}
    agent.invoke(ask(), at("a"), context=ana)
    assert used(store, ana) == {TEA: 2, COAT: 2}


def test_several_replies_of_one_turn_count_once(home: Home, ana: Identity) -> None:
    store, saver = home
    known(store, ana)
    call = AIMessage(
        "Tea {tea}, let me look.", tool_calls=[{"id": "c1", "name": "memory_search", "args": {"query": TEA}}]
    )
    model = Citing(replies=[call, "Tea {tea}, as I found."])
    agent = create_memory_agent(model).compile(checkpointer=saver, store=store)
    said = [message.text for message in agent.invoke(ask(), at("a"), context=ana)["messages"] if message.type == "ai"]
    assert said == ["Tea, let me look.", "Tea, as I found."]
    assert used(store, ana)[TEA] == 1


def test_a_memory_has_one_number_in_the_whole_request(home: Home, ana: Identity) -> None:
    store, saver = home
    known(store, ana)
    (late,) = keep(store, ana, learnt("Ana's greyhound is called Momo."))
    call = AIMessage(
        "", tool_calls=[{"id": "c1", "name": "memory_get", "args": {"ids": [late.id, *used_ids(store, ana)]}}]
    )
    model = FakeModel(replies=[call, "Momo [m3]."])
    agent = create_memory_agent(model, retrieve=Retrieve(limit=2)).compile(checkpointer=saver, store=store)
    agent.invoke(ask(), at("a"), context=ana)
    system, result = model.prompts[-1][0].text, model.prompts[-1][-1].text
    assert (
        f"- [m3] [user:ana | fact | from user ana, thread t1 | 2026-05-08 | stated] {late.statement}"
        in result.replace("&#x27;", "'")
    )
    for statement in (TEA, COAT):
        lines = [line for text in (system, result) for line in text.split("\n") if statement in line]
        assert len(lines) == 2 and lines[0] == lines[1]
    assert store.records(ana, ids=[late.id])[0].usage_count == 1


def used_ids(store: MemoryStore, identity: Identity) -> list[str]:
    return [record.id for record in store.records(identity) if record.statement in (TEA, COAT)]


@pytest.mark.parametrize("said", ["It rained {coat}.", "当时下雨{coat}。"])
def test_what_does_not_apply_now_is_noted_and_stays_as_it_is(home: Home, ana: Identity, said: str) -> None:
    store, _ = home
    ids = known(store, ana)
    noted = said.replace("{coat}", "[m1: not applicable][m2：不适用]")
    agent = agent_of("graph", home, FakeModel(replies=[noted]))
    events = list(agent.stream(ask(), at("a"), context=ana, stream_mode="custom"))
    (answered,) = [event for event in events if event["event"] == "answered"]
    assert (answered["cited"], sorted(answered["not_applicable"])) == ([], sorted(ids.values()))
    (entry,) = store.audit(ana, action="cite")
    assert entry.detail["records"] == [] and sorted(entry.detail["not_applicable"]) == sorted(
        [id, 1] for id in ids.values()
    )
    assert used(store, ana) == {TEA: 0, COAT: 0}
    assert {record.status for record in store.records(ana)} == {"active"}
    assert store.audit(ana, record_id=ids[COAT], action="cite") == [entry]


@pytest.mark.parametrize("memory", ["read", "off"])
def test_a_run_that_learns_nothing_counts_nothing(home: Home, ana: Identity, memory: Any) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of("graph", home, FakeModel(replies=["Tea [m1][m2]."]))
    state = agent.invoke(ask(), at("a"), context=MemoryContext(identity=ana, memory=memory))
    assert (used(store, ana), store.audit(ana, action="cite")) == ({TEA: 0, COAT: 0}, [])
    # without memory in the request nothing of it is a marker
    assert state["messages"][-1].text == ("Tea." if memory == "read" else "Tea [m1][m2].")


@KINDS
def test_without_markers_the_request_asks_for_none_and_the_answer_stays(home: Home, ana: Identity, kind: str) -> None:
    store, _ = home
    ids = known(store, ana)
    model = FakeModel(replies=[f"Tea [m1], says {ids[TEA]}."])
    state = agent_of(kind, home, model, markers=False).invoke(ask(), at("a"), context=ana)
    assert "[m" not in model.prompts[0][0].text
    assert state["messages"][-1].text == f"Tea [m1], says {ids[TEA]}."
    assert used(store, ana) == {TEA: 1, COAT: 0}


def test_blocks_of_content_lose_their_markers(home: Home, ana: Identity) -> None:
    store, _ = home
    known(store, ana)
    blocks: Any = [{"type": "text", "text": "Tea [m1]."}, {"type": "text", "text": "`[m1]` is code."}]
    state = agent_of("graph", home, FakeModel(replies=[AIMessage(blocks)])).invoke(ask(), at("a"), context=ana)
    assert state["messages"][-1].content == [{"type": "text", "text": "Tea."}, blocks[1]]


@KINDS
def test_values_and_updates_of_a_stream_are_without_markers(home: Home, ana: Identity, kind: str) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of(kind, home, FakeModel(replies=["Tea [m1]."]))
    parts = [part for _, part in agent.stream(ask(), at("a"), context=ana, stream_mode=["values", "updates"])]
    assert "Tea." in str(parts) and "Tea [m1]" not in str(parts)


MODES: dict[str, tuple[dict[str, Any], Any]] = {
    "one mode": ({"stream_mode": "messages"}, lambda part: part),
    "several modes": ({"stream_mode": ["messages", "custom"]}, lambda part: part[1] if part[0] == "messages" else None),
    "subgraphs": ({"stream_mode": "messages", "subgraphs": True}, lambda part: part[1]),
    "all of it": ({"stream_mode": ["messages", "updates"], "subgraphs": True}, lambda part: part[2]),
    "version 2": ({"stream_mode": ["messages"], "version": "v2"}, lambda part: part["data"]),
}


def spoken(parts: Any, payload: Any) -> list[str]:
    """The texts of the replies among the parts of a stream, in the order in which they came."""
    found = [payload(part) for part in parts]
    messages = [each[0] for each in found if isinstance(each, tuple)]
    return [str(message.text) for message in messages if isinstance(message, AIMessage)]


@pytest.mark.parametrize("mode", MODES)
@KINDS
def test_a_reader_sees_no_marker_while_the_model_speaks(home: Home, ana: Identity, kind: str, mode: str) -> None:
    store, _ = home
    known(store, ana)
    options, payload = MODES[mode]
    said = "Tea [m1], I think 【m2】; ([m1]) `row[m1]` **茶**[m2: not applicable]。[m"
    agent = agent_of(kind, home, Streaming(replies=[said]))
    tokens = spoken(agent.stream(ask(), at("a"), context=ana, **options), payload)
    assert (
        "".join(tokens)
        == agent.get_state(at("a")).values["messages"][-1].text
        == ("Tea, I think; `row[m1]` **茶**。[m")
    )
    assert len([token for token in tokens if token]) > 5
    assert sum(used(store, ana).values()) == 2


@KINDS
async def test_the_same_holds_for_an_asynchronous_stream(home: Home, ana: Identity, kind: str) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of(kind, home, Streaming(replies=["Tea [m1], I think [m2]."]))
    parts = [part async for part in agent.astream(ask(), at("a"), context=ana, stream_mode="messages")]
    assert "".join(spoken(parts, lambda part: part)) == "Tea, I think."


@KINDS
def test_a_reply_that_comes_whole_is_without_markers_in_a_stream_of_messages(
    home: Home, ana: Identity, kind: str
) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of(kind, home, FakeModel(replies=["Tea [m1]."]))
    assert spoken(agent.stream(ask(), at("a"), context=ana, stream_mode="messages"), lambda part: part) == ["Tea."]


@KINDS
def test_who_asks_for_no_markers_sees_what_the_model_says(home: Home, ana: Identity, kind: str) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of(kind, home, Streaming(replies=["Tea [m1]."]), markers=False)
    parts = agent.stream(ask(), at("a"), context=ana, stream_mode="messages")
    assert "".join(spoken(parts, lambda part: part)) == "Tea [m1]."


SAID = "Tea [m1], I think 【m2】; `row[m1]` **茶**[m2: not applicable]。[m"
SEEN = "Tea, I think; `row[m1]` **茶**。[m"


@pytest.mark.filterwarnings("ignore:astream_events version='v1' is deprecated")
@pytest.mark.parametrize("version", ["v1", "v2"])
@KINDS
async def test_events_of_the_model_are_without_markers(home: Home, ana: Identity, kind: str, version: Any) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of(kind, home, Streaming(replies=[SAID]))
    events = [event async for event in agent.astream_events(ask(), at("a"), context=ana, version=version)]
    tokens = [str(e["data"]["chunk"].text) for e in events if e["event"] == "on_chat_model_stream"]
    assert "".join(tokens) == SEEN == agent.get_state(at("a")).values["messages"][-1].text
    assert len([token for token in tokens if token]) > 5
    said = [str(e["data"].get("output")) for e in events if e["event"] != "on_chat_model_start"]
    assert SEEN in str(said) and SAID not in str(said)
    (ended,) = [event["data"]["output"] for event in events if event["event"] == "on_chat_model_end"]
    assert (ended.text if version == "v2" else ended["generations"][0][0]["text"]) == SEEN
    assert sum(used(store, ana).values()) == 2


async def test_what_a_reply_ends_with_comes_before_its_end_whether_or_not_its_last_piece_says_so() -> None:
    async def events() -> Any:
        for text in ("Tea [", "m1] [m"):
            yield {"event": "on_chat_model_stream", "data": {"chunk": AIMessageChunk(content=text, id="a")}}
        yield {"event": "on_chat_model_end", "data": {"output": AIMessage("Tea [m1] [m", id="a")}}

    seen = [event async for event in unmarked_events(events())]
    assert [str(event["data"].get("chunk", event["data"].get("output")).text) for event in seen] == [
        "Tea",
        "",
        " [m",
        "Tea [m",
    ]


async def test_who_leaves_the_events_of_a_run_gives_its_thread_back(home: Home, ana: Identity) -> None:
    store, saver = home
    known(store, ana)
    agent = agent_of("graph", home, Streaming(replies=[SAID]))
    events = agent.astream_events(ask(), at("a"), context=ana)
    async for event in events:
        if event["event"] == "on_chat_model_stream":
            break
    await events.aclose()
    async with saver.aturn("a", 0.0):
        pass


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol on Pregel is experimental")
@KINDS
def test_messages_of_version_3_are_without_markers(home: Home, ana: Identity, kind: str) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of(kind, home, Streaming(replies=[SAID]))
    (message,) = agent.stream_events(ask(), at("a"), context=ana, version="v3").messages
    tokens = [str(token) for token in message.text]
    assert ("".join(tokens), message.output.text) == (SEEN, SEEN)
    assert len(tokens) > 5


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol on Pregel is experimental")
async def test_the_same_holds_for_version_3_under_asyncio(home: Home, ana: Identity) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of("graph", home, Streaming(replies=[SAID]))
    run = await agent.astream_events(ask(), at("a"), context=ana, version="v3")
    assert [str((await message.output).text) async for message in run.messages] == [SEEN]


def test_blocks_and_replies_that_come_between_each_other_are_told_apart() -> None:
    def piece(id: str, text: str, index: int, **more: Any) -> Any:
        return AIMessageChunk(content=[{"type": "text", "text": text, "index": index}], id=id, **more), {"n": id}

    stream = UnmarkedStream()
    parts = [
        piece("a", "Tea [", 0),
        piece("b", "Red [m", 0),
        piece("a", "Code `[m1]", 1),
        piece("a", "m1]..", 0),
        piece("b", "2]", 0),
        piece("a", "`", 1),
        (AIMessageChunk(content="", id="a", chunk_position="last"), {"n": "a"}),
    ]
    seen = [each for part in parts for each in stream.of(part)]
    rest = list(stream.end())
    texts = [(metadata["n"], str(message.text)) for message, metadata in (*seen, *rest)]
    assert "".join(text for id, text in texts if id == "b") == "Red"
    assert [text for id, text in texts if id == "a" and text] == ["Tea", "Code ", "..", "`[m1]`"]


def test_a_graph_without_a_gate_is_read_through_unmarked(home: Home, ana: Identity) -> None:
    store, saver = home
    known(store, ana)
    middleware = MemoryMiddleware(recall="automatic")
    model = Streaming(replies=["Tea [m1], I think [m2]."])
    agent: Any = create_agent(model, middleware=[middleware], checkpointer=saver, store=store)
    parts = agent.stream(ask(), at("a"), context=ana, stream_mode="messages")
    assert "".join(unmarked(spoken(parts, lambda part: part))) == "Tea, I think."


def test_a_hosts_own_node_cites_when_it_asks_for_markers(home: Home, ana: Identity) -> None:
    store, _ = home
    ids = known(store, ana)
    runtime = runtime_for(ana, store, "a")
    state: Any = {"messages": [HumanMessage(ASKED, id=new_id("msg"))]}
    state |= Retrieve()(state, runtime)
    assert "[m" not in memory_block(state, runtime)
    assert "- [m1] [" in memory_block(state, runtime, markers=True)
    reply = AIMessage("Tea [m1][m2].")
    cited = note_answer(state, runtime, reply, markers=True)
    assert (set(cited.used), reply.text) == (set(ids.values()), "Tea.")
    assert used(store, ana) == {TEA: 1, COAT: 1}
    plain = AIMessage("Tea [m1].")
    assert note_answer(state, runtime, plain) == Cited() and plain.text == "Tea [m1]."


def test_usage_never_outranks_a_better_answer(home: Home, ana: Identity) -> None:
    store, _ = home
    better, worse = keep(store, ana, learnt("The greyhound is called Momo."), learnt("The greyhound eats at six."))
    before = store.recall(ana, "What is the greyhound called?")
    for _ in range(50):
        store.cite(ana, [worse.id])
    after = store.recall(ana, "What is the greyhound called?")
    assert after.hits[0].record_id == better.id
    assert [(hit.record_id, hit.score) for hit in after.hits] == [(hit.record_id, hit.score) for hit in before.hits]


def test_a_citation_of_another_thread_counts_for_itself(home: Home, ana: Identity) -> None:
    store, _ = home
    known(store, ana)
    agent = agent_of("graph", home, Citing(replies=["Tea {tea}."]))
    for thread in ("a", "b"):
        agent.invoke(ask(), at(thread), context=ana)
    assert used(store, ana)[TEA] == 2
