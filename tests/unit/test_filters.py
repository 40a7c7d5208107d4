"""The filter of plain items, compared with LangGraph's InMemoryStore on anything that it answers at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from everthread.errors import UsageError
from everthread.stores.filters import check_filter, matches

KEYS = st.sampled_from(["a", "b", 'qu"ote', "dot.ted", "new\nline", "' OR 1=1 --"])
NUMBERS = st.integers(-20, 20) | st.sampled_from([0.5, 2.0, -1.25, 2**53])
TEXTS = st.sampled_from(["", "x", "10", "9", "2.0", "été", "中文", "🙂"])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
CONDITIONS = st.recursive(
    SCALARS
    | st.dictionaries(st.sampled_from(["$eq", "$ne"]), VALUES, min_size=1)
    | st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), NUMBERS | TEXTS, min_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
)


@given(value=st.dictionaries(KEYS, VALUES, max_size=4), conditions=st.dictionaries(KEYS, CONDITIONS, max_size=2))
def test_a_filter_agrees_with_the_in_memory_store_wherever_that_answers(
    value: dict[str, Any], conditions: dict[str, Any]
) -> None:
    theirs = InMemoryStore()
    theirs.put(("n",), "k", value)
    try:
        expected = bool(theirs.search(("n",), filter=conditions))
    except (TypeError, ValueError):
        assume(False)
    check_filter(conditions)
    assert matches(value, conditions) is expected


@pytest.mark.parametrize(
    ("value", "conditions", "expected"),
    [
        ({"n": 2**53 + 1}, {"n": {"$gt": 2**53}}, True),
        ({"n": str(2**60 + 1)}, {"n": {"$gt": 2**60}}, True),
        ({"n": 10**40}, {"n": 10**40 + 1}, False),
        ({}, {"n": {"$gt": 1}}, False),
        ({"n": [5]}, {"n": {"$gt": 1}}, False),
        ({"n": "many"}, {"n": {"$gt": 1}}, False),
        ({"day": "2026-03-02"}, {"day": {"$gte": "2026-03-01"}}, True),
        ({"pair": [1, 2]}, {"pair": {"$eq": (1, 2)}}, True),
    ],
)
def test_a_filter_answers_where_the_in_memory_store_raises_or_rounds(
    value: dict[str, Any], conditions: dict[str, Any], expected: bool
) -> None:
    assert matches(value, conditions) is expected


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"n": {"$in": [1]}}, "filter 'n': unknown operator '$in'; use one of $eq, $ne, $gt, $gte, $lt, $lte"),
        ({"n": {"$gt": 1, "m": 2}}, "filter 'n': unknown operator 'm'; use one of $eq, $ne, $gt, $gte, $lt, $lte"),
        ({"n": {"m": {"$like": "a%"}}}, "filter 'm': unknown operator '$like'"),
        ({"n": [{"$or": []}]}, "filter 'n': unknown operator '$or'"),
        ({"n": {"$gt": None}}, "filter 'n': $gt takes a number or a text, not NoneType"),
        ({"n": {"$lte": [1]}}, "filter 'n': $lte takes a number or a text, not list"),
        ({1: "x"}, "filter: key 1 must be text, not int"),
        (["n"], "filter: must be a dict of keys and conditions, not list"),
    ],
)
def test_a_filter_that_cannot_be_evaluated_is_refused_by_name(conditions: Any, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_filter(conditions)
    assert str(refused.value).startswith(message)
