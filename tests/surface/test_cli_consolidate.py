"""`everthread consolidate`: what has run out is marked, what says the same is merged, old transcripts go on request."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from support.records import keep, learnt
from typer.testing import CliRunner

from everthread import Evidence, Identity
from everthread.cli import app
from everthread.stores import open_store
from everthread.stores.record import now_utc

ANA = Identity(tenant="local", user="ana")


def run(home: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["consolidate", *arguments, "--home", str(home), "--user", "ana"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_what_ran_out_is_marked_and_what_says_the_same_is_merged(tmp_path: Path) -> None:
    tea, again = learnt("Ana likes tea"), learnt("Ana likes tea")
    trip = learnt("Ana is in Oslo", expires_at=now_utc() - timedelta(days=1))
    with open_store(tmp_path, embedder="none") as store:
        keep(store, ANA, tea, again, trip)
    assert run(tmp_path) == "done: 1 by rule expired, 2 by rule same-statement\n"
    assert run(tmp_path) == "there is nothing to do\n"
    with open_store(tmp_path, embedder="none") as store:
        found = store.records(ANA, ids=[tea.id, again.id, trip.id])
    assert sorted(record.status for record in found) == ["active", "archived", "expired"]


def test_old_transcripts_go_only_on_request(tmp_path: Path) -> None:
    old = Evidence(
        thread_id="t1",
        message_id="m1",
        role="user",
        text="旧的话",
        at=now_utc() - timedelta(days=40),
        source="user",
    )
    with open_store(tmp_path, embedder="none") as store:
        store.transcripts.append(ANA, [old, old.model_copy(update={"message_id": "m2", "at": now_utc()})])
    assert json.loads(run(tmp_path, "--json")) == {"receipts": [], "decisions": {}, "messages_erased": 0}
    assert run(tmp_path, "--transcript-days", "30") == "done: 1 message erased\n"
    with open_store(tmp_path, embedder="none") as store:
        assert [said.message_id for said in store.transcripts.read(ANA, "t1")] == ["m2"]
