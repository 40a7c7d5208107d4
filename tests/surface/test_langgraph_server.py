"""LangGraph's server: `langgraph dev` on loopback with our agent, store and checkpointer, driven by its own client.

What docs/turn.svg shows of a turn is compared with what the server says here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import AuthenticationError, NotFoundError, PermissionDeniedError
from support.pictures import edges_of, events_of, nodes_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "server"
PICTURE = ROOT / "docs" / "turn.svg"
TEA = "I prefer tea over coffee."
STARTS_WITHIN = 180.0

pytestmark = [
    pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not part of a source distribution"),
    pytest.mark.skipif(
        importlib.util.find_spec("langgraph_api") is None, reason="needs LangGraph's server: the extra `server`"
    ),
]


class Server(NamedTuple):
    """A running server."""

    url: str
    home: Path

    @asynccontextmanager
    async def client(self, token: str | None = None, **headers: str) -> AsyncIterator[LangGraphClient]:
        """LangGraph's client, as the user with this token."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        async with get_client(url=self.url, api_key=None, headers=headers) as client:
            yield client

    def stored(self) -> bytes:
        """The bytes of the threads, those in the write-ahead log too."""
        return b"".join(path.read_bytes() for path in sorted(self.home.glob("threads.db*")))


def free_port() -> int:
    """A port at which nobody listens, below those that a system gives to connections: one of these might take another
    before the server has it."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"{url}/ok", timeout=5) as response:
        return bool(response.status == 200)
    return False


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """`langgraph dev` in this folder, without keys, tracing, analytics or files of its own; ended with its children."""
    port, home = free_port(), folder / "home"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "EVERTHREAD_HOME": str(home),
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGGRAPH_DISABLE_FILE_PERSISTENCE": "true",
    }
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        server, deadline = Server(f"http://127.0.0.1:{port}", home), time.monotonic() + STARTS_WITHIN
        while not answers(server.url):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.1)
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The example, with its own authentication."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    with running(folder) as started:
        yield started


@pytest.fixture
async def ana_client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.client("token-of-ana") as client:
        yield client


@pytest.fixture
async def ben_client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.client("token-of-ben") as client:
        yield client


async def thread(client: LangGraphClient) -> str:
    return (await client.threads.create())["thread_id"]


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def run(client: LangGraphClient, thread_id: str, text: str | None, **options: Any) -> list[tuple[str, Any]]:
    """What a run streams: its custom events, states and errors, in order."""
    parts = client.runs.stream(
        thread_id, "agent", input=None if text is None else said(text), stream_mode=["custom", "values"], **options
    )
    return [(part.event, part.data) async for part in parts if part.event != "metadata"]


def steps(streamed: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    """The custom events as (node, event)."""
    return [(data["node"], data["event"]) for kind, data in streamed if kind == "custom"]


async def texts(client: LangGraphClient, thread_id: str) -> list[str]:
    """What the thread's messages say, oldest first."""
    values: Any = (await client.threads.get_state(thread_id))["values"]
    return [message["content"] for message in (values or {}).get("messages", [])]


async def test_a_turn_streams_events_and_states_and_the_next_thread_remembers(
    ana_client: LangGraphClient, ben_client: LangGraphClient
) -> None:
    streamed = await run(ana_client, await thread(ana_client), TEA)
    assert steps(streamed) == [
        ("restore", "restored"),
        ("retrieve", "abstained"),
        ("reason", "asking"),
        ("reason", "answered"),
        ("extract", "candidate"),
        ("extract", "receipt"),
    ]
    assert [message["type"] for message in streamed[-1][1]["messages"]] == ["human", "ai"]

    second = await thread(ana_client)
    streamed = await run(ana_client, second, "Do I prefer tea or coffee?")
    assert ("retrieve", "recalled") in steps(streamed)
    assert "The user prefers tea over coffee." in (await texts(ana_client, second))[-1]

    others = await thread(ben_client)
    await run(ben_client, others, "Do I prefer tea or coffee?")
    assert "prefers tea" not in (await texts(ben_client, others))[-1]


async def test_a_run_is_interrupted_and_resumed_and_its_history_shows_each_step(ana_client: LangGraphClient) -> None:
    thread_id = await thread(ana_client)
    first = await run(ana_client, thread_id, "I prefer short reports.", interrupt_before=["reason"])
    assert {node for node, _ in steps(first)} == {"restore", "retrieve"}
    assert (await ana_client.threads.get_state(thread_id))["next"] == ["reason"]

    rest = await run(ana_client, thread_id, None)
    assert {node for node, _ in steps(rest)} == {"reason", "extract"}
    history = await ana_client.threads.get_history(thread_id, limit=20)
    assert [state["next"] for state in history] == [
        [],
        ["extract"],
        ["reason"],
        ["retrieve"],
        ["restore"],
        ["__start__"],
    ]


async def test_runs_that_wait_in_line_keep_every_message(ana_client: LangGraphClient) -> None:
    thread_id = await thread(ana_client)
    notes = [f"Note number {number}." for number in range(3)]
    runs = [
        await ana_client.runs.create(thread_id, "agent", input=said(note), multitask_strategy="enqueue")
        for note in notes
    ]
    for each in runs:
        await ana_client.runs.join(thread_id, each["run_id"])
    kept = await texts(ana_client, thread_id)
    assert (kept[::2], len(kept)) == (notes, 6)


async def test_another_user_neither_runs_in_a_thread_nor_sees_it(
    ana_client: LangGraphClient, ben_client: LangGraphClient
) -> None:
    thread_id = await thread(ana_client)
    await run(ana_client, thread_id, "Hello.", interrupt_before=["reason"])
    await ana_client.threads.update_state(thread_id, said("Only mine."))
    await ana_client.threads.update(thread_id, metadata={"owner": "u-7310"})
    with pytest.raises(NotFoundError):
        await ben_client.threads.get_state(thread_id)
    with pytest.raises(NotFoundError):
        await ben_client.threads.get_history(thread_id)
    with pytest.raises(NotFoundError):
        await ben_client.threads.update_state(thread_id, said("Mine too."))
    with pytest.raises(NotFoundError):
        await run(ben_client, thread_id, "Mine too.")
    assert thread_id not in [each["thread_id"] for each in await ben_client.threads.search(limit=100)]
    assert await texts(ana_client, thread_id) == ["Hello.", "Only mine."]


@pytest.mark.parametrize(
    "named", [{"tenant": "acme", "user": "ana"}, {"tenant": "acme", "user": "ben", "roles": ["curator"]}]
)
async def test_a_context_that_names_more_than_the_user_is_refused(
    ben_client: LangGraphClient, named: dict[str, Any]
) -> None:
    thread_id = await thread(ben_client)
    streamed = await run(ben_client, thread_id, "Do I prefer tea or coffee?", context={"identity": named})
    assert [(kind, data["error"]) for kind, data in streamed] == [("error", "AccessDenied")]
    assert await texts(ben_client, thread_id) == []


async def test_only_the_users_of_the_table_get_in_and_no_further_than_to_their_threads(
    server: Server, ben_client: LangGraphClient
) -> None:
    for client in (server.client(), server.client("made up"), server.client(**{"x-auth-scheme": "langsmith"})):
        async with client as stranger:
            with pytest.raises(AuthenticationError):
                await stranger.threads.search()
    with pytest.raises(NotFoundError):
        await ben_client.store.search_items(("everthread",))
    with pytest.raises(PermissionDeniedError):
        await ben_client.crons.create("agent", schedule="0 0 1 1 *", input={})


async def test_nothing_that_is_stored_of_a_thread_says_whose_it_is(server: Server, ana_client: LangGraphClient) -> None:
    thread_id = await thread(ana_client)
    mine = {"identity": {"tenant": "acme", "user": "ana"}, "memory": "read"}
    await run(ana_client, thread_id, "Which colour is the sky?", context=mine)
    history = await ana_client.threads.get_history(thread_id, limit=20)
    assert len(history) > 3
    assert named_in(json.dumps([{**state, "values": None} for state in history])) == []
    assert thread_id in server.stored().decode(errors="replace")
    assert named_in(server.stored().decode(errors="replace")) == []


def named_in(text: str) -> list[str]:
    """What of the users' identities is in a text."""
    return re.findall(r'acme|"ana"|"ben"|everthread"|token-of', text)


async def test_the_client_of_the_example_is_remembered(server: Server) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLE / "talk.py"), server.url]
    talk = subprocess.run(command, capture_output=True, text=True)
    assert talk.stderr == ""
    assert "The user prefers window seats over aisle seats. (user:ana" in talk.stdout.split("\n\n")[1]


async def test_the_documents_picture_shows_the_servers_graph_and_the_events_of_a_turn(
    ana_client: LangGraphClient,
) -> None:
    shown = PICTURE.read_text(encoding="utf-8")
    drawing: Any = await ana_client.assistants.get_graph("agent")
    assert sorted(nodes_of(shown)) == sorted(node["id"] for node in drawing["nodes"])
    assert edges_of(shown) == sorted(
        (edge["source"], edge["target"], bool(edge.get("conditional"))) for edge in drawing["edges"]
    )
    await run(ana_client, await thread(ana_client), "I prefer trains over planes.")
    streamed = await run(ana_client, await thread(ana_client), "Do I prefer trains or planes? I live in Bern.")
    assert events_of(shown) == steps(streamed)


async def test_without_authentication_the_context_says_who_and_is_not_stored_either(tmp_path: Path) -> None:
    shutil.copy(ROOT / "langgraph.json", tmp_path)
    shutil.copytree(ROOT / "graphs", tmp_path / "graphs", ignore=shutil.ignore_patterns("__pycache__"))
    with running(tmp_path) as open_server:
        async with open_server.client() as client:
            thread_id = await thread(client)
            streamed = await run(client, thread_id, TEA)
            assert [(kind, data["error"]) for kind, data in streamed] == [("error", "AccessDenied")]
            streamed = await run(client, thread_id, TEA, context={"identity": {"tenant": "acme", "user": "ana"}})
            assert steps(streamed)[-1] == ("extract", "receipt")
            history = await client.threads.get_history(thread_id, limit=20)
            assert named_in(json.dumps([{**state, "values": None} for state in history])) == []
        assert thread_id in open_server.stored().decode(errors="replace")
        assert named_in(open_server.stored().decode(errors="replace")) == []
