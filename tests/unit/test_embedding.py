"""The built-in embedder, and other people's."""

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from everthread.errors import ModelReplyError, UsageError
from everthread.stores.embedding import Embedder, LangchainEmbedder, StaticEmbedder, resolve_embedder


class Letters(Embeddings):
    """Counts letters, and remembers what it was asked."""

    model = "letters-1"

    def __init__(self, letters: str = "abc") -> None:
        self.letters = letters
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents.extend(texts)
        return [[float(text.count(letter)) for letter in self.letters] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return [float(text.count(letter)) for letter in self.letters]


class Broken(Letters):
    """Answers with whatever it was given."""

    def __init__(self, reply: list[list[float]]) -> None:
        super().__init__()
        self.reply = reply

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.reply


def built_in() -> Embedder:
    embedder = resolve_embedder(None)
    assert embedder is not None
    return embedder


def test_the_tokens_of_a_text_add_up_to_its_vector() -> None:
    embedder = built_in()
    assert isinstance(embedder, StaticEmbedder)
    tokens = embedder.embed_tokens("Tea, 我喜欢\ud800喝茶。")
    total = tokens.rows.sum(axis=0)
    assert total / np.linalg.norm(total) == pytest.approx(embedder.embed_query("Tea, 我喜欢\ud800喝茶。"), abs=1e-5)
    assert [tokens.places[0], tokens.places[-1]] == [(0, 2), (11, 12)]  # "Te" and the full stop


def test_the_built_in_embedder_gives_unit_rows_in_order() -> None:
    rows = built_in().embed_documents(["I like tea.", "我喜欢喝茶。"])
    assert (rows.shape, rows.dtype.name) == ((2, built_in().dims), "float32")
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert (rows[1] == built_in().embed_query("我喜欢喝茶。")).all()


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("Which drink do I like?", "I prefer tea to coffee.", "The build failed on Monday."),
        ("我喜欢喝什么？", "我更爱喝绿茶。", "数据库在周一崩溃了。"),
    ],
)
def test_what_is_meant_alike_is_near(question: str, near: str, far: str) -> None:
    asked = built_in().embed_query(question)
    alike, unlike = built_in().embed_documents([near, far]) @ asked
    assert alike > unlike


def test_odd_texts_are_embedded_without_harm() -> None:
    rows = built_in().embed_documents(["", " ", "\x00", "\ud800", "🎉" * 1000])
    assert np.isfinite(rows).all() and rows.shape == (5, 256)
    assert built_in().embed_documents([]).shape == (0, 256)


def test_the_table_is_read_once_by_many_threads() -> None:
    fresh = StaticEmbedder()
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(fresh.embed_query, ["tea"] * 16))
    assert all((row == rows[0]).all() for row in rows)


def test_the_built_in_embedder_is_silent_and_leaves_logging_and_the_home_alone(tmp_path: os.PathLike[str]) -> None:
    code = (
        "import logging, os\n"
        "from everthread.stores.embedding import resolve_embedder\n"
        "resolve_embedder(None).embed_documents(['tea'] * 100)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    resolve_embedder(None).embed_documents(['tea'] * 100)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "assert logging.getLogger().handlers == []\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path), "http_proxy": "http://127.0.0.1:9", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr, os.listdir(tmp_path)) == (0, "", "", [])


def test_importing_the_module_reads_no_table() -> None:
    code = "import sys, everthread.stores.embedding; print('wordllama' in sys.modules, 'tokenizers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False False\n"


def test_none_means_no_vectors() -> None:
    assert resolve_embedder("none") is None


def test_langchain_embeddings_are_asked_apart_for_queries_and_documents() -> None:
    letters = Letters()
    embedder = resolve_embedder(letters)
    assert isinstance(embedder, LangchainEmbedder)
    assert embedder.embed_documents(["ab", "bb"]) == pytest.approx(np.array([[0.5**0.5, 0.5**0.5, 0], [0, 1, 0]]))
    assert embedder.embed_query("c") == pytest.approx(np.array([0, 0, 1]))
    assert (letters.documents, letters.queries) == (["ab", "bb"], ["c"])
    assert (embedder.id, embedder.dims) == ("Letters/letters-1", 3)


def test_no_documents_ask_nothing() -> None:
    letters = Letters()
    assert LangchainEmbedder(letters, dims=3).embed_documents([]).shape == (0, 3)
    assert letters.documents == []


def test_a_function_is_an_embedder() -> None:
    def lengths(texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 0.0] for text in texts]

    embedder = resolve_embedder(lengths)
    assert embedder is not None
    assert embedder.embed_query("abc") == pytest.approx(np.array([1, 0]))
    assert embedder.id.endswith("lengths")


def test_an_embedder_of_ones_own_is_taken_as_it_is() -> None:
    own = StaticEmbedder()
    assert resolve_embedder(own) is own


@pytest.mark.parametrize("reply", [[], [[1.0]], [[1.0], [2.0, 3.0]], [[1.0, float("nan")], [0.0, 1.0]], [["x"], ["y"]]])
def test_a_reply_that_is_not_one_vector_a_text_is_refused(reply: list[list[float]]) -> None:
    with pytest.raises(ModelReplyError, match="embedder Broken/letters-1"):
        LangchainEmbedder(Broken(reply)).embed_documents(["a", "b"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("openai", "write 'provider:model'"),
        ("nobody:model", "'nobody:model'"),
        ("cohere:embed-v4", "pip install"),
        (7, "got int"),
    ],
)
def test_an_unknown_embedder_is_named_with_the_remedy(spec: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        resolve_embedder(spec)
    assert "\n" not in str(caught.value)


def test_a_provider_and_model_go_to_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    embedder = resolve_embedder("openai:text-embedding-3-small")
    assert embedder is not None and embedder.id == "openai:text-embedding-3-small"


def test_a_missing_key_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="openai:text-embedding-3-small"):
        resolve_embedder("openai:text-embedding-3-small")


def test_nothing_is_logged_at_first_use(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        StaticEmbedder().embed_query("tea")
    assert caplog.records == []
