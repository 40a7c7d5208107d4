"""Ways to find messages again, in one shape: ours by its public API, what it is made of, and two peers."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import apsw
import numpy as np
from datasets import Conversation, Message, Question
from langchain_core.embeddings import Embeddings

from everthread import Evidence, Identity
from everthread.stores import open_store
from everthread.stores.embedding import BUILT_IN
from everthread.stores.text import STOP_WORDS, UNSPACED


class Found(NamedTuple):
    """A message that was found."""

    id: str
    score: float


Ranker = Callable[[Question, int], list[Found]]
"""A question and a limit in, what was found out, the best first."""
Build = Callable[[Conversation, ExitStack], Ranker]
"""Takes a conversation in; what is to be closed again goes onto the stack."""


def by_everthread(conversation: Conversation, closing: ExitStack) -> Ranker:
    """`recall(sources={"evidence"})`, the conversation as the messages of one user."""
    store = closing.enter_context(open_store(f"sqlite:{closing.enter_context(TemporaryDirectory())}"))
    identity = Identity(tenant="benchmark", user=conversation.name)
    store.transcripts.append(identity, [_evidence(conversation.name, message) for message in conversation.messages])

    def rank(question: Question, limit: int) -> list[Found]:
        found = store.recall(identity, question.text, limit=limit, sources={"evidence"}, now=question.asked)
        return [Found(hit.message_ids[0], hit.score) for hit in found.hits]

    return rank


def _evidence(name: str, message: Message) -> Evidence:
    return Evidence(
        thread_id=f"{name}/{message.thread}",
        message_id=message.id,
        role="user",
        speaker=message.speaker or None,
        text=message.text,
        at=message.at,
        source="user",
    )


def by_keywords(conversation: Conversation, closing: ExitStack) -> Ranker:
    """FTS5 with its own bm25(), porter stems, stop words dropped, CJK as bigrams."""
    database = apsw.Connection(":memory:")
    closing.callback(database.close)
    database.execute("CREATE VIRTUAL TABLE said USING fts5(words, tokenize='porter unicode61')")
    with database:
        database.executemany(
            "INSERT INTO said(rowid, words) VALUES (?, ?)",
            [(n, _spaced(said(message))) for n, message in enumerate(conversation.messages)],
        )

    def rank(question: Question, limit: int) -> list[Found]:
        words = re.findall(r"\w+", _spaced(question.text.lower()))
        words = [word for word in words if word not in STOP_WORDS] or words
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        rows = database.execute(
            "SELECT rowid, -rank FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?", (match or '""', limit)
        )
        return [Found(conversation.messages[rowid].id, score) for rowid, score in rows]

    return rank


def by_vectors(conversation: Conversation, closing: ExitStack) -> Ranker:
    """Cosine of the built-in embedder, one vector a message."""
    vectors = BUILT_IN.embed_documents([said(message) for message in conversation.messages])

    def rank(question: Question, limit: int) -> list[Found]:
        likeness = vectors @ BUILT_IN.embed_query(question.text)
        return [
            Found(conversation.messages[n].id, float(likeness[n]))
            for n in np.argsort(-likeness, kind="stable")[:limit].tolist()
        ]

    return rank


RRF_K, RRF_DEPTH = 60, 200


def by_fusion(conversation: Conversation, closing: ExitStack) -> Ranker:
    """Reciprocal rank fusion of the two."""
    arms = [by_keywords(conversation, closing), by_vectors(conversation, closing)]

    def rank(question: Question, limit: int) -> list[Found]:
        scores: dict[str, float] = {}
        for arm in arms:
            for n, found in enumerate(arm(question, RRF_DEPTH), start=1):
                scores[found.id] = scores.get(found.id, 0.0) + 1 / (RRF_K + n)
        return [Found(*each) for each in sorted(scores.items(), key=lambda pair: -pair[1])[:limit]]

    return rank


def said(message: Message) -> str:
    """The message with its speaker, as every baseline and peer is given it."""
    return f"{message.speaker}: {message.text}" if message.speaker else message.text


def _spaced(text: str) -> str:
    """CJK as bigrams, so that FTS5 can find it at all."""

    def bigrams(match: re.Match[str]) -> str:
        run = match[0]
        return f" {' '.join(run[n : n + 2] for n in range(max(1, len(run) - 1)))} "

    return re.sub(f"[{UNSPACED}]+", bigrams, text)


# -------------------------------------------------------------------------------------------------------------- peers


class BuiltIn(Embeddings):
    """Our embedder for the peers."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[*map(float, row)] for row in BUILT_IN.embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        return [*map(float, BUILT_IN.embed_query(text))]


def by_langgraph(conversation: Conversation, closing: ExitStack) -> Ranker:
    """LangGraph's SqliteStore with an index on the text."""
    from stores import with_extensions  # noqa: TID251 - the benchmark beside this file

    with_extensions()
    from langgraph.store.base import PutOp
    from langgraph.store.sqlite import SqliteStore

    index: Any = {"dims": BUILT_IN.dims, "embed": BuiltIn(), "fields": ["text"]}
    store = closing.enter_context(SqliteStore.from_conn_string(":memory:", index=index))
    store.setup()
    messages = conversation.messages
    for start in range(0, len(messages), 500):
        part = messages[start : start + 500]
        store.batch([PutOp(("memories", "user"), message.id, {"text": said(message)}) for message in part])

    def rank(question: Question, limit: int) -> list[Found]:
        found = store.search(("memories", "user"), query=question.text, limit=limit)
        return [Found(item.key, item.score or 0.0) for item in found]

    return rank


def by_mem0(conversation: Conversation, closing: ExitStack) -> Ranker:
    """mem0 with `infer=False` (no model is asked) and a local Qdrant, all in memory: on disk it takes thirty times as
    long to fill. Its keyword arm needs a model that fastembed downloads, and is off without it."""
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    os.environ.setdefault("MEM0_DIR", closing.enter_context(TemporaryDirectory()))
    warnings.filterwarnings("ignore", "Payload indexes have no effect", UserWarning)
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it says for each message that spaCy is not there
    from mem0 import Memory
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")
    closing.callback(client.close)
    where = {"client": client, "embedding_model_dims": BUILT_IN.dims, "collection_name": "messages"}
    memory = Memory.from_config(
        {
            "embedder": {"provider": "langchain", "config": {"model": BuiltIn(), "embedding_dims": BUILT_IN.dims}},
            "vector_store": {"provider": "qdrant", "config": where},
            "llm": {"provider": "openai", "config": {"api_key": "not used"}},
            "history_db_path": ":memory:",
        }
    )
    for message in conversation.messages:
        memory.add(said(message) or " ", user_id="user", metadata={"message_id": message.id}, infer=False)

    def rank(question: Question, limit: int) -> list[Found]:
        found = memory.search(question.text, filters={"user_id": "user"}, top_k=limit, threshold=0.0)
        return [Found(hit["metadata"]["message_id"], hit["score"]) for hit in found["results"]]

    return rank


BASELINES: dict[str, Build] = {"BM25 (FTS5)": by_keywords, "vectors": by_vectors, "RRF of both": by_fusion}
PEERS: dict[str, Build] = {"LangGraph SqliteStore": by_langgraph, "mem0 (infer=False)": by_mem0}


def rankers(*, peers: bool) -> dict[str, Build]:
    """All of them by name, ours last."""
    return BASELINES | (PEERS if peers else {}) | {"everthread": by_everthread}
