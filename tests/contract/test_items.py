"""The BaseStore contract over plain items.

What uses `plain_store` or `open_plain` runs against LangGraph's InMemoryStore too, so that the suite is checked by a
store that we did not write. What uses `open_ours` is promised by ours alone.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from time import sleep
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from support.plain import Clock, TableEmbeddings

from everthread.errors import UsageError
from everthread.stores import MemoryStore

from .conftest import OpenPlain, OpenStore


@pytest.fixture
def plain_store(open_plain: OpenPlain) -> BaseStore:
    return open_plain()


@pytest.fixture
def ours(open_ours: OpenStore) -> MemoryStore:
    return open_ours()


def keys(found: list[SearchItem]) -> list[str]:
    return [item.key for item in found]


def test_an_item_comes_back_as_it_was_put(plain_store: BaseStore) -> None:
    value = {
        "text": 'quote " back \\ NUL \x00 line\u2028 🙂 中文 עברית',
        "numbers": [0, -1.5, 2**53 + 1, 10**40],
        "nested": {"none": None, "flags": [True, False], "empty": {"list": [], "text": ""}},
    }
    plain_store.put(("acme", "ana"), "k", value)
    found = plain_store.get(("acme", "ana"), "k")
    assert found is not None
    assert (found.namespace, found.key, found.value) == (("acme", "ana"), "k", value)


def test_a_missing_item_is_none(plain_store: BaseStore) -> None:
    plain_store.put(("acme",), "k", {})
    assert plain_store.get(("acme",), "other") is None
    assert plain_store.get(("other",), "k") is None


def test_a_deleted_item_is_gone_and_deleting_twice_is_allowed(plain_store: BaseStore) -> None:
    plain_store.put(("acme",), "k", {"n": 1})
    plain_store.delete(("acme",), "k")
    plain_store.delete(("acme",), "k")
    assert plain_store.get(("acme",), "k") is None
    assert plain_store.search(("acme",)) == []


def test_times_are_aware_and_lie_between_the_calls(plain_store: BaseStore) -> None:
    before = datetime.now(UTC)
    plain_store.put(("acme",), "k", {})
    after = datetime.now(UTC)
    found = plain_store.get(("acme",), "k")
    assert found is not None
    assert before <= found.created_at <= found.updated_at <= after


def test_created_at_survives_an_update_and_microseconds_are_kept(open_ours: OpenStore) -> None:
    clock = Clock()
    store = open_ours(clock=clock)
    store.put(("acme",), "k", {"n": 1})
    created = clock.now
    clock.forward(1.5)
    store.put(("acme",), "k", {"n": 2})
    assert store.get(("acme",), "k") == Item(
        value={"n": 2}, key="k", namespace=("acme",), created_at=created, updated_at=clock.now
    )


# One batch


def test_reads_of_a_batch_see_the_state_before_its_writes_and_the_last_write_wins(plain_store: BaseStore) -> None:
    plain_store.put(("n",), "a", {"v": 0})
    results = plain_store.batch(
        [
            PutOp(("n",), "a", {"v": 1}),
            GetOp(("n",), "a"),
            PutOp(("n",), "b", {"v": 1}),
            PutOp(("n",), "a", {"v": 2}),
            SearchOp(("n",)),
            PutOp(("n",), "b", None),
            ListNamespacesOp(),
            GetOp(("n",), "b"),
        ]
    )
    read, found = results[1], results[4]
    assert isinstance(read, Item) and read.value == {"v": 0}
    assert isinstance(found, list) and [item.value for item in found if isinstance(item, SearchItem)] == [{"v": 0}]
    assert [results[n] for n in (0, 2, 3, 5, 6, 7)] == [None, None, None, None, [("n",)], None]
    assert {item.key: item.value for item in plain_store.search(("n",))} == {"a": {"v": 2}}


def test_an_empty_batch_is_an_empty_list(plain_store: BaseStore) -> None:
    assert plain_store.batch([]) == []


async def test_async_calls_do_the_same(open_plain: OpenPlain) -> None:
    embeddings = TableEmbeddings({"red": [1, 0], "blue": [0, 1], "crimson": [1, 0.1]})
    store = open_plain(index=IndexConfig(dims=2, embed=embeddings, fields=["text"]))
    await store.aput(("n",), "a", {"text": "red"})
    await store.aput(("n",), "b", {"text": "blue"})
    assert keys(await store.asearch(("n",), query="crimson")) == ["a", "b"]
    await store.adelete(("n",), "a")
    assert await store.aget(("n",), "a") is None
    assert await store.alist_namespaces() == [("n",)]


def test_concurrent_callers_fail_alone(ours: MemoryStore) -> None:
    async def together() -> list[Any]:
        calls = [ours.aput(("n",), str(n), {"n": n} if n != 3 else {"n": object()}) for n in range(8)]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(together())
    assert [type(outcome) for outcome in outcomes] == [UsageError if n == 3 else type(None) for n in range(8)]
    assert sorted(keys(ours.search(("n",)))) == ["0", "1", "2", "4", "5", "6", "7"]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (PutOp(("n",), "bad", {"x": {1, 2}}), r"value of 'bad' in \('n',\): .x is a set, which JSON cannot hold"),
        (PutOp(("n",), "bad", {"x": [float("nan")]}), "value of 'bad'"),
        (PutOp(("n",), "bad", {"x": {1: "y"}}), r"value of 'bad' in \('n',\): .x has the key 1; keys must be text"),
        (PutOp(("n",), "bad", {"x": "\ud800"}), r"value of 'bad' in \('n',\): .x must be valid Unicode"),
        (PutOp(("n",), "bad", {"\ud800": 1}), "value of 'bad'.* must be valid Unicode"),
        (PutOp(("n",), "bad", ["x"]), "must be a dict, not list"),  # type: ignore[arg-type]
        (PutOp(("n",), "\udfff", {}), "key: '.udfff' has a lone surrogate, which is not valid Unicode; leave it out"),
        (PutOp(("n",), "a\0b", {}), "key: 'a.x00b' has a NUL character; leave it out"),
        (GetOp(("n",), "a\0b"), "key: 'a.x00b' has a NUL character; leave it out"),
        (PutOp(("n\ud83d",), "bad", {}), "namespace: must be valid Unicode"),
        (PutOp((), "bad", {}), "namespace: must not be empty"),
        (PutOp(("n",), 7, {}), "key: must be text, not int"),  # type: ignore[arg-type]
        (PutOp(("n",), "bad", {}, ttl=0), "ttl: must be a positive number of minutes, not 0"),
        (PutOp(("n",), "bad", {}, ttl=float("nan")), "ttl: must be a positive number"),
        (PutOp(("n",), "bad", {}, ttl=1e300), "ttl: must be a positive number"),
        (SearchOp(("n",), limit=-1), "limit and offset: must not be negative, but are -1 and 0"),
        (SearchOp(("n",), filter={"x": {"$near": 1}}), "filter 'x': unknown operator '\\$near'"),
        (ListNamespacesOp(max_depth=0), "max_depth: must be at least 1"),
        (ListNamespacesOp((MatchCondition("infix", ("n",)),)), "match_type: unknown 'infix'"),  # type: ignore[arg-type]
        ("get", "batch: unknown operation str"),
    ],
)
def test_an_operation_that_cannot_be_run_fails_its_whole_batch_by_name(
    ours: MemoryStore, op: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ours.batch([PutOp(("n",), "good", {}), op])
    assert ours.search(()) == []


def test_a_value_that_is_nested_too_deeply_is_refused(ours: MemoryStore) -> None:
    value: dict[str, Any] = {}
    for _ in range(100_000):
        value = {"x": value}
    with pytest.raises(UsageError, match="is nested too deeply"):
        ours.put(("n",), "k", value)
    # Taken apart from the outside, since freeing it at once would recurse as deeply.
    while value:
        value = value.pop("x")


# Namespaces


def test_a_namespace_is_compared_label_by_label(plain_store: BaseStore) -> None:
    namespaces = [
        ("a",),
        ("ab",),
        ("A",),
        ("a", "b"),
        ("a-b",),
        ("a/b",),
        ("a b",),
        ("a%",),
        ("a_",),
        ("a*",),
        ("[a]",),
    ]
    for namespace in namespaces:
        plain_store.put(namespace, "k", {})
    for namespace in namespaces:
        found = {item.namespace for item in plain_store.search(namespace, limit=100)}
        assert found == {labels for labels in namespaces if labels[: len(namespace)] == namespace}
        listed = plain_store.list_namespaces(prefix=namespace) if "*" not in namespace[0] else [namespace]
        assert listed == sorted(found)
    assert {item.namespace for item in plain_store.search((), limit=100)} == set(namespaces)


@pytest.mark.parametrize("namespace", [("a.b",), ("",), ("a", "b\x00")])
def test_a_label_that_could_read_as_another_namespace_is_refused(ours: MemoryStore, namespace: tuple[str, ...]) -> None:
    ours.put(("a", "b"), "k", {})
    for op in (PutOp(namespace, "k", {}), GetOp(namespace, "k"), SearchOp(namespace)):
        with pytest.raises(InvalidNamespaceError):
            ours.batch([op])
    for op in (GetOp(("everthread", *namespace), "k"), SearchOp(("everthread", *namespace))):
        with pytest.raises(InvalidNamespaceError):
            ours.batch([op])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefix": ("a",)},
        {"prefix": ("a", "*", "v1")},
        {"suffix": ("v1",)},
        {"suffix": ("*", "v1")},
        {"suffix": ("x", "*")},
        {"prefix": ("a", "b"), "suffix": ("v1",)},
        {"prefix": ("none",)},
        {"max_depth": 1},
        {"max_depth": 2, "prefix": ("a",)},
        {"max_depth": 2, "limit": 2},
        {"max_depth": 2, "limit": 2, "offset": 2},
        {"limit": 3, "offset": 4},
        {"offset": 100},
    ],
)
def test_namespaces_are_listed_as_langgraph_lists_them(ours: MemoryStore, options: dict[str, Any]) -> None:
    theirs = InMemoryStore()
    paths = ["a", "a b", "a b v1", "a b v2", "a c v1", "a-z x", "b v1", "b x v1", "c x 1", "é 中 v1"]
    for path in reversed(paths):
        for store in (theirs, ours):
            store.put(tuple(path.split()), "k", {})
    assert ours.list_namespaces(**options) == theirs.list_namespaces(**options)


def test_a_namespace_without_items_is_not_listed(ours: MemoryStore) -> None:
    ours.put(("a",), "k", {})
    ours.put(("b",), "k", {})
    ours.delete(("a",), "k")
    ours.get(("c",), "k")
    assert ours.list_namespaces() == [("b",)]


# Filters (every operator: tests/unit/test_filters.py)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"n": 9}, {"nine"}),
        ({"n": 9.0}, {"nine"}),
        ({"n": {"$ne": 9}}, {"ten", "huge", "other"}),
        ({"n": 2**53 + 1}, {"huge"}),
        ({"n": {"$eq": 2**53}}, set()),
        ({"n": None}, {"other"}),
        ({"tags": ["x", "y"]}, {"nine"}),
        ({"tags": ["x"]}, set()),
        ({"meta": {"lang": "中文"}}, {"ten"}),
        ({"meta": {"lang": {"$ne": "中文"}}}, set()),
        ({'it\'s "odd"': 1}, {"other"}),
        ({"dot.ted": 1}, {"other"}),
        ({"line\n": 1}, {"other"}),
        ({"line": 1}, set()),
        ({"n') = 1 OR 1=1 --": 1}, set()),
        ({"$": 1}, set()),
    ],
)
def test_a_filter_selects_by_value(plain_store: BaseStore, conditions: dict[str, Any], expected: set[str]) -> None:
    plain_store.put(("n",), "nine", {"n": 9, "tags": ["x", "y"]})
    plain_store.put(("n",), "ten", {"n": 10, "meta": {"lang": "中文", "more": 1}})
    plain_store.put(("n",), "huge", {"n": 2**53 + 1})
    plain_store.put(("n",), "other", {'it\'s "odd"': 1, "dot.ted": 1, "line\n": 1, "meta": "text"})
    assert set(keys(plain_store.search(("n",), filter=conditions))) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"$lt": 10}, {"nine"}),
        ({"$lte": 10}, {"nine", "ten"}),
        ({"$gt": 9}, {"ten", "huge"}),
        ({"$gte": 9, "$lt": 11}, {"nine", "ten"}),
    ],
)
def test_numbers_are_ordered_as_numbers(plain_store: BaseStore, condition: dict[str, Any], expected: set[str]) -> None:
    for key, number in {"nine": 9, "ten": 10.0, "huge": 10**30}.items():
        plain_store.put(("n",), key, {"n": number})
    assert set(keys(plain_store.search(("n",), filter={"n": condition}))) == expected


def test_a_dotted_key_is_a_path_unless_there_is_that_very_key(ours: MemoryStore) -> None:
    ours.put(("n",), "nested", {"user": {"access-level": "open", "1st": {"x": 1}}})
    ours.put(("n",), "literal", {"user.access-level": "open"})
    ours.put(("n",), "text", {"user": "open"})
    assert set(keys(ours.search(("n",), filter={"user.access-level": "open"}))) == {"nested", "literal"}
    assert keys(ours.search(("n",), filter={"user.1st.x": {"$gte": 1}})) == ["nested"]
    assert set(keys(ours.search(("n",), filter={"user.1st.x": {"$ne": 1}}))) == {"literal", "text"}
    for key in ("user.", ".", "", "user..x", "x') OR '1'='1' OR json_extract(value, '$."):
        with pytest.raises(UsageError, match="Invalid filter key"):
            ours.search(("n",), filter={key: 1})


# Pages


def test_pages_cover_every_item_once(open_plain: OpenPlain) -> None:
    everything = {f"{n:02}" for n in range(25)}
    embeddings = TableEmbeddings({f"text {n}": [1, n / 10] for n in range(50)})
    store = open_plain(index=IndexConfig(dims=2, embed=embeddings, fields=["parts[*]"]))
    for n in range(25):
        store.put(("n",), f"{n:02}", {"parts": [f"text {n}", f"text {49 - n}"], "even": n % 2 == 0})
    for query in (None, "text 3"):
        pages = [store.search(("n",), query=query, limit=10, offset=offset) for offset in (0, 10, 20, 30)]
        assert [len(page) for page in pages] == [10, 10, 5, 0]
        assert {key for page in pages for key in keys(page)} == everything
        even = [store.search(("n",), query=query, filter={"even": True}, limit=5, offset=n) for n in (0, 5, 10)]
        assert [len(page) for page in even] == [5, 5, 3]
        assert {key for page in even for key in keys(page)} == {key for key in everything if int(key) % 2 == 0}
    assert store.search(("n",), limit=0) == []


def test_without_a_query_the_last_updated_comes_first(open_ours: OpenStore) -> None:
    clock = Clock()
    store = open_ours(clock=clock)
    for key in ("a", "b", "c", "a"):
        clock.forward(1)
        store.put(("n",), key, {"x": 1})
    assert keys(store.search(("n",))) == ["a", "c", "b"]
    assert keys(store.search(("n",), filter={"x": 1}, limit=1, offset=1)) == ["c"]


# Vectors


COLOURS = {
    "red": [1.0, 0.0, 0.0],
    "orange": [0.8, 0.6, 0.0],
    "green": [0.0, 3.0, 0.0],
    "nothing": [0.0, 0.0, 0.0],
    "warm?": [0.9, 0.1, 0.0],
}


def coloured(open_store: OpenPlain, **config: Any) -> tuple[BaseStore, TableEmbeddings]:
    embeddings = TableEmbeddings(COLOURS)
    return open_store(index={"dims": 3, "embed": embeddings, "fields": ["text"], **config}), embeddings


def test_a_query_finds_the_nearest_first_with_its_cosine(open_plain: OpenPlain) -> None:
    store, _ = coloured(open_plain)
    for name in ("green", "orange", "nothing", "red"):
        store.put(("n", name), "k", {"text": name})
    found = store.search(("n",), query="warm?")
    query = np.array(COLOURS["warm?"])
    assert [item.value["text"] for item in found] == ["red", "orange", "green", "nothing"]
    expected = [
        float(np.dot(query, vector) / (np.linalg.norm(query) * np.linalg.norm(vector)))
        for vector in map(np.array, (COLOURS["red"], COLOURS["orange"], COLOURS["green"]))
    ]
    assert [item.score for item in found] == pytest.approx([*expected, 0.0], abs=1e-6)


@pytest.mark.parametrize("distance", ["cosine", "l2", "inner_product"])
def test_each_distance_ranks_and_scores_as_numpy_does(open_ours: OpenStore, distance: Any) -> None:
    generator = np.random.default_rng(7)
    vectors = {f"t{n}": generator.normal(size=8).astype(np.float32) * (1 + n % 5) for n in range(1_100)}
    query = generator.normal(size=8).astype(np.float32)
    embeddings = TableEmbeddings({text: vector.tolist() for text, vector in vectors.items()} | {"?": query.tolist()})
    store = open_ours(index={"dims": 8, "embed": embeddings, "distance_type": distance, "fields": ["text"]})
    store.batch([PutOp(("n",), text, {"text": text}) for text in vectors])
    matrix = np.array(list(vectors.values()))
    scores = {
        "cosine": matrix @ query / np.linalg.norm(matrix, axis=1) / np.linalg.norm(query),
        "l2": -np.linalg.norm(matrix - query, axis=1),
        "inner_product": matrix @ query,
    }[distance]
    expected = sorted(zip(scores.tolist(), vectors, strict=True), reverse=True)[5:25]
    found = store.search(("n",), query="?", limit=20, offset=5)
    assert keys(found) == [text for _, text in expected]
    assert [item.score for item in found] == pytest.approx([score for score, _ in expected], abs=1e-4)


def test_only_the_configured_fields_reach_the_embedder(open_plain: OpenPlain) -> None:
    texts = ["title", "first", "second", "chosen", "?"]
    embeddings = TableEmbeddings({text: [1.0] for text in texts})
    store = open_plain(index=IndexConfig(dims=1, embed=embeddings, fields=["meta.title", "parts[*].text"]))
    value = {"meta": {"title": "title", "secret": "s"}, "parts": [{"text": "first"}, {"text": "second", "note": "n"}]}
    store.put(("n",), "k", value)
    assert embeddings.documents == ["title", "first", "second"]
    store.put(("n",), "unindexed", value, index=False)
    store.put(("n",), "chosen", {"note": "chosen", "meta": {"title": "not this"}}, index=["note"])
    assert embeddings.documents == ["title", "first", "second", "chosen"]
    found = store.search(("n",), query="?")
    assert {item.key: item.score for item in found} == {"k": 1.0, "chosen": 1.0, "unindexed": None}
    assert (embeddings.queries, embeddings.documents) == (["?"], ["title", "first", "second", "chosen"])


@pytest.mark.parametrize("fields", [["a", "b"], "a"])
def test_text_fields_is_another_name_of_fields(open_ours: OpenStore, fields: Any) -> None:
    embeddings = TableEmbeddings({"x": [1.0], "y": [1.0]})
    store = open_ours(index={"dims": 1, "embed": embeddings, "text_fields": fields})
    store.put(("n",), "k", {"a": "x", "b": "y", "c": "z"})
    assert embeddings.documents == ["x", "y"][: len(fields)]


def test_the_whole_value_is_embedded_when_no_field_is_configured(open_plain: OpenPlain) -> None:
    embeddings = TableEmbeddings({'{"a": "é", "b": 1}': [1.0]})
    store = open_plain(index=IndexConfig(dims=1, embed=embeddings))
    store.put(("n",), "k", {"b": 1, "a": "é"})
    assert embeddings.documents == ['{"a": "é", "b": 1}']


def test_an_item_with_several_vectors_is_found_once_by_the_nearest(open_plain: OpenPlain) -> None:
    embeddings = TableEmbeddings(COLOURS)
    store = open_plain(index=IndexConfig(dims=3, embed=embeddings, fields=["texts[*]"]))
    store.put(("n",), "mixed", {"texts": ["green", "red", "nothing"]})
    store.put(("n",), "plain", {"texts": ["orange"]})
    found = store.search(("n",), query="red", limit=2)
    assert {item.key: item.score for item in found} == pytest.approx({"mixed": 1.0, "plain": 0.8})
    assert keys(found) == ["mixed", "plain"]


def test_items_without_a_vector_come_last(open_plain: OpenPlain) -> None:
    store, _ = coloured(open_plain)
    store.put(("n",), "bare", {"note": "x"})
    store.put(("n",), "green", {"text": "green"})
    store.put(("n",), "red", {"text": "red"})
    assert [(item.key, item.score) for item in store.search(("n",), query="red")] == [
        ("red", pytest.approx(1.0)),
        ("green", pytest.approx(0.0)),
        ("bare", None),
    ]


def test_items_without_a_vector_are_not_repeated_on_the_next_page(open_ours: OpenStore) -> None:
    store, _ = coloured(open_ours)
    store.put(("n",), "red", {"text": "red"})
    store.put(("n",), "bare", {})
    assert [keys(store.search(("n",), query="red", limit=1, offset=n)) for n in range(3)] == [["red"], ["bare"], []]


def test_namespace_and_filter_hold_before_ranking(open_plain: OpenPlain) -> None:
    store, _ = coloured(open_plain)
    store.put(("a",), "near but filtered", {"text": "red", "keep": False})
    store.put(("ab",), "near but another's", {"text": "red", "keep": True})
    store.put(("a", "b"), "far", {"text": "green", "keep": True})
    assert keys(store.search(("a",), query="red", filter={"keep": True}, limit=1)) == ["far"]


def test_without_an_index_a_query_is_a_listing(plain_store: BaseStore) -> None:
    plain_store.put(("n",), "k", {"text": "x"}, index=["text"])
    assert [(item.key, item.score) for item in plain_store.search(("n",), query="anything")] == [("k", None)]


def test_an_update_replaces_every_vector_of_the_item(open_ours: OpenStore) -> None:
    embeddings = TableEmbeddings(COLOURS)
    store = open_ours(index={"dims": 3, "embed": embeddings, "fields": ["texts[*]"]})
    store.put(("n",), "k", {"texts": ["green", "red"]})
    store.put(("n",), "k", {"texts": ["green"]})
    assert [item.score for item in store.search(("n",), query="red")] == [pytest.approx(0.0)]
    store.put(("n",), "k", {"texts": ["red"]}, index=False)
    assert [item.score for item in store.search(("n",), query="red")] == [None]


def test_the_same_text_twice_is_embedded_once(open_ours: OpenStore) -> None:
    store, embeddings = coloured(open_ours)
    store.batch([PutOp(("n",), key, {"text": "red"}) for key in "abc"])
    assert embeddings.documents == ["red"]
    assert [item.score for item in store.search(("n",), query="red")] == [pytest.approx(1.0)] * 3


class Outage(Exception):
    pass


class FailingEmbeddings(TableEmbeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise Outage


def test_a_failing_embedder_leaves_nothing_behind(open_plain: OpenPlain) -> None:
    store = open_plain(index=IndexConfig(dims=1, embed=FailingEmbeddings({}), fields=["text"]))
    with pytest.raises(Outage):
        store.batch([PutOp(("n",), "a", {}), PutOp(("n",), "b", {"text": "x"}), PutOp(("n",), "c", {})])
    assert store.search(("n",)) == []


def test_other_writers_are_not_held_up_while_texts_are_embedded(open_ours: OpenStore) -> None:
    other = open_ours()

    class WritingMeanwhile(TableEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(other.put, ("n",), "meanwhile", {}).result(timeout=20)
            return super().embed_documents(texts)

    store = open_ours(index={"dims": 1, "embed": WritingMeanwhile({"x": [1.0]}), "fields": ["text"]})
    store.put(("n",), "k", {"text": "x"})
    assert sorted(keys(store.search(("n",)))) == ["k", "meanwhile"]


def test_vectors_of_another_size_do_not_break_a_search(open_ours: OpenStore) -> None:
    old, _ = coloured(open_ours)
    old.put(("n",), "old", {"text": "red"})
    new = open_ours(index={"dims": 2, "embed": TableEmbeddings({"red": [1, 0]}), "fields": ["text"]})
    new.put(("n",), "new", {"text": "red"})
    found = new.search(("n",), query="red")
    assert [(item.key, item.score) for item in found] == [("new", pytest.approx(1.0)), ("old", None)]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"dims": 0}, "index.dims: must be the number of dimensions of the embedder, not 0"),
        ({"embed": None}, "index.embed: missing"),
        ({"distance_type": "l1"}, "index.distance_type: unknown 'l1'; use one of cosine, l2, inner_product"),
    ],
)
def test_an_incomplete_index_config_is_refused(open_ours: OpenStore, config: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        coloured(open_ours, **config)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0]], "index.dims: is 3, but the embedder returns 2 numbers; set dims=2"),
        ([[1.0, 2.0, float("inf")]], "not finite"),
        ([], "index.embed: returned 0 vectors for 1 texts"),
    ],
)
def test_vectors_that_do_not_fit_the_config_are_refused(
    open_ours: OpenStore, vectors: list[list[float]], message: str
) -> None:
    store = open_ours(index={"dims": 3, "embed": lambda texts: vectors})
    with pytest.raises(UsageError, match=message):
        store.put(("n",), "k", {"text": "x"})
    assert store.search(("n",)) == []


# Time to live


def test_an_item_expires_after_its_minutes_and_is_gone_from_every_read(open_ours: OpenStore) -> None:
    clock = Clock()
    embeddings = TableEmbeddings(COLOURS)
    store = open_ours(index={"dims": 3, "embed": embeddings, "fields": ["text"]}, ttl={}, clock=clock)
    store.put(("short",), "k", {"text": "red"}, ttl=0.4)
    store.put(("long",), "k", {"text": "green"})
    clock.forward(0.39)
    assert store.get(("short",), "k", refresh_ttl=False) is not None
    clock.forward(0.01)
    assert store.get(("short",), "k") is None
    assert [item.namespace for item in store.search(())] == [("long",)]
    assert [item.namespace for item in store.search((), filter={"text": {"$ne": "x"}})] == [("long",)]
    assert [item.namespace for item in store.search((), query="red")] == [("long",)]
    assert store.list_namespaces() == [("long",)]


def test_the_sweep_deletes_what_has_expired(open_ours: OpenStore) -> None:
    clock = Clock()
    index = {"dims": 3, "embed": TableEmbeddings(COLOURS), "fields": ["text"]}
    store = open_ours(index=index, clock=clock)
    for minutes in (1, 2, 3, None):
        store.put(("n",), f"{minutes}", {"text": "red"}, ttl=minutes)
    clock.forward(2)
    assert [store.sweep_ttl(), store.sweep_ttl()] == [2, 0]
    clock.forward(-2)
    assert sorted(keys(store.search(("n",), query="red"))) == ["3", "None"]


def test_the_sweeper_runs_until_it_is_stopped_or_the_store_is_closed(open_empty: OpenStore) -> None:
    ttl = {"default_ttl": 0.0001, "sweep_interval_minutes": 0.0001, "omit_expired": False}
    with open_empty(embedder="none", ttl=ttl) as store:
        running = store.start_ttl_sweeper()
        store.put(("n",), "k", {})
        while store.get(("n",), "k") is not None:
            sleep(0.01)
        assert store.stop_ttl_sweeper() is True
        assert running.result(timeout=20) is None
        cancelled = store.start_ttl_sweeper(60)
        assert cancelled.cancel() is True
        assert store.stop_ttl_sweeper() is True
        running = store.start_ttl_sweeper(60)
    assert running.result(timeout=20) is None


def test_without_a_ttl_there_is_nothing_to_sweep_and_stopping_is_allowed(ours: MemoryStore) -> None:
    assert ours.start_ttl_sweeper().result(timeout=0) is None
    assert ours.stop_ttl_sweeper() is True


def test_default_ttl_is_taken_unless_none_is_asked_for(open_ours: OpenStore) -> None:
    clock = Clock()
    store = open_ours(ttl={"default_ttl": 1.5}, clock=clock)
    store.put(("n",), "default", {})
    store.put(("n",), "kept", {}, ttl=None)
    clock.forward(1.5)
    assert keys(store.search(("n",))) == ["kept"]


@pytest.mark.parametrize(
    ("config", "asked", "prolonged"),
    [
        (None, None, False),
        (None, True, True),
        ({}, None, False),
        ({"refresh_on_read": True}, None, True),
        ({"refresh_on_read": False}, None, False),
        ({"refresh_on_read": False}, True, True),
        ({"refresh_on_read": True}, False, False),
    ],
)
@pytest.mark.parametrize("read", ["get", "search"])
def test_reading_prolongs_an_items_life_when_that_is_wanted(
    open_ours: OpenStore, config: Any, asked: bool | None, prolonged: bool, read: str
) -> None:
    clock = Clock()
    store = open_ours(ttl=config, clock=clock)
    store.put(("n",), "read", {}, ttl=2)
    clock.forward(0.5)
    store.put(("n",), "not on the page", {}, ttl=1.5)
    clock.forward(-0.5 + 1)
    if read == "get":
        store.get(("n",), "read", refresh_ttl=asked)
    else:
        store.search(("n",), limit=1, offset=1, refresh_ttl=asked)
    clock.forward(1.5)
    assert keys(store.search(("n",), refresh_ttl=False)) == (["read"] if prolonged else [])


def test_a_read_beside_a_write_prolongs_an_items_life_too(open_ours: OpenStore) -> None:
    clock = Clock()
    store = open_ours(clock=clock)
    store.put(("n",), "read", {}, ttl=1)
    clock.forward(0.75)
    store.batch([GetOp(("n",), "read"), PutOp(("n",), "other", {})])
    clock.forward(0.75)
    assert sorted(keys(store.search(("n",)))) == ["other", "read"]


def test_a_write_starts_the_life_anew_and_a_write_without_ttl_ends_it(open_ours: OpenStore) -> None:
    clock = Clock()
    store = open_ours(clock=clock)
    store.put(("n",), "again", {}, ttl=1)
    store.put(("n",), "for ever", {}, ttl=1)
    clock.forward(0.5)
    store.put(("n",), "again", {}, ttl=1)
    store.put(("n",), "for ever", {})
    clock.forward(0.75)
    assert sorted(keys(store.search(("n",), refresh_ttl=False))) == ["again", "for ever"]
    clock.forward(0.25)
    assert keys(store.search(("n",))) == ["for ever"]


def test_what_replaces_an_expired_item_is_new(open_ours: OpenStore) -> None:
    clock = Clock()
    store = open_ours(clock=clock)
    store.put(("n",), "k", {}, ttl=1)
    clock.forward(1)
    store.put(("n",), "k", {})
    found = store.get(("n",), "k")
    assert found is not None and found.created_at == clock.now


def test_expired_items_stay_readable_until_the_sweep_when_that_is_configured(
    open_ours: OpenStore,
) -> None:
    clock = Clock()
    store = open_ours(ttl={"omit_expired": False, "refresh_on_read": False}, clock=clock)
    store.put(("n",), "k", {}, ttl=1)
    clock.forward(5)
    assert keys(store.search(("n",))) == ["k"]
    assert store.sweep_ttl() == 1
    assert store.search(("n",)) == []
