"""What of memory stands in a request, where, and what of it does not: through the agent, as a user sees it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from support.models import FakeModel
from support.records import create, keep, learnt, said_by, write

from everthread import Evidence, Identity, MemoryContext, Record
from everthread.errors import UsageError
from everthread.graphs import MemoryMiddleware, create_memory_agent, gate
from everthread.nodes import Reason, Retrieve, memory_block, runtime_for
from everthread.nodes.block import CONTESTED, RESIDENT
from everthread.stores import MemoryStore, SqliteStore, open_checkpointer, open_store
from everthread.stores.record import Change, Recall, Selection, now_utc
from everthread.stores.text import estimate_tokens

Home = tuple[MemoryStore, Any]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_store(f"sqlite:{tmp_path}") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        yield store, saver


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def ask(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def agent_on(home: Home, model: Any = None, **options: Any) -> Any:
    store, saver = home
    return create_memory_agent(model, **options).compile(checkpointer=saver, store=store)


def shown(model: FakeModel) -> str:
    """The lines of the block of the last request."""
    block = "\n".join(message.text for message in model.prompts[-1])
    if "<memory_context>" not in block:
        return ""
    return "\n".join(block.split("<memory_context>\n")[1].split("\n</memory_context>")[0].split("\n")[1:])


# --------------------------------------------------------------------------------------------- profile


@pytest.mark.parametrize(
    ("wish", "asked"),
    [
        ("Please always answer me in German.", "What are two and two?"),
        ("I prefer answers in bullet points.", "Who wrote Faust?"),
        ("我希望你以后都用英文回答我。", "二加二等于几？"),
    ],
)
def test_how_the_user_wants_to_be_answered_stands_in_every_request(
    home: Home, ana: Identity, wish: str, asked: str
) -> None:
    store, _ = home
    model = FakeModel()
    agent = agent_on(home, model)
    agent.invoke(ask(wish), at("a"), context=ana)
    (known,) = store.records(ana)
    assert (known.concerns, known.authority) == ("expression", "user_explicit")
    state = agent.invoke(ask(asked), at("b"), context=ana)
    assert [(each["id"], each["source"]) for each in state["recalled"]] == [(known.id, "profile")]
    assert RESIDENT in shown(model) and known.id in shown(model)
    store.erase(ana, Selection(record_ids=(known.id,)), reason="asked to")
    agent.invoke(None, before_reason(agent, "b"), context=ana)
    assert shown(model) == ""


def before_reason(agent: Any, thread: str) -> Any:
    return next(each for each in agent.get_state_history(at(thread)) if each.next == ("reason",)).config


def test_the_profile_has_a_budget_of_its_own(home: Home, ana: Identity) -> None:
    store, _ = home
    wishes = [
        learnt(f"Answers have form number {n}. " + "Really. " * 40, content_type="preference", concerns="expression")
        for n in range(8)
    ]
    keep(store, ana, *wishes)
    assert len(recalled(store, ana, "What are two and two?")) == 2
    assert len(recalled(store, ana, "What are two and two?", Retrieve.profile_only())) == 8
    assert recalled(store, ana, "What are two and two?", Retrieve.three_hits()) == []


def test_a_wish_that_the_search_found_and_had_no_room_for_keeps_its_place(home: Home, ana: Identity) -> None:
    store, _ = home
    keep(store, ana, learnt("Answers about tea are in German.", content_type="preference", concerns="expression"))
    found = recalled(store, ana, "In which language are answers about tea?", Retrieve(budget_tokens=10))
    assert [each.get("source") for each in found] == ["profile"]
    assert [each.get("source") for each in recalled(store, ana, "In which language are answers about tea?")] == [None]


def recalled(
    store: MemoryStore, identity: Any, text: str, retrieve: Retrieve | None = None, thread: str = "z"
) -> list[Any]:
    update: Any = (retrieve or Retrieve())(ask(text), runtime_for(identity, store, thread))
    return list(update["recalled"])


# --------------------------------------------------------------------------------------------- evidence


def said(text: str, id: str, thread: str = "old") -> Evidence:
    return Evidence(thread_id=thread, message_id=id, role="user", speaker="ana", text=text, at=now_utc(), source="user")


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("My greyhound Momo had an operation at the vet in Potsdam.", "Where was my greyhound operated?"),
        ("我的灰猎犬在波茨坦的兽医那里做了手术。", "我的灰猎犬在哪里做的手术？"),
    ],
)
def test_what_was_said_is_shown_only_to_who_opted_into_it(home: Home, ana: Identity, words: str, question: str) -> None:
    store, _ = home
    store.transcripts.append(ana, [said(words, "m1")])
    assert recalled(store, ana, question) == []
    model = FakeModel()
    agent = agent_on(home, model, retrieve=Retrieve(sources=("records", "evidence")))
    state = agent.invoke(ask(question), at("b"), context=ana)
    (reference,) = state["recalled"]
    assert (reference["id"], reference["thread_id"], reference["source"]) == ("m1", "old", "evidence")
    assert words in shown(model) and words not in str(agent.get_state(at("b")).values)
    noted = [entry.detail.get("messages") for entry in store.audit(ana, action="inject")]
    assert noted == [[["old", "m1"]]]
    store.transcripts.erase_messages(ana, "old", ["m1"])
    agent.invoke(None, before_reason(agent, "b"), context=ana)
    assert shown(model) == ""


LONG = pytest.mark.parametrize(
    ("walk", "answer", "question"),
    [
        ("We walked along the river. ", "Momo, my greyhound, was bitten by a goose! ", "What bit my greyhound?"),
        ("我们沿着河边走了一会儿。", "小林生日那天想要一把吉他。", "小林过生日想要什么？"),
    ],
)


@LONG
@pytest.mark.parametrize("how", ["automatic", "on_demand"])
def test_of_a_long_message_the_model_reads_the_passage_that_answers(
    home: Home, ana: Identity, how: Any, walk: str, answer: str, question: str
) -> None:
    store, _ = home
    store.transcripts.append(ana, [said(walk * 900 + answer + walk * 900, "m1")])
    call = AIMessage("", tool_calls=[{"id": "c1", "name": "session_search", "args": {"query": question}}])
    model = FakeModel(replies=[call, "ok"] if how == "on_demand" else ["ok"])
    agent = agent_on(home, model, recall=how, **({"retrieve": OPEN} if how == "automatic" else {}))
    agent.invoke(ask(question), at("b"), context=ana)
    (line,) = shown(model).split("\n")
    assert answer.strip() in line and line.count("characters are left out") == 2
    assert estimate_tokens(line) < 1_100 and line.count(walk.strip()) > 20
    assert answer.strip() not in str(agent.get_state(at("b")).values)


@pytest.mark.parametrize(
    ("wish", "fact", "question"),
    [
        (
            "I prefer short reports with a table at the end. ",
            "My dentist is Dr. Alvarez on Mission Street.",
            "Which dentist do I go to?",
        ),
        ("以后报告都用中文写。", "我的牙医在里斯本的使命街。", "我的牙医在哪里？"),
    ],
)
def test_a_message_that_answers_is_shown_beside_a_memory_of_something_else_that_it_says(
    home: Home, ana: Identity, wish: str, fact: str, question: str
) -> None:
    store, _ = home
    store.transcripts.append(ana, [said(wish + fact, "m1")])
    keep(
        store,
        ana,
        learnt(wish.strip(), content_type="preference", concerns="expression", provenance=said_by("ana", "old", "m1")),
    )
    model = FakeModel()
    agent_on(home, model, retrieve=OPEN).invoke(ask(question), at("b"), context=ana)
    assert fact in shown(model) and RESIDENT in shown(model)


OPEN = Retrieve(sources=("records", "evidence"))


@pytest.mark.parametrize("part", [[5], [3, 1], "all", [0, 10**9], None])
def test_a_part_that_a_client_made_up_shows_what_stands_at_the_ends(home: Home, ana: Identity, part: Any) -> None:
    store, _ = home
    store.transcripts.append(ana, [said("tea " * 2_000, "m1")])
    reference = {"id": "m1", "revision": 0, "source": "evidence", "thread_id": "old", "part": part}
    runtime = runtime_for(ana, store, "b")
    block = memory_block({"messages": [HumanMessage("tea?", id="q")], "recalled": [reference]}, runtime)
    assert "... (4,000 characters are left out) ..." in block


def test_a_message_of_this_thread_is_not_shown_twice(home: Home, ana: Identity) -> None:
    model = FakeModel()
    agent = agent_on(home, model, retrieve=Retrieve(sources=("records", "evidence")))
    agent.invoke(ask("Momo the greyhound barked at the red van."), at("a"), context=ana)
    agent.invoke(ask("At what did Momo the greyhound bark?"), at("a"), context=ana)
    assert "red van" not in shown(model) and "red van" in model.prompts[-1][-3].text


def test_another_users_words_are_never_shown(home: Home, ana: Identity, ben: Identity) -> None:
    store, _ = home
    store.transcripts.append(ana, [said("My greyhound Momo was operated in Potsdam.", "m1")])
    both = Retrieve(sources=("records", "evidence"), floor=None)
    assert recalled(store, ben, "Where was the greyhound Momo operated?", both) == []


# --------------------------------------------------------------------------------------------- contest and trust


def contested(store: MemoryStore, ana: Identity) -> tuple[str, str]:
    one = learnt("The billing database runs on MySQL.")
    other = learnt("Die Abrechnung nutzt jetzt CockroachDB.")
    keep(store, ana, one)
    write(
        store,
        ana,
        Change(action="contest", record=other, target=one.id, expected=1, rule="undecided", reason="neither decides"),
    )
    return one.id, other.id


def test_both_sides_of_a_contest_are_shown_though_one_alone_was_found(home: Home, ana: Identity) -> None:
    store, _ = home
    one, other = contested(store, ana)
    assert [hit.record_id for hit in store.recall(ana, "billing database MySQL", limit=1, floor=0.2).hits] == [one]
    model = FakeModel()
    agent_on(home, model, retrieve=Retrieve(limit=1)).invoke(ask("billing database MySQL"), at("a"), context=ana)
    lines = shown(model).split("\n")
    assert [line.split("(memory ")[1].rstrip(")") for line in lines] == [one, other]
    assert [CONTESTED in line for line in lines] == [True, True]


@pytest.mark.parametrize("refuted", ["MySQL", "PostgreSQL"])
def test_of_a_contest_both_sides_are_looked_at_and_what_is_refuted_is_not_shown(
    home: Home, ana: Identity, refuted: str
) -> None:
    store, _ = home
    sides = [learnt(f"The billing database is {name}.", verify_before_use=True) for name in ("MySQL", "PostgreSQL")]
    write(store, ana, create(sides[0]))
    write(
        store,
        ana,
        Change(action="contest", record=sides[1], target=sides[0].id, expected=1, rule="undecided", reason="r"),
    )
    seen: list[str] = []

    def observe(identity: Identity, record: Record) -> bool:
        seen.append(record.id)
        return refuted not in record.statement

    found = recalled(store, ana, "billing database MySQL", Retrieve(limit=1, verifier=observe))
    assert sorted(seen) == sorted(record.id for record in sides)
    assert [each["id"] for each in found] == [record.id for record in sides if refuted not in record.statement]


def test_a_guess_below_the_threshold_is_not_shown_and_the_stream_says_why(home: Home, ana: Identity) -> None:
    store, _ = home
    (guess,) = keep(
        store, ana, learnt("Ana may like jazz concerts.", authority="inferred", stated=False, confidence=0.2)
    )
    events = list(
        agent_on(home).stream(ask("Does Ana like jazz concerts?"), at("a"), context=ana, stream_mode="custom")
    )
    (event,) = [event for event in events if event["node"] == "retrieve"]
    assert event["event"] == "abstained"
    assert event["left_out"] == [{"id": guess.id, "rule": "untrusted", "why": "its trust of 0.17 is below 0.3"}]


def test_memory_of_another_version_of_the_agent_is_not_shown(home: Home, ana: Identity) -> None:
    store, _ = home
    acting = ana.model_copy(update={"agent": "deployer", "agent_version": "2.1", "roles": frozenset({"curator"})})
    old, new = (
        learnt(text, "agent", "deployer", agent_versions=versions)
        for text, versions in (
            ("The deploy tool fails without a region.", "<2"),
            ("The deploy tool fails without a zone.", ">=2,<3"),
        )
    )
    write(store, acting, create(old), create(new))
    found = recalled(store, acting, "Why does the deploy tool fail?", Retrieve(floor=None))
    assert [each["id"] for each in found] == [new.id]
    assert recalled(store, ana, "Why does the deploy tool fail?", Retrieve(floor=None)) == []


@pytest.mark.parametrize("holds", [True, None, False])
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_verifier_looks_before_the_model_does(home: Home, ana: Identity, holds: bool | None, kind: str) -> None:
    store, _ = home
    keep(store, ana, learnt("The billing service listens on port 8443.", verify_before_use=True))
    model = FakeModel()
    agent = agent_on(home, model, retrieve=Retrieve(verifier=lambda identity, record: holds))
    question = ask("On which port does the billing service listen?")
    if kind == "sync":
        agent.invoke(question, at("a"), context=ana)
    else:
        await agent.ainvoke(question, at("a"), context=ana)
    marks = {True: "checked just now: it holds", None: "could not be checked now and is uncertain", False: ""}
    assert marks[holds] in shown(model) and ("8443" in shown(model)) == (holds is not False)


# --------------------------------------------------------------------------------------------- tasks


def test_what_is_to_be_done_soon_is_shown_by_key(home: Home, ana: Identity, ben: Identity) -> None:
    store, _ = home
    soon, late = now_utc() + timedelta(hours=2), now_utc() + timedelta(days=9)
    mine = store.tasks.create(ana, "Renew the certificate", due_at=soon)
    store.tasks.create(ana, "Plan the summer party", due_at=late)
    store.tasks.create(ana, "Of another thread", due_at=soon, thread_id="other")
    store.tasks.create(ben, "Ben's own", due_at=soon)
    model = FakeModel()
    agent = agent_on(home, model)
    state = agent.invoke(ask("你好"), at("a"), context=ana)
    assert [(each["id"], each["source"]) for each in state["recalled"]] == [(mine.id, "task")]
    assert shown(model).endswith(f"Renew the certificate (task {mine.id})")
    store.tasks.cancel(ana, mine.id)
    agent.invoke(None, before_reason(agent, "a"), context=ana)
    assert shown(model) == ""


# --------------------------------------------------------------------------------------------- placement


def places(model: FakeModel) -> list[tuple[str, bool]]:
    return [(message.type, "<memory_context>" in message.text) for message in model.prompts[-1]]


@pytest.mark.parametrize("kind", ["graph", "middleware"])
def test_the_block_ends_the_system_message_or_stands_before_the_last_request(
    home: Home, ana: Identity, kind: str
) -> None:
    store, saver = home
    keep(store, ana, learnt("Ana prefers tea over coffee."))
    model = FakeModel()

    def agent(**options: Any) -> Any:
        if kind == "graph":
            return agent_on(home, model, system_prompt="Be brief.", recall="automatic", **options)
        middleware = MemoryMiddleware(recall="automatic", **options)
        made = create_agent(model, system_prompt="Be brief.", middleware=[middleware], checkpointer=saver, store=store)
        return gate(made)

    agent().invoke(ask("Does Ana prefer tea or coffee?"), at("a"), context=ana)
    assert places(model) == [("system", True), ("human", False)]
    assert model.prompts[-1][0].text.startswith("Be brief.\n\n<memory_context>")
    state = agent(memory_at="last_message").invoke(ask("Does Ana prefer tea or coffee?"), at("a"), context=ana)
    assert places(model) == [("system", False), ("human", False), ("ai", False), ("human", True), ("human", False)]
    assert "<memory_context>" not in str(state["messages"])


def test_the_block_stays_before_the_request_while_tools_run(home: Home, ana: Identity) -> None:
    store, _ = home
    keep(store, ana, learnt("Ana prefers tea over coffee."))

    @tool
    def brew(what: str) -> str:
        """Brew a drink."""
        return f"{what} is ready"

    call = AIMessage("", tool_calls=[{"id": "c1", "name": "brew", "args": {"what": "tea"}}])
    model = FakeModel(replies=[call, "done"])
    agent_on(home, model, tools=[brew], memory_at="last_message").invoke(
        ask("Brew what Ana prefers, tea or coffee."), at("a"), context=ana
    )
    assert places(model) == [("human", True), ("human", False), ("ai", False), ("tool", False)]


def test_a_place_that_there_is_none_is_refused_at_once() -> None:
    for make in (lambda: Reason(FakeModel(), memory_at="top"), lambda: MemoryMiddleware(memory_at="top")):  # type: ignore[arg-type]  # that is what is tested
        with pytest.raises(UsageError, match='memory_at is \'top\'; say "system" or "last_message"'):
            make()


def test_on_demand_puts_nothing_before_the_model_by_itself(home: Home, ana: Identity) -> None:
    store, _ = home
    keep(store, ana, learnt("Ana prefers tea over coffee."))
    model = FakeModel()
    agent_on(home, model, recall="on_demand").invoke(ask("Does Ana prefer tea or coffee?"), at("a"), context=ana)
    assert shown(model) == ""


# --------------------------------------------------------------------------------------------- cost


class Counting(SqliteStore):
    """A store that counts its searches."""

    searches = 0

    def recall(self, *args: Any, **options: Any) -> Recall:
        self.searches += 1
        return super().recall(*args, **options)


def test_a_turn_searches_once_however_often_the_model_is_called(tmp_path: Path, ana: Identity) -> None:
    @tool
    def clock() -> str:
        """The time."""
        return "noon"

    calls = [AIMessage("", tool_calls=[{"id": f"c{n}", "name": "clock", "args": {}}]) for n in range(3)]
    model = FakeModel(replies=[*calls, "noon"])
    with Counting(tmp_path / "memory.db") as store, open_checkpointer(f"sqlite:{tmp_path}") as saver:
        keep(store, ana, learnt("Ana prefers tea over coffee."))
        agent = create_memory_agent(model, [clock]).compile(checkpointer=saver, store=store)
        agent.invoke(ask("Does Ana prefer tea or coffee?"), at("a"), context=ana)
        assert (len(model.prompts), store.searches) == (4, 1)
        assert all("prefers tea" in prompt[0].text for prompt in model.prompts)


def test_days_count_from_when_the_request_was_said_and_not_from_when_the_run_goes_on(home: Home, ana: Identity) -> None:
    store, _ = home
    while (now_utc() + timedelta(seconds=60)).date() != now_utc().date():
        sleep(1)  # what is yesterday now shall be so at the end of this test
    first, second = (
        learnt(f"The {what} meeting was moved.", kind="episodic", content_type="episodic", provenance=seen)
        for what, seen in (
            ("budget", learnt("x").provenance.model_copy(update={"observed_at": now_utc() - timedelta(days=1)})),
            (
                "budget planning",
                learnt("x").provenance.model_copy(update={"observed_at": now_utc() - timedelta(days=8)}),
            ),
        )
    )
    keep(store, ana, first, second)
    week_ago = (now_utc() - timedelta(days=7)).isoformat()
    now = [each["id"] for each in recalled(store, ana, "Which meeting was moved yesterday?")]
    question = HumanMessage("Which meeting was moved yesterday?", additional_kwargs={"at": week_ago})
    update: Any = Retrieve()({"messages": [question]}, runtime_for(ana, store, "z"))
    assert (now[0], update["recalled"][0]["id"]) == (first.id, second.id)


def test_explaining_says_what_became_of_every_candidate(home: Home, ana: Identity) -> None:
    store, _ = home
    tea, _ = keep(store, ana, learnt("Ana prefers tea over coffee."), learnt("The office closes at six."))
    agent = agent_on(home, retrieve=Retrieve(explain=True))
    events = list(agent.stream(ask("Does Ana prefer tea or coffee?"), at("a"), context=ana, stream_mode="custom"))
    (event,) = [event for event in events if event["node"] == "retrieve"]
    best = event["candidates"][0]
    assert (best["record_id"], best["ranks"]["keyword"], best["ranks"]["semantic"]) == (tea.id, 1, 1)
    assert len(event["candidates"]) == 2 and "dropped: " in event["candidates"][1]["why"]
    assert "tea over coffee" not in str(event)


def test_memory_that_is_off_shows_neither_profile_nor_tasks(home: Home, ana: Identity) -> None:
    store, _ = home
    keep(store, ana, learnt("Answers are in German.", content_type="preference", concerns="expression"))
    store.tasks.create(ana, "Renew the certificate")
    model = FakeModel()
    agent_on(home, model).invoke(ask("Hello there"), at("a"), context=MemoryContext(identity=ana, memory="off"))
    assert shown(model) == ""


def test_a_picture_without_a_word_is_answered_as_the_user_wishes(home: Home, ana: Identity) -> None:
    store, _ = home
    (wish,) = keep(store, ana, learnt("Answers are in German.", content_type="preference", concerns="expression"))
    picture: Any = [{"type": "image", "url": "https://example.org/cat.png"}]
    update: Any = Retrieve()({"messages": [HumanMessage(picture)]}, runtime_for(ana, store, "z"))
    assert [each["id"] for each in update["recalled"]] == [wish.id]


def test_what_is_observed_now_says_nothing_of_what_was_known_then(home: Home, ana: Identity) -> None:
    store, _ = home
    (port,) = keep(store, ana, learnt("The billing service listens on port 8443.", verify_before_use=True))
    retrieve = Retrieve(verifier=lambda identity, record: False)
    question = "On which port does the billing service listen?"
    then = MemoryContext(identity=ana, as_of=now_utc())
    assert recalled(store, ana, question, retrieve) == []
    assert [each["id"] for each in recalled(store, then, question, retrieve)] == [port.id]


def test_the_task_of_the_thread_weighs_what_is_found(home: Home, ana: Identity) -> None:
    store, _ = home
    shop, billing = keep(
        store,
        ana,
        learnt("The shop has its deploy on Monday."),
        learnt("The billing service has its deploy on Monday."),
    )
    state = '{"task": "Move the billing service to Oslo.", "next_step": "Prepare the billing service."}'
    window: Any = {"task_state": store.artifacts.put(ana, "task_state", state, thread_id="z")}
    question: Any = {**ask("When is the deploy?"), "window": window}
    update: Any = Retrieve()(question, runtime_for(ana, store, "z"))
    signals = {each["id"]: each["why"] for each in update["recalled"]}
    assert "task " in signals[billing.id] and "task " not in signals[shop.id]


def test_what_is_left_out_makes_room_for_what_comes_next(home: Home, ana: Identity) -> None:
    store, _ = home
    doubtful: Any = {"authority": "inferred", "stated": False, "confidence": 0.1}
    guesses = [learnt(f"Ana's greyhound may be called {name}.", **doubtful) for name in ("Rex", "Bello", "Hasso")]
    known = learnt("The greyhound of Ana is called Momo, as the vet wrote in the passport.")
    keep(store, ana, *guesses, known)
    found = recalled(store, ana, "What is Ana's greyhound called?", Retrieve(limit=1, floor=None))
    assert [each["id"] for each in found] == [known.id]
    assert len(recalled(store, ana, "What is Ana's greyhound called?", Retrieve(limit=1, floor=None, trust=0.0))) == 1
