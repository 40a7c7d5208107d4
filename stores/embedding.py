"""Texts as vectors: the built-in static embedder, or any LangChain one.

The built-in one needs no network, no key and no model run: a vector is the mean of its tokens' rows in the table that
the wordllama wheel ships.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from everthread.errors import ModelReplyError, StoreError, UsageError

__all__ = [
    "Embedder",
    "Hurried",
    "LangchainEmbedder",
    "StaticEmbedder",
    "Tokens",
    "checked_vector",
    "checked_vectors",
    "hurried",
    "resolve_embedder",
]

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """What the stores need of an embedder. Queries and documents are embedded apart: some models differ."""

    @property
    def id(self) -> str:
        """Names the model; vectors of two ids are never compared."""

    @property
    def dims(self) -> int:
        """Length of a vector."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row a text: float32 of shape (texts, dims)."""

    def embed_query(self, text: str) -> Vectors:
        """One unit vector: float32 of shape (dims,)."""


class Tokens(NamedTuple):
    """The tokens of a text whose vector is the direction of their sum."""

    places: list[tuple[int, int]]
    """From which character each goes to which."""
    rows: Vectors
    """One row a token."""


def unit(rows: NDArray[Any]) -> Vectors:
    """Rows of length one; a row of zeros stays one."""
    rows = np.asarray(rows, dtype=np.float32)
    return np.asarray(rows / np.maximum(1e-9, np.linalg.norm(rows, axis=-1, keepdims=True)), dtype=np.float32)


class StaticEmbedder:
    """The table of the wordllama wheel (32,000 tokens of 256 numbers): thousands of texts a second on one core.

    It is read when the first text comes (a quarter of a second), once, whatever the number of threads. Only the wheel's
    two data files are read: importing the package would configure the root logger and look for a download.

    The wheel is MIT; its table was trained from the token embeddings of Llama 2 and Phi-3, whose terms may bind whoever
    passes it on. We depend on it and do not.
    """

    id = "wordllama/l2_supercat_256"
    dims = 256

    def __init__(self) -> None:
        self._loading = Lock()
        self._loaded: tuple[Vectors, Any] | None = None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row a text."""
        table, tokenizer = self._table_and_tokenizer()
        rows = np.zeros((len(texts), self.dims), dtype=np.float32)
        for n, text in enumerate(texts):
            # one by one: a batch starts threads that do not survive a fork, and warns about it
            tokens = tokenizer.encode(_encodable(text), add_special_tokens=False).ids
            if tokens:
                rows[n] = table[tokens].sum(axis=0)
        return unit(rows)

    def embed_query(self, text: str) -> Vectors:
        """One unit vector."""
        return np.asarray(self.embed_documents([text])[0], dtype=np.float32)

    def embed_tokens(self, text: str) -> Tokens:
        """The rows that `embed_query` adds up: of a static embedder each word's share in a vector is known."""
        table, tokenizer = self._table_and_tokenizer()
        found = tokenizer.encode(_encodable(text), add_special_tokens=False)
        return Tokens(found.offsets, table[found.ids])

    def _table_and_tokenizer(self) -> tuple[Vectors, Any]:
        with self._loading:
            if self._loaded is None:
                self._loaded = _read_wordllama()
            return self._loaded


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _read_wordllama() -> tuple[Vectors, Any]:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise StoreError("the built-in embedder needs the package wordllama; install it, or open with embedder='none'")
    home = Path(found.submodule_search_locations[0])
    try:
        table = load_file(home / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        tokenizer = Tokenizer.from_str(
            (home / "tokenizers" / "l2_supercat_tokenizer_config.json").read_text(encoding="utf-8")
        )
    except OSError as error:
        raise StoreError(f"the built-in embedder's data is incomplete in {home}; reinstall wordllama") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return np.ascontiguousarray(table, dtype=np.float32), tokenizer


class LangchainEmbedder:
    """Any LangChain `Embeddings` as an embedder. Queries go through its `embed_query`."""

    def __init__(self, embeddings: Embeddings, *, name: str | None = None, dims: int | None = None) -> None:
        self._embeddings = embeddings
        self._dims = dims
        self.id = name or _name_of(embeddings)

    @cached_property
    def dims(self) -> int:
        """Length of a vector; asks the model once when it was not given."""
        return self._dims or len(self.embed_query("dimension"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row a text; ModelReplyError when the model returns anything else than one vector a text."""
        if not texts:
            return np.zeros((0, self._dims or 0), dtype=np.float32)
        return checked_vectors(self._embeddings.embed_documents(list(texts)), len(texts), self.id)

    def embed_query(self, text: str) -> Vectors:
        """One unit vector."""
        return checked_vector(self._embeddings.embed_query(text), self.id)


def checked_vectors(reply: Any, expected: int, id: str) -> Vectors:
    """What an embedder returned for so many texts, one unit row each; ModelReplyError when it is anything else."""
    try:
        rows = np.asarray(reply, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelReplyError(f"embedder {id} did not return vectors of one length") from error
    if rows.ndim != 2 or len(rows) != expected or not rows.shape[1]:
        raise ModelReplyError(f"embedder {id} returned shape {rows.shape} for {expected} texts")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ModelReplyError(f"embedder {id} returned numbers that are none, or without end")
    return np.asarray(rows / np.maximum(1e-9, lengths), dtype=np.float32)


def checked_vector(reply: Any, id: str) -> Vectors:
    """The same for one text."""
    return np.asarray(checked_vectors([reply], 1, id)[0], dtype=np.float32)


def _name_of(embeddings: Embeddings) -> str:
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    kind = type(embeddings).__name__
    return f"{kind}/{model}" if isinstance(model, str) else kind


class Hurried:
    """An embedder that is given `seconds` for a call, and is then left alone for `pause` seconds (TimeoutError), so
    that one that hangs delays a turn once and not at each step. What it still answers is dropped."""

    def __init__(self, embedder: Embedder, seconds: float, *, pause: float = 30.0) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._pause = pause
        self._asked_again = 0.0
        self.id = embedder.id

    @property
    def dims(self) -> int:
        """Length of a vector."""
        return self._embedder.dims

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """As the embedder does, or TimeoutError."""
        return self._within(lambda: self._embedder.embed_documents(texts))

    def embed_query(self, text: str) -> Vectors:
        """As the embedder does, or TimeoutError."""
        return self._within(lambda: self._embedder.embed_query(text))

    def _within(self, call: Callable[[], Vectors]) -> Vectors:
        if time.monotonic() < self._asked_again:
            raise TimeoutError(f"embedder {self.id} hung, and is not asked for {self._pause:g} seconds")
        answer: Future[Vectors] = Future()
        # a daemon: a hanging call must not keep the process from ending
        Thread(target=_answer, args=(answer, call), daemon=True).start()
        if not wait([answer], self._seconds).done:
            self._asked_again = time.monotonic() + self._pause
            raise TimeoutError(f"embedder {self.id} did not answer within {self._seconds:g} seconds")
        return answer.result()


def _answer(answer: Future[Vectors], call: Callable[[], Vectors]) -> None:
    try:
        answer.set_result(call())
    except BaseException as error:  # whatever it is, it is raised where the answer is waited for
        answer.set_exception(error)


def hurried(embedder: Embedder, seconds: float) -> Embedder:
    """`embedder` with a limit of `seconds` for each call; the built-in one, which is fast, as it is."""
    return embedder if isinstance(embedder, StaticEmbedder) else Hurried(embedder, seconds)


BUILT_IN = StaticEmbedder()
"""The default embedder: one table for the whole process, read at first use."""


def resolve_embedder(spec: str | Embeddings | Embedder | Callable[..., Any] | None) -> Embedder | None:
    """The embedder that `spec` names.

    None: the built-in one. "none": no vectors, so None. "provider:model": LangChain's `init_embeddings`; UsageError
    when the package that it needs is missing. LangChain `Embeddings`, a function of a list of texts, or an `Embedder`:
    that one.
    """
    if spec is None:
        return BUILT_IN
    if isinstance(spec, str):
        return None if spec == "none" else _from_provider(spec)
    if isinstance(spec, Embeddings):
        return LangchainEmbedder(spec)
    if isinstance(spec, Embedder):
        return spec
    if callable(spec):
        from langgraph.store.base.embed import ensure_embeddings

        return LangchainEmbedder(ensure_embeddings(spec), name=getattr(spec, "__qualname__", type(spec).__name__))
    raise UsageError(f"embedder: expected None, 'none', 'provider:model' or Embeddings, got {type(spec).__name__}")


def _from_provider(spec: str) -> Embedder:
    if ":" not in spec:
        raise UsageError(f"embedder {spec!r}: write 'provider:model', such as 'openai:text-embedding-3-small'")
    try:
        from langchain.embeddings import init_embeddings

        return LangchainEmbedder(init_embeddings(spec), name=spec)
    except ImportError as error:
        raise UsageError(f"embedder {spec!r}: {_first_line(error)}; try pip install 'everthread[langchain]'") from error
    # a provider's constructor may raise anything, most often for a missing key; whatever it is, the caller can mend it
    except Exception as error:
        raise UsageError(f"embedder {spec!r}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
