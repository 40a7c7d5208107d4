"""A corpus that grows row by row answers as one that is read at once; a segment is what its rows say."""

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everthread.stores.encoding import Document, encode, pieces
from everthread.stores.scoring import FEWER, Corpus, Query
from everthread.stores.segments import Indexed, Segment, Strings

DIMS = 6
WORDS = [f"w{n}" for n in range(30)]


@dataclass
class Table:
    """Rows as a store keeps them: a row that is written again keeps its place."""

    chance: Random
    threads: bool
    rows: dict[str, Indexed] = field(default_factory=dict)
    version: int = 0

    def written(self, id: str) -> Indexed:
        """Write a row, new or again."""
        text = ". ".join(" ".join(self.chance.choices(WORDS, k=9)) for _ in range(self.chance.randint(1, 3)))
        group = self.chance.choice("abc") if self.threads else ""
        known = self.rows.get(id)
        document = Document(id, text, self.chance.choice(["Ana", "Ben"]), group=known.group if known else group)
        there = self.chance.random() < 0.8
        vectors = np.array([[self.chance.gauss(0, 1) for _ in range(DIMS)] for _ in pieces(document)])
        self.version += 1
        self.rows[id] = Indexed(
            id,
            document.group,
            document.speaker,
            encode(document, vectors if there else None),
            seq=self.version,
            place=known.place if known else self.version,
        )
        return self.rows[id]

    def whole(self) -> Corpus:
        """A corpus of all rows, read at once."""
        places = {row.place: row for row in self.rows.values()}
        return Corpus.from_rows(places[place] for place in sorted(places))


def assert_alike(one: Corpus, other: Corpus) -> None:
    assert one.ids == other.ids
    for query in (Query.of("w1 w2 Ana", np.arange(1.0, DIMS + 1)), Query.of("w3 w4")):
        for found, expected in zip(one.score(query), other.score(query), strict=True):
            assert found.tolist() == pytest.approx(expected.tolist(), abs=2e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.lists(st.integers(0, 9), min_size=1, max_size=25))
def test_what_grew_is_what_is_read_at_once(seed: int, threads: bool, steps: list[int]) -> None:
    table = Table(Random(seed), threads)
    grown = Corpus.from_rows([])
    for size in steps:
        before = {row.seq for row in table.rows.values()}
        for id in table.chance.sample(sorted(table.rows), min(len(table.rows), size // 4)):
            if table.chance.random() < 0.5:
                del table.rows[id]
            else:
                table.written(id)
        for _ in range(size):
            table.written(f"r{table.version}")
        standing = {row.seq for row in table.rows.values()}
        fresh = sorted((row for row in table.rows.values() if row.seq not in before), key=lambda row: row.seq)
        kept = np.array([seq in standing for seq in grown.seqs().tolist()], bool)
        grown = grown.plus(fresh, kept=kept)
        if table.chance.random() < 0.5:
            assert_alike(grown, table.whole())
    assert_alike(grown, table.whole())
    mask = [table.chance.random() < 0.6 for _ in grown.ids]
    assert_alike(grown.subset(mask), table.whole().subset(mask))


def test_many_small_writes_leave_few_segments() -> None:
    table = Table(Random(1), threads=False)
    grown = Corpus.from_rows([])
    for n in range(300):
        grown = grown.plus([table.written(str(n))])
    sizes = [len(segment) for segment in grown.segments]
    assert sum(sizes) == 300
    assert all(size > FEWER * sum(sizes[n + 1 :]) for n, size in enumerate(sizes[:-1]))


def test_rows_that_are_gone_are_dropped_from_memory_when_they_are_many() -> None:
    table = Table(Random(1), threads=False)
    corpus = Corpus.from_rows([]).plus([table.written(str(n)) for n in range(100)])
    few = corpus.plus([], kept=np.arange(100) >= 20)
    many = few.plus([], kept=np.arange(80) >= 20)
    assert [[len(segment) for segment in each.segments] for each in (few, many)] == [[100], [60]]
    assert many.ids == [str(n) for n in range(40, 100)]
    assert many.nbytes < 0.7 * few.nbytes


def test_corpora_of_several_spaces_are_one() -> None:
    table = Table(Random(2), threads=False)
    rows = [table.written(str(n)) for n in range(40)]
    parts = [Corpus.from_rows(rows[:25]), Corpus.from_rows(rows[25:])]
    assert_alike(Corpus.joined(parts), Corpus.from_rows(rows))
    assert Corpus.joined(parts).find("30") == 30
    assert Corpus.joined(parts).subset([n != 3 for n in range(40)]).find("30") == 29
    assert Corpus.joined(parts).subset([n != 30 for n in range(40)]).find("30") is None


def test_who_a_row_is_for_and_when_is_asked_once_for_each_reach() -> None:
    blob = encode(Document("a", "tea"), None)
    rows = [
        Indexed("a", "", None, blob, 1, 1),
        Indexed("b", "", None, blob, 2, 2, since=100),
        Indexed("c", "", None, blob, 3, 3, until=100),
        Indexed("d", "", None, blob, 4, 4, reach="ana"),
        Indexed("e", "", None, blob, 5, 5, reach="ana"),
    ]
    asked: list[str] = []

    def allows(reach: str) -> bool:
        asked.append(reach)
        return reach == ""

    corpus = Corpus.from_rows(rows)
    assert corpus.holding(allows, 99).tolist() == [True, False, True, False, False]
    assert corpus.holding(lambda _: True, 100).tolist() == [True, True, False, True, True]
    assert asked == ["", "ana"]


@given(st.lists(st.text(max_size=5), max_size=20), st.text(min_size=1, max_size=3))
def test_texts_come_back_and_are_found(texts: list[str], sought: str) -> None:
    strings = Strings(texts)
    assert [strings[n] for n in range(len(texts))] == texts
    assert strings.find(sought) == [n for n, text in enumerate(texts) if text == sought]


def test_rows_of_two_dimensions_are_kept_apart() -> None:
    wide, narrow = Document("a", "tea"), Document("b", "tea")
    rows = [
        Indexed("a", "", None, encode(wide, np.ones((1, 8)))),
        Indexed("b", "", None, encode(narrow, np.ones((1, 4)))),
    ]
    assert {dims: vectors.rows.tolist() for dims, vectors in Segment.of(rows).vectors.items()} == {4: [1], 8: [0]}
