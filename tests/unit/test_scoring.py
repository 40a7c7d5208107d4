"""What a corpus answers, by hand-made vectors and by the built-in embedder."""

import math
import struct
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from everthread.errors import StoreError
from everthread.stores.embedding import StaticEmbedder, Tokens, resolve_embedder
from everthread.stores.encoding import HEAD, MAX_EMBEDDED, MAX_PIECES, term_hash
from everthread.stores.scoring import Corpus, Document, Query, encode, pieces
from everthread.stores.text import query_terms, stem, terms

EMBEDDER = resolve_embedder(None)


def vectors_of(document: Document) -> NDArray[np.float32]:
    assert EMBEDDER is not None
    return EMBEDDER.embed_documents(pieces(document))


def vector_of(text: str) -> NDArray[np.float32]:
    assert EMBEDDER is not None
    return EMBEDDER.embed_query(text)


def tokens_of(text: str) -> Tokens:
    assert isinstance(EMBEDDER, StaticEmbedder)
    return EMBEDDER.embed_tokens(text)


def row(document: Document, vectors: NDArray[Any] | None = None) -> tuple[str, str, str | None, bytes]:
    return document.id, document.group, document.speaker, encode(document, vectors)


def corpus(*texts: str, group: str = "") -> Corpus:
    """Texts without vectors; their ids are 0, 1, 2, ..."""
    return Corpus.from_rows(row(Document(str(n), text, group=group)) for n, text in enumerate(texts))


def best(found: Corpus, query: Query, most: int = 1) -> list[str]:
    return [found.ids[n] for n in np.argsort(-found.score(query).fused, kind="stable")[:most]]


def bm25(query: str, texts: Sequence[str], b: float = 0.5) -> list[float]:
    """BM25 by its formula, a term at a time."""
    bags = [terms(text) for text in texts]
    mean = sum(map(len, bags)) / len(bags)
    scores = [0.0] * len(texts)
    for term, weight in query_terms(query).items():
        containing = sum(term in bag for bag in bags)
        idf = math.log(1 + (len(bags) - containing + 0.5) / (containing + 0.5))
        for n, bag in enumerate(bags):
            tf = bag.count(term)
            scores[n] += weight * idf * 2.2 * tf / (tf + 1.2 * (1 - b + b * len(bag) / mean))
    return scores


TEXTS = ["tea is good, tea is green", "coffee at nine", "我喜欢喝绿茶", "green light for the deploy at nine o'clock"]


@pytest.mark.parametrize("query", ["green tea", "coffee at nine", "绿茶", "what about tea tea"])
def test_keywords_score_by_bm25_with_the_statistics_of_the_corpus(query: str) -> None:
    expected = np.array(bm25(query, TEXTS))
    assert corpus(*TEXTS).score(Query.of(query)).keyword == pytest.approx(expected / expected.max(), abs=1e-5)


@given(st.lists(st.text("ab 茶绿", min_size=1, max_size=12), min_size=1, max_size=6), st.text("ab 茶绿", max_size=6))
def test_bm25_agrees_with_its_formula_on_any_corpus(texts: list[str], query: str) -> None:
    scores = corpus(*texts).score(Query.of(query)).keyword
    expected = np.array(bm25(query, texts)) if any(map(terms, texts)) else np.zeros(len(texts))
    assert scores == pytest.approx(expected / (expected.max() or 1), abs=1e-4)


def test_a_document_its_neighbours_and_its_thread_add_up_as_the_module_says() -> None:
    said = {
        "a": ["green tea is good", "yes, very green", "and coffee?"],
        "b": ["the deploy is green", "tea at nine", "no"],
        "c": ["green light"],
    }
    threads = [(thread, n) for thread, texts in said.items() for n in range(len(texts))]
    texts = [said[thread][n] for thread, n in threads]
    windows = [" ".join(said[thread][max(0, n - 1) : n + 2]) for thread, n in threads]
    whole = dict(zip(said, bm25("green tea", [" ".join(texts) for texts in said.values()], 0.75), strict=True))
    parts = [bm25("green tea", texts), bm25("green tea", windows, 0.75), [whole[thread] for thread, _ in threads]]
    own, window, thread = (np.array(part) / max(part) for part in parts)
    lengths = np.array([len(terms(text)) for text in texts])
    context = 16 / (16 + lengths.mean()) * (1 - 3 / 7)
    expected = (own + context * (window + thread)) * lengths / (lengths + 1)
    documents = [Document(f"{thread}{n}", text, group=thread) for (thread, n), text in zip(threads, texts, strict=True)]
    scores = Corpus.from_rows(map(row, documents)).score(Query.of("green tea"))
    assert scores.fused == pytest.approx(expected / expected.max(), abs=1e-5)


def test_an_empty_corpus_scores_nothing() -> None:
    assert [part.tolist() for part in Corpus.from_rows([]).score(Query.of("tea", np.ones(3)))] == [[]] * 10


def test_one_document_is_scored() -> None:
    scores = corpus("green tea").score(Query.of("tea", vector_of("tea")))
    assert (scores.keyword.tolist(), scores.fused.tolist()) == ([1.0], [1.0])


def test_a_query_without_a_known_word_scores_nothing() -> None:
    scores = corpus(*TEXTS).score(Query.of("zebra"))
    assert [part.tolist() for part in scores] == [[0.0] * 4] * 10


def test_a_subset_is_scored_as_if_the_others_did_not_exist() -> None:
    documents = [Document(str(n), text, group="t", speaker="Ana" if n % 2 else "Ben") for n, text in enumerate(TEXTS)]
    rows = [row(document, vectors_of(document)) for document in documents]
    mask = [True, False, True, False]
    alone = Corpus.from_rows(kept for kept, keep in zip(rows, mask, strict=True) if keep)
    part = Corpus.from_rows(rows).subset(mask)
    query = Query.of("Ben, green tea?", vector_of("Ben, green tea?"))
    assert part.ids == alone.ids == ["0", "2"]
    for one, other in zip(part.score(query), alone.score(query), strict=True):
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-5)


def test_a_date_is_found_as_people_write_it() -> None:
    days = [Document(str(n), "went out", date=datetime(2023, 5, n, 9, tzinfo=UTC)) for n in (7, 8)]
    assert best(Corpus.from_rows(map(row, days)), Query.of("What happened on 8 May 2023?")) == ["8"]


def test_the_days_that_a_question_names_come_first() -> None:
    days = [Document(str(n), "went out", date=datetime(2023, 5, n, 9, tzinfo=UTC)) for n in (7, 8, 9)]
    found, today = Corpus.from_rows(map(row, days)), date(2023, 5, 9)
    assert best(found, Query.of("Where did I go yesterday? went out", today=today)) == ["8"]
    assert best(found, Query.of("去了哪里 went out 前天", today=today)) == ["7"]
    assert best(found, Query.of("Where did I go last year? went out", today=today), 3) == ["7", "8", "9"]


def test_a_day_lifts_nothing_that_has_no_other_merit() -> None:
    days = [Document(str(n), text, date=datetime(2023, 5, 8, 9, tzinfo=UTC)) for n, text in enumerate(TEXTS)]
    scores = Corpus.from_rows(map(row, days)).score(Query.of("the zebra of yesterday", today=date(2023, 5, 9)))
    assert scores.fused.tolist() == [0.0] * 4


def test_a_word_that_all_documents_have_says_less() -> None:
    texts = ["Caroline paints the sea.", "Caroline is at home.", "Caroline went swimming.", "Caroline met Caroline."]
    documents = [Document(str(n), text) for n, text in enumerate(texts)]
    found = Corpus.from_rows(row(document, vectors_of(document)) for document in documents)
    question = "Did Caroline make a picture?"
    plain = found.score(Query.of(question, vector_of(question))).semantic
    weighed = found.score(Query.of(question, vector_of(question), tokens=tokens_of(question))).semantic
    assert (weighed[3] - weighed[0]) < (plain[3] - plain[0])


def test_without_words_that_say_something_the_plain_vector_is_asked() -> None:
    document = Document("a", "I like green tea.")
    found = Corpus.from_rows([row(document, vectors_of(document))])
    for question in ("", "?!", "what is it"):
        plain = found.score(Query.of(question, vector_of(question)))
        weighed = found.score(Query.of(question, vector_of(question), tokens=tokens_of(question)))
        assert [part.tolist() for part in plain] == [pytest.approx(part.tolist(), abs=1e-6) for part in weighed]


def test_the_thread_that_is_about_the_question_comes_first() -> None:
    said = [
        Document("swim", "The sea was warm, we swam.", group="holiday"),
        Document("sea", "Then the sea again, and a boat.", group="holiday"),
        Document("sand", "And there was so much sand.", group="holiday"),
        Document("mail", "Please answer this mail.", group="office"),
        Document("office sand", "And there was so much sand.", group="office"),
        Document("lunch", "Lunch is ready.", group="office"),
    ]
    mixed = [said[n] for n in (5, 4, 3, 2, 1, 0)]
    assert best(Corpus.from_rows(map(row, said)), Query.of("sand by the sea"), 4)[-2:] == ["sand", "office sand"]
    assert best(Corpus.from_rows(map(row, mixed)), Query.of("sand by the sea"), 4)[-2:] == ["sand", "office sand"]


def test_a_remark_of_one_word_counts_half() -> None:
    scores = corpus("tea", "tea tea", "coffee").score(Query.of("tea"))
    assert scores.fused[:2].tolist() == pytest.approx([0.5 / (2 / 3) * scores.keyword[0], scores.keyword[1]], abs=1e-5)


def test_the_speaker_is_part_of_what_is_found() -> None:
    said = [Document("a", "I paint.", speaker="Ana"), Document("b", "I paint.", speaker="Ben")]
    assert best(Corpus.from_rows(map(row, said)), Query.of("what does Ben do")) == ["b"]


def test_a_chinese_speaker_is_recognised_inside_a_question() -> None:
    said = [Document("a", "周末我去爬山。", speaker="李雷"), Document("b", "周末我去爬山。", speaker="韩梅")]
    assert best(Corpus.from_rows(map(row, said)), Query.of("韩梅周末去爬山吗")) == ["b"]


def test_a_neighbour_in_the_thread_lends_its_words() -> None:
    said = [
        Document("ask", "Which mountain did you climb?", group="one"),
        Document("answer", "The Zugspitze!", group="one"),
        Document("other", "The Spree!", group="two"),
    ]
    assert best(Corpus.from_rows(map(row, said)), Query.of("climb a mountain"), 2) == ["ask", "answer"]


def test_threads_may_be_interleaved() -> None:
    said = [Document(f"{group}{n}", text, group=group) for n, text in enumerate(TEXTS) for group in "ab"]
    in_turn = Corpus.from_rows(map(row, said))
    one_by_one = Corpus.from_rows(map(row, sorted(said, key=lambda document: document.group)))
    query = Query.of("green tea")
    by_id = dict(zip(in_turn.ids, in_turn.score(query).fused.tolist(), strict=True))
    assert by_id == dict(zip(one_by_one.ids, one_by_one.score(query).fused.tolist(), strict=True))


def test_records_do_not_lend_each_other_anything() -> None:
    scores = corpus("Which mountain did you climb?", "The Zugspitze!").score(Query.of("climb a mountain"))
    assert scores.fused.tolist() == [1.0, 0.0]


def test_meaning_finds_what_no_word_does() -> None:
    documents = [Document("dog", "My puppy is a beagle."), Document("build", "The release failed again.")]
    found = Corpus.from_rows(row(document, vectors_of(document)) for document in documents)
    question = "Which dogs are there?"
    scores = found.score(Query.of(question, vector_of(question)))
    assert (scores.keyword.tolist(), scores.semantic[0], int(scores.fused.argmax())) == ([0.0, 0.0], 1.0, 0)


def test_int8_keeps_the_cosine() -> None:
    document = Document("a", "Ana prefers green tea over coffee in the morning.")
    question = vector_of("What does she drink?")
    scores = Corpus.from_rows([row(document, vectors_of(document))]).score(Query.of("What does she drink?", question))
    assert scores.cosine == pytest.approx(vectors_of(document) @ question, abs=0.005)


def test_the_best_piece_of_a_long_text_speaks_for_it() -> None:
    filler = "The meeting went on for a while and nobody said much. " * 20
    document = Document("long", f"{filler}My dog Biscuit is a beagle. {filler}")
    question = vector_of("My dog Biscuit is a beagle.")
    scores = Corpus.from_rows([row(document, vectors_of(document))]).score(Query.of("beagle", question))
    assert scores.cosine[0] > 0.6


def test_rows_without_vectors_are_found_by_their_words() -> None:
    documents = [Document("with", "I like green tea."), Document("without", "I like black coffee.")]
    rows = [row(documents[0], vectors_of(documents[0])), row(documents[1])]
    scores = Corpus.from_rows(rows).score(Query.of("black coffee", vector_of("black coffee")))
    assert (int(scores.fused.argmax()), scores.cosine[1], scores.coverage[1]) == (1, 0.0, 1.0)
    assert scores.relevance[1] == 1.0


@pytest.mark.parametrize("dims", [1, 8, 300])
def test_rows_of_another_dimension_count_as_missing(dims: int) -> None:
    document = Document("a", "I like green tea.")
    rows = [row(document, vectors_of(document)), row(document._replace(id="b"), np.ones((1, dims)))]
    both = Corpus.from_rows(rows)
    ours = both.score(Query.of("tea", vector_of("tea")))
    theirs = both.score(Query.of("tea", np.ones(dims)))
    assert (ours.cosine[0] > 0, ours.cosine[1]) == (True, 0.0)
    assert (theirs.cosine[0], theirs.cosine[1]) == (0.0, pytest.approx(1.0))


def test_a_term_found_in_a_small_corpus_covers_its_share() -> None:
    scores = corpus("Ana's dog is called Biscuit.").score(Query.of("dog name"))
    assert 0.4 < scores.coverage[0] < 0.5


def test_a_long_message_is_not_asked_to_be_covered_whole() -> None:
    question = "aisle seat please while I check hotels museums trains weather passports currency luggage and insurance"
    scores = corpus("On long flights Ana takes an aisle seat.", "Ana likes tea.").score(Query.of(question))
    assert 0.14 < scores.coverage[0] < 0.2
    assert corpus(question).score(Query.of(question)).coverage[0] == 1.0


def test_another_speaker_s_words_do_not_answer_for_the_one_who_is_asked_about() -> None:
    said = [
        Document("a", "I adopted a puppy from the shelter.", speaker="Ana"),
        Document("b", "I went to the cinema.", speaker="Ben"),
        Document("c", "I painted the kitchen.", speaker="Ben"),
    ]
    found = Corpus.from_rows(map(row, said))
    hers, his = (found.score(Query.of(f"Which puppy did {name} adopt?")) for name in ("Ana", "Ben"))
    assert [found.ids[int(scores.fused.argmax())] for scores in (hers, his)] == ["a", "a"]
    assert his.relevance.max() < 0.5 * hers.relevance.max()


def test_a_long_message_is_measured_by_its_meaning_more_than_by_its_words() -> None:
    documents = [Document("puppy", "My puppy is a beagle."), Document("build", "The release failed again.")]
    found = Corpus.from_rows(row(document, vectors_of(document)) for document in documents)

    def relevance(question: str) -> float:
        scores = found.score(Query.of(question, vector_of(question)))
        return float(scores.relevance.max()) - 0.5 * float(scores.coverage.max())

    assert relevance(" ".join(f"puppy{n}" for n in range(40))) > relevance(" ".join(f"puppy{n}" for n in range(8)))


def test_what_words_say_is_learnt_from_the_embedder() -> None:
    question = "Can you suggest a camera, a really good camera?"
    telling = Query.of(question, vector_of(question), tokens=tokens_of(question)).telling
    assert telling is not None
    said = {word: telling[term_hash(stem(word))] for word in ("suggest", "camera", "really", "good")}
    assert said["camera"] > 2 * max(said["suggest"], said["really"])
    assert all(0 < value <= 1 for value in telling.values())
    once = Query.of("camera", vector_of("camera"), tokens=tokens_of("camera")).telling
    assert once is not None
    assert once[term_hash("camera")] == pytest.approx(said["camera"], rel=0.05)
    assert Query.of(question, vector_of(question)).telling is None


def test_an_answer_that_has_only_the_words_of_asking_covers_little() -> None:
    found = corpus("Can you suggest some props?", "My camera is a Sony.")
    question = "suggest a camera"
    plain = found.score(Query.of(question, vector_of(question))).coverage
    told = found.score(Query.of(question, vector_of(question), tokens=tokens_of(question))).coverage
    assert plain.tolist() == pytest.approx([0.5, 0.5])
    assert told[0] < 0.35 < 0.65 < told[1]


def test_where_hardly_a_word_of_the_question_is_there_a_chance_hit_does_not_outweigh_what_is_like_it() -> None:
    texts = ["I would like props that complement my eco-friendly candles.", "I am a Sony user and need a camera bag."]
    documents = [Document(str(n), text) for n, text in enumerate(texts)]
    found = Corpus.from_rows(row(document, vectors_of(document)) for document in documents)
    question = "Which accessories would complement my current photography setup and my lenses?"
    scores = found.score(Query.of(question, vector_of(question)))
    assert (scores.keyword.tolist(), int(scores.semantic.argmax())) == ([1.0, 0.0], 1)
    assert int(scores.fused.argmax()) == 1


def test_the_neighbours_of_long_messages_say_less_of_them() -> None:
    def lent(filler: str) -> float:
        """What an answer without a word of the question has beside the question itself."""
        said = [
            Document("ask", f"Which mountain did you climb? {filler}", group="one"),
            Document("answer", f"The Zugspitze! {filler}", group="one"),
        ]
        scores = Corpus.from_rows(map(row, said)).score(Query.of("climb a mountain"))
        return float(scores.fused[1])

    assert 0 < lent("And then we all went home and slept for a while, since it was late. " * 5) < 0.7 * lent("")


@pytest.mark.parametrize("question", ["我明天去哪里开会", "法国的首都是哪座城市"])
def test_chinese_texts_of_the_same_characters_are_not_alike(question: str) -> None:
    texts = ["妈妈昨天在家里做饭。", "爸爸在公园里跑步。", "小明在学校里上课。", "奶奶在院子里种花。"]
    documents = [Document(str(n), text) for n, text in enumerate(texts)]
    found = Corpus.from_rows(row(document, vectors_of(document)) for document in documents)
    scores = found.score(Query.of(question, vector_of(question), tokens=tokens_of(question)))
    assert (scores.cosine.max() > 0.3, scores.relevance.max() < 0.2) == (True, True)
    answered = found.score(Query.of("奶奶种什么花", vector_of("奶奶种什么花"), tokens=tokens_of("奶奶种什么花")))
    assert (int(answered.fused.argmax()), answered.relevance.max() > 0.4) == (3, True)


def test_relevance_keeps_the_order_and_measures_it_absolutely() -> None:
    scores = corpus(*TEXTS).score(Query.of("green zebra"))
    assert scores.relevance == pytest.approx(scores.fused * scores.coverage.max())


def test_a_bigger_level_of_likeness_of_another_embedder_is_learnt_from_the_corpus() -> None:
    base = np.ones(64) * 2
    noise = np.random.default_rng(7).normal(size=(301, 64))
    rows = [row(Document(str(n), f"w{n}"), (base + noise[n])[None]) for n in range(300)]
    scores = Corpus.from_rows(rows).score(Query.of("unrelated", base + noise[300]))
    assert scores.cosine.min() > 0.6
    assert scores.relevance.max() < 0.26


def test_pieces_are_whole_sentences_with_the_speaker() -> None:
    text = "I bought version 3.5 today. It was cheap! " + "It works well. " * 4 + "我喜欢它。真的很好！"
    assert pieces(Document("a", text, speaker="Ana")) == [
        "Ana: I bought version 3.5 today. It was cheap! It works well. It works well. It works well. It works well.",
        "Ana: 我喜欢它。 真的很好！",
    ]


@given(st.text(max_size=3000))
def test_every_text_has_pieces_and_a_row(text: str) -> None:
    document = Document("a", text)
    assert 1 <= len(pieces(document)) <= MAX_PIECES
    scores = Corpus.from_rows([row(document, np.ones((len(pieces(document)), 4)))]).score(Query.of(text, np.ones(4)))
    assert all(np.isfinite(part).all() for part in scores)


@pytest.mark.parametrize("text", ["a. " * 500_000, "x" * 2_000_000, "茶" * 1_000_000, "\n" * 100_000])
def test_a_huge_text_has_a_small_row(text: str) -> None:
    parts = pieces(Document("a", text))
    assert (len(parts) <= MAX_PIECES, sum(map(len, parts)) <= 2 * MAX_EMBEDDED) == (True, True)
    assert len(encode(Document("a", text), np.ones((len(parts), 256)))) < 20_000


def test_a_row_holds_no_word_of_the_text() -> None:
    blob = encode(Document("a", "Biscuit 团子", speaker="Clara"), None)
    assert [word.encode() in blob for word in ("Biscuit", "biscuit", "团子", "Clara", "clara")] == [False] * 5


def test_a_row_is_the_same_in_every_process() -> None:
    document = Document("a", "Tea, tea 茶", speaker="Ana", date=datetime(2024, 3, 1, tzinfo=UTC))
    assert encode(document, np.array([[1.0, -0.5]])).hex() == (
        "010003000100020003000000040000002d111ea11fb8a626ebb003d5fc942c0761af769e2bbc00590402013c"
        "0100020001000100010001000f007fc0"
    )


@given(st.text(st.characters(max_codepoint=0x7F), max_size=200), st.sampled_from([None, "Ana B.", "阿娜"]))
def test_a_row_has_the_terms_of_its_text(text: str, speaker: str | None) -> None:
    """Plain text takes a shorter way to the same terms."""
    document = Document("a", text, speaker=speaker)
    counts = Counter(map(term_hash, terms(f"{speaker or ''} {text}")))
    blob = encode(document, None)
    _, _, _, _, _, count, length = HEAD.unpack_from(blob)
    hashes = struct.unpack_from(f"<{count}I", blob, HEAD.size)
    found = struct.unpack_from(f"<{count}H", blob, HEAD.size + 4 * count)
    assert (dict(zip(hashes, found, strict=True)), length) == (counts, counts.total())


def test_vectors_that_do_not_match_the_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="2 vectors for 1 pieces of a"):
        encode(Document("a", "tea"), np.ones((2, 4)))


@pytest.mark.parametrize("blob", [b"", b"\x01", b"\x09" + bytes(40), encode(Document("a", "green tea"), None)[:-1]])
def test_a_damaged_row_is_named_with_the_remedy(blob: bytes) -> None:
    with pytest.raises(StoreError, match=r"index row of mem_1 .*; rebuild the index"):
        Corpus.from_rows([("mem_1", "", None, blob)])
