"""What every backend promises about recall: what is found, how it is ordered, what is said about it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from support.records import NOON, BrokenEmbeddings, TopicEmbeddings, create, keep, learnt, said_by, write

from everthread import Evidence, Identity, Scope
from everthread.errors import UsageError
from everthread.stores import MemoryStore
from everthread.stores.identity import Within
from everthread.stores.record import Change, Recall


def found(recall: Recall) -> list[str | None]:
    return [hit.record_id for hit in recall.hits]


def said(thread_id: str, message_id: str, text: str, at: datetime = NOON) -> Evidence:
    return Evidence(thread_id=thread_id, message_id=message_id, role="user", text=text, at=at, source="user")


# --- finding


@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("Ana prefers window seats on trains", "which seat does Ana prefer?"),
        ("The deadline of Brno is on 8 May 2026", "deadline brno"),
        ("安娜喜欢喝绿茶，不喜欢咖啡", "她喜欢喝什么茶？"),
        ("アナは東京に住んでいます", "東京"),
        ("안나는 서울에 산다", "서울"),
        ("Anna bor i Malmö", "malmö"),
        ("Анна живёт в Праге", "праге"),
        ("Use flag --no-cache 🚀 for builds", "no cache builds"),
    ],
)
@pytest.mark.parametrize("embedder", [None, "none"])
def test_a_record_is_found_in_its_language(
    reopen: Any, ana: Identity, statement: str, question: str, embedder: str | None
) -> None:
    store: MemoryStore = reopen(embedder=embedder)
    (record, _) = keep(store, ana, learnt(statement), learnt("The invoice run starts at midnight"))
    assert found(store.recall(ana, question))[:1] == [record.id]


def test_a_hit_says_what_it_is_and_why(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana prefers window seats"))
    (hit,) = store.recall(ana, "window seats").hits
    assert (hit.source, hit.record_id, hit.revision) == ("records", record.id, 1)
    assert (hit.thread_id, hit.message_ids, hit.at) == ("t1", ("m1",), NOON)
    assert (hit.statement, hit.speaker) == ("Ana prefers window seats", None)
    assert (hit.signals.keyword, hit.signals.semantic, hit.signals.importance) == (1.0, 1.0, 0.5)
    assert hit.signals.coverage == 1.0 and hit.signals.likeness == pytest.approx(0.72, abs=0.02)
    assert hit.why == (
        "has 1.00 of the question's words (1.00 of the best), is alike in meaning by "
        f"{hit.signals.likeness:.2f} (1.00 of the best); user explicit, observed 2026-05-08"
    )


@pytest.mark.parametrize(
    ("statement", "question"),
    [("Ana prefers window seats", "Who repairs the roof of the barn?"), ("安娜喜欢靠窗的座位", "谁来修谷仓的屋顶？")],
)
def test_the_best_of_the_bad_says_how_poor_it_is(
    store: MemoryStore, ana: Identity, statement: str, question: str
) -> None:
    keep(store, ana, learnt(statement), learnt("Xylophone", importance=0.0))
    best = store.recall(ana, question).hits[0]
    assert best.signals.semantic == 1.0 and best.signals.likeness < 0.4 and best.signals.coverage < 0.2
    assert f"is alike in meaning by {best.signals.likeness:.2f} (1.00 of the best)" in best.why


@pytest.mark.parametrize(
    ("words", "question"),
    [("It rained on the barn.", "What did Ben say yesterday?"), ("谷仓上下雨了。", "昨天Ben说了什么？")],
)
def test_the_days_and_the_speaker_that_a_question_names_are_among_the_signals(
    store: MemoryStore, ana: Identity, words: str, question: str
) -> None:
    lines = [("m1", "ben", NOON - timedelta(days=1)), ("m2", "eva", NOON - timedelta(days=9)), ("m3", "ben", NOON)]
    store.transcripts.append(
        ana, [said("t1", id, f"{words} {id}", at).model_copy(update={"speaker": who}) for id, who, at in lines]
    )
    recall = store.recall(ana, question, sources={"evidence"}, asked_at=NOON, explain=True)
    hits = {hit.message_ids[0]: hit for hit in (*recall.hits, *recall.dropped)}
    assert {id: (hit.signals.time, hit.signals.speaker) for id, hit in hits.items()} == {
        "m1": (1.0, 1.0),
        "m2": (0.0, 0.0),
        "m3": (0.0, 1.0),
    }
    assert "is of the days that the question names, was said by whom it names" in hits["m1"].why
    assert hits["m1"].signals.context > 0
    assert all(hit.ranks for hit in hits.values() if hit.signals.keyword or hit.signals.semantic)


def test_meaning_alone_finds(reopen: Any, ana: Identity) -> None:
    store: MemoryStore = reopen(embedder=TopicEmbeddings())
    cat, _ = keep(store, ana, learnt("Ana has a kitten"), learnt("Ana rides the train"))
    assert found(store.recall(ana, "felines"))[:1] == [cat.id]


def test_words_alone_find(reopen: Any, ana: Identity) -> None:
    store: MemoryStore = reopen(embedder=TopicEmbeddings())
    records = [learnt(f"Ana rides train number {n}") for n in range(30)]
    odd = learnt("Zyxwv is what Ana calls it")
    keep(store, ana, *records, odd)
    assert found(store.recall(ana, "zyxwv"))[:1] == [odd.id]


@pytest.mark.parametrize("embedder", [None, "none"])
@pytest.mark.parametrize(
    ("walk", "answer", "question"),
    [
        ("We walked along the river.\x00 ", "Momo, my greyhound, was bitten by a goose! ", "What bit my greyhound?"),
        ("今天我们沿着河边走\ud800了一会儿。", "小林生日那天想要一把吉他。", "小林过生日想要什么？"),
    ],
)
def test_of_a_message_the_sentence_that_answers_is_named(
    reopen: Any, ana: Identity, walk: str, answer: str, question: str, embedder: str | None
) -> None:
    store: MemoryStore = reopen(embedder=embedder)
    long, short = (said("t1", f"m{n}", walk * n + answer + walk * n) for n in (200, 1))
    store.transcripts.append(ana, [long, short, said("t1", "m0", answer)])
    hits = {hit.message_ids[0]: hit for hit in store.recall(ana, question, sources={"evidence"}).hits}
    for id in ("m200", "m1"):
        start, end = hits[id].passage or (0, 0)
        assert hits[id].statement[start:end].strip() == answer.strip()
    assert hits["m0"].passage is None


def test_tags_are_searched(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana likes it dark", tags=("espresso",)))
    assert found(store.recall(ana, "espresso")) == [record.id]


def test_each_text_is_embedded_once_and_queries_as_queries(reopen: Any, ana: Identity) -> None:
    embeddings = TopicEmbeddings()
    store: MemoryStore = reopen(embedder=embeddings)
    keep(store, ana, learnt("Ana has a kitten"))
    store.recall(ana, "felines")
    assert (embeddings.documents, embeddings.queries) == (["Ana has a kitten"], ["felines"])


def test_the_limit_holds(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, *(learnt(f"Train number {n} is late") for n in range(30)))
    assert len(store.recall(ana, "train", limit=7).hits) == 7
    assert len(store.recall(ana, "train", limit=30).hits) == 30


def test_hits_come_best_first(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, *(learnt(f"Train number {n} is late") for n in range(20)))
    scores = [hit.score for hit in store.recall(ana, "train number 7").hits]
    assert scores == sorted(scores, reverse=True)


def test_a_trusted_record_comes_before_a_guess(store: MemoryStore, ana: Identity) -> None:
    guess = learnt("The production database is MySQL", authority="inferred", confidence=0.95)
    stated = learnt("The production database is PostgreSQL", confidence=0.78)
    keep(store, ana, guess, stated)
    assert found(store.recall(ana, "production database")) == [stated.id, guess.id]


def test_near_duplicates_collapse(store: MemoryStore, ana: Identity) -> None:
    first, second = keep(store, ana, learnt("Ana drinks tea."), learnt("ana drinks  tea"))
    recall = store.recall(ana, "tea", explain=True)
    assert len(recall.hits) == 1
    (dropped,) = recall.dropped
    assert {recall.hits[0].record_id, dropped.record_id} == {first.id, second.id}
    assert str(recall.hits[0].record_id) in dropped.why


def test_both_sides_of_a_dispute_come_together(store: MemoryStore, ana: Identity) -> None:
    (office,) = keep(store, ana, learnt("The office is in Brno"))
    other = learnt("They all moved to Prague last winter")
    dispute = Change(action="contest", target=office.id, expected=1, record=other, rule="r", reason="two places")
    write(store, ana, dispute)
    recall = store.recall(ana, "office Brno")
    assert found(recall) == [office.id, other.id]
    assert f"belongs to {office.id}" in recall.hits[1].why
    assert all("contested" in hit.why for hit in recall.hits)


# --- what holds here and now


def test_only_what_is_valid_is_recalled(store: MemoryStore, ana: Identity) -> None:
    day = timedelta(days=1)
    past, future, gone, now = (
        learnt("Train one", valid_to=NOON),
        learnt("Train two", valid_from=NOON + day),
        learnt("Train three", expires_at=NOON),
        learnt("Train four", valid_from=NOON, valid_to=NOON + day, expires_at=NOON + day),
    )
    keep(store, ana, past, future, gone, now)
    recall = store.recall(ana, "train", now=NOON, explain=True)
    assert found(recall) == [now.id]
    assert {hit.record_id: hit.why for hit in recall.dropped} == {
        past.id: "dropped: it was valid until 2026-05-08",
        future.id: "dropped: it is not valid before 2026-05-09",
        gone.id: "dropped: it expired on 2026-05-08",
    }


def test_memory_of_another_agent_version_or_environment_is_not_recalled(store: MemoryStore, ana: Identity) -> None:
    record = learnt("The deploy tool needs a token", agent_family="ops", agent_versions=">=2,<3", environment="prod")
    keep(store, ana, record)

    def recalls(**fields: str) -> list[str | None]:
        return found(store.recall(ana.model_copy(update=fields), "deploy token"))

    assert recalls(agent="ops", agent_version="2.4", environment="prod") == [record.id]
    assert recalls(agent="ops", agent_version="3.0", environment="prod") == []
    assert recalls(agent="ops", environment="prod") == []
    assert recalls(agent="ops", agent_version="2.4", environment="staging") == []
    assert recalls(agent="chat", agent_version="2.4", environment="prod") == []
    assert recalls() == []


def test_superseded_records_are_explained(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana drinks tea"))
    new = learnt("Ana drinks coffee")
    write(store, ana, Change(action="supersede", target=tea.id, expected=1, record=new, rule="r", reason="she said so"))
    recall = store.recall(ana, "what does Ana drink", explain=True)
    assert found(recall) == [new.id]
    assert [(hit.record_id, hit.why) for hit in recall.dropped] == [(tea.id, "dropped: it is superseded")]


def test_the_past_is_recalled_as_it_stood(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana drinks tea"))
    then = tea.recorded_at
    new = learnt("Ana drinks coffee")
    write(store, ana, Change(action="supersede", target=tea.id, expected=1, record=new, rule="r", reason="she said so"))
    (hit,) = store.recall(ana, "what does Ana drink", as_of=then).hits
    assert (hit.record_id, hit.revision) == (tea.id, 1)
    assert store.recall(ana, "what does Ana drink", as_of=then - timedelta(seconds=1)).hits == ()


def test_the_past_has_the_scores_that_it_had(store: MemoryStore, ana: Identity) -> None:
    records = [keep(store, ana, learnt(f"Train {n} goes to platform {n % 3}"))[0] for n in range(9)]
    before = store.recall(ana, "train platform 2", now=NOON)
    keep(store, ana, *(learnt(f"Platform {n} is closed") for n in range(9)))
    assert store.recall(ana, "train platform 2", as_of=records[-1].recorded_at, now=NOON).hits == before.hits


def test_a_revision_is_found_by_its_new_words_alone(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana drinks oolong"))
    revised = tea.model_copy(update={"statement": "Ana drinks sencha"})
    change = Change(action="revise", target=tea.id, expected=1, record=revised, rule="r", reason="a correction")
    write(store, ana, change)
    assert store.recall(ana, "sencha").hits[0].signals.keyword == 1.0
    assert [hit.signals.keyword for hit in store.recall(ana, "oolong").hits] in ([], [0.0])


# --- scopes


def test_narrowed_memory_holds_only_there(store: MemoryStore, ana: Identity) -> None:
    scope = Scope(owner="user", owner_id="ana", within=Within(application="shop", thread="t1"))
    shop = ana.model_copy(update={"application": "shop"})
    (record,) = keep(store, shop, learnt("Ana buys tea", scope=scope))
    assert found(store.recall(shop, "tea", thread_id="t1")) == [record.id]
    assert found(store.recall(shop, "tea", thread_id="t2")) == []
    assert found(store.recall(shop, "tea")) == []
    assert found(store.recall(ana, "tea", thread_id="t1")) == []


def test_a_search_can_be_narrowed_to_scopes(store: MemoryStore, ana: Identity) -> None:
    mine, ours = keep(store, ana, learnt("Ana reviews trains"), learnt("We review trains", "project", "billing"))
    in_shop = Scope(owner="user", owner_id="ana", within=Within(project="billing"))
    (narrow,) = keep(store, ana, learnt("Ana reviews billing trains", scope=in_shop))
    user = Scope(owner="user", owner_id="ana")
    assert set(found(store.recall(ana, "trains"))) == {mine.id, ours.id, narrow.id}
    assert set(found(store.recall(ana, "trains", scopes=[user]))) == {mine.id, narrow.id}
    assert found(store.recall(ana, "trains", scopes=[in_shop])) == [narrow.id]
    assert found(store.recall(ana, "trains", scopes=[Scope(owner="project", owner_id="billing")])) == [ours.id]


def test_an_empty_search_scope_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="scopes is empty"):
        store.recall(ana, "tea", scopes=[])


# --- evidence


def test_messages_are_found_when_asked_for(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana drinks tea"))
    store.transcripts.append(ana, [said("t1", "m1", "I only drink tea"), said("t1", "m2", "The train was late")])
    assert found(store.recall(ana, "tea")) == [record.id]
    (hit, *_) = store.recall(ana, "drink tea", sources={"evidence"}).hits
    assert (hit.source, hit.record_id, hit.thread_id, hit.message_ids) == ("evidence", None, "t1", ("m1",))
    assert (hit.statement, hit.at) == ("I only drink tea", NOON)
    both = store.recall(ana, "drink tea", sources=["records", "evidence"]).hits
    assert {hit.source for hit in both} == {"records", "evidence"}


def test_evidence_has_a_floor_too(store: MemoryStore, ana: Identity) -> None:
    store.transcripts.append(ana, [said("t1", "m1", "The train was late")])
    recall = store.recall(ana, "quantum chromodynamics", sources={"evidence"}, floor=0.6)
    assert recall.hits == ()
    assert recall.abstained is not None


def test_what_is_said_five_times_takes_one_place_and_says_where_else(store: MemoryStore, ana: Identity) -> None:
    again = [said(f"t{n}", f"m{n}", "I only drink green tea!") for n in range(5)]
    store.transcripts.append(ana, [*again, said("t9", "m9", "Black tea makes me nervous")])
    recall = store.recall(ana, "which tea do I drink", sources={"evidence"}, limit=2, explain=True)
    first, second = recall.hits
    assert (first.statement, second.message_ids) == ("I only drink green tea!", ("m9",))
    others = {hit.message_ids[0] for hit in recall.dropped}
    assert others | set(first.message_ids) == {f"m{n}" for n in range(5)}
    assert all(f"{other} in thread" in first.why for other in others)
    assert all(f"it says the same as {first.message_ids[0]} in thread" in hit.why for hit in recall.dropped)
    assert store.recall(ana, "which tea do I drink", sources={"evidence"}, limit=2).hits == tuple(
        hit.model_copy(update={"ranks": {}}) for hit in recall.hits
    )


def test_evidence_of_the_future_is_not_in_the_past(store: MemoryStore, ana: Identity) -> None:
    later = said("t1", "m2", "I drink tea and more tea", NOON + timedelta(days=1))
    store.transcripts.append(ana, [said("t1", "m1", "I drink tea"), later])
    hits = store.recall(ana, "tea", sources={"evidence"}, as_of=NOON).hits
    assert [hit.message_ids for hit in hits] == [("m1",)]


# --- nothing, and less than all


@pytest.mark.parametrize("question", ["", "   ", "?!…", "what was it that you did", "\x00", "我们是什么", "\ud800"])
def test_a_question_without_words_is_not_answered(store: MemoryStore, ana: Identity, question: str) -> None:
    keep(store, ana, learnt("What was it that you did, my friend?"))
    recall = store.recall(ana, question)
    assert (recall.hits, recall.abstained) == ((), "the query has no word to search for")


def test_nothing_known_is_said_so(store: MemoryStore, ana: Identity) -> None:
    recall = store.recall(ana, "trains")
    assert (recall.hits, recall.abstained) == ((), "nothing that may be read has to do with the question")


def test_below_the_floor_nothing_is_returned(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana drinks tea"))
    assert found(store.recall(ana, "tea", floor=0.3)) == [record.id]
    recall = store.recall(ana, "tea in the quantum railway", floor=0.99, explain=True)
    assert recall.hits == ()
    assert str(recall.abstained).startswith("nothing reaches the floor of 0.99; the best scored 0.")
    assert [hit.record_id for hit in recall.dropped] == [record.id]
    assert recall.dropped[0].why.startswith("dropped: its score is below the floor of 0.99 (")


def test_explain_names_what_came_too_late(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, *(learnt(f"Train number {n} is late") for n in range(4)))
    recall = store.recall(ana, "train", limit=1, explain=True)
    assert len(recall.hits) == 1
    assert ["it comes after the first 1" in hit.why for hit in recall.dropped] == [True] * 3
    assert store.recall(ana, "train", limit=1).dropped == ()


def test_keywords_answer_when_the_embedder_fails(reopen: Any, ana: Identity) -> None:
    embeddings = BrokenEmbeddings(broken=False)
    store: MemoryStore = reopen(embedder=embeddings)
    (record,) = keep(store, ana, learnt("Ana has a kitten"))
    embeddings.broken = True
    recall = store.recall(ana, "kitten")
    assert found(recall) == [record.id]
    assert recall.degraded == ("semantic: ConnectionError: the provider cannot be reached",)


def test_another_embedder_works_on_keywords_until_its_job_has_run(reopen: Any, ana: Identity) -> None:
    reopen(embedder=TopicEmbeddings()).commit(ana, [create(learnt("Ana has a kitten"))], key="k")
    store: MemoryStore = reopen()
    new = learnt("Ana also has a cat called Tomato")
    write(store, ana, create(new))
    recall = store.recall(ana, "kitten")
    semantic = {hit.statement: hit.signals.semantic for hit in recall.hits}
    assert semantic == {"Ana has a kitten": 0.0, "Ana also has a cat called Tomato": 1.0}
    assert "TopicEmbeddings" in recall.degraded[0]
    assert store.jobs.drain(store.handlers()) == 1
    again = store.recall(ana, "kitten")
    assert again.degraded == ()
    assert again.hits[0].signals.semantic == 1.0
    assert all(finding.ok for finding in store.doctor())


def test_a_huge_question_is_cut_and_says_so(store: MemoryStore, ana: Identity) -> None:
    (record,) = keep(store, ana, learnt("Ana drinks tea"))
    for question in ("tea " * 2_500_000, "What do I drink?\n" + "0 " * 500_000, "0 " * 500_000 + "\nDo I drink tea?"):
        recall = store.recall(ana, question)
        assert found(recall) == [record.id]
        assert recall.degraded == ("query: only its first and last 2,000 characters were searched",)


@pytest.mark.parametrize("sources", [(), {"notes"}, "records"])
def test_unknown_sources_are_refused(store: MemoryStore, ana: Identity, sources: Any) -> None:
    with pytest.raises(UsageError, match="sources"):
        store.recall(ana, "tea", sources=sources)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("limit", value) for value in (0, -1, 2.5, "3", True, None)),
        *(("floor", value) for value in (float("nan"), float("inf"), "0.2")),
        ("thread_id", 5),
        *(("query", value) for value in (None, 5, b"tea")),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(store: MemoryStore, ana: Identity, name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        store.recall(ana, **{"query": "tea", name: value})


def test_a_time_without_a_zone_is_refused(store: MemoryStore, ana: Identity) -> None:
    with pytest.raises(UsageError, match="as_of has no time zone"):
        store.recall(ana, "tea", as_of=datetime(2026, 1, 1))


async def test_recall_and_commit_run_under_asyncio(store: MemoryStore, ana: Identity) -> None:
    record = learnt("Ana drinks tea")
    await store.acommit(ana, [create(record)], key="k")
    assert found(await store.arecall(ana, "tea")) == [record.id]


# --- the index


def test_the_index_can_be_built_again(store: MemoryStore, ana: Identity) -> None:
    keep(store, ana, *(learnt(f"Train {n} goes to platform {n % 3}") for n in range(9)))
    store.transcripts.append(ana, [said("t1", f"m{n}", f"message {n} about trains") for n in range(9)])
    sources: Any = {"records", "evidence"}
    before = store.recall(ana, "train platform 2", sources=sources, limit=30, now=NOON)
    assert store.rebuild() == 18
    assert store.recall(ana, "train platform 2", sources=sources, limit=30, now=NOON) == before
    assert all(finding.ok for finding in store.doctor())


def test_a_new_store_is_sound(store: MemoryStore) -> None:
    assert [(finding.check, finding.ok) for finding in store.doctor()] == [
        ("versions", True),
        ("file", True),
        ("history", True),
        ("fields", True),
        ("relations", True),
        ("orphans", True),
        ("audit", True),
        ("vectors", True),
        ("index", True),
        ("jobs", True),
    ]


def test_confirmed_sources_do_not_change_what_is_found(store: MemoryStore, ana: Identity) -> None:
    (tea,) = keep(store, ana, learnt("Ana drinks tea"))
    before = store.recall(ana, "tea", now=NOON).hits
    for thread in ("t2", "t3", "t4"):
        current = store.record(ana, tea.id)
        assert current is not None
        source = said_by("ana", thread)
        write(
            store,
            ana,
            Change(action="confirm", target=tea.id, expected=current.revision, source=source, rule="r", reason="again"),
        )
    after = store.recall(ana, "tea", now=NOON).hits
    assert [hit.model_copy(update={"revision": 1}) for hit in after] == list(before)


@pytest.mark.parametrize(
    ("question", "task", "answers"),
    [
        ("When is the deploy?", "We move the billing service to Oslo.", ["The shop", "The billing service"]),
        ("什么时候部署？", "我们把账单服务迁到奥斯陆。", ["商店", "账单服务"]),
    ],
)
def test_of_what_answers_alike_what_belongs_to_the_task_comes_first(
    store: MemoryStore, ana: Identity, question: str, task: str, answers: list[str]
) -> None:
    deploys = "{}在星期一部署。" if question[0] == "什" else "{} has its deploy on Monday."
    shop, billing = keep(store, ana, *(learnt(deploys.format(what)) for what in answers))
    keep(store, ana, learnt("Billing, billing service, Oslo."))
    plain = store.recall(ana, question, floor=0.1)
    working = store.recall(ana, question, floor=0.1, task=task)
    scores = {hit.record_id: hit for hit in working.hits}
    assert scores[billing.id].signals.task > scores[shop.id].signals.task
    before = {hit.record_id: hit.score for hit in plain.hits}
    assert scores[billing.id].score / before[billing.id] > scores[shop.id].score / before[shop.id]
    assert {hit.signals.task for hit in plain.hits} == {0.0}
    # what has nothing to do with the question is not brought by the task
    assert set(found(working)) == set(found(plain)) == {shop.id, billing.id}
