"""`forget` counts before it erases, and `doctor --fix` says what it did."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
from support.old_files import old_file
from support.records import keep, learnt, said_by
from typer.testing import CliRunner, Result

from everthread import Evidence, Identity
from everthread.cli import app
from everthread.stores import open_store
from everthread.stores.record import now_utc
from everthread.stores.threads import thread_id_for

ANA = Identity(tenant="local", user="ana")


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--home", str(home), "--user", "ana"])


def run_json(home: Path, *arguments: str) -> Any:
    result = run(home, *arguments, "--json")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return json.loads(result.stdout)


def fill(home: Path) -> str:
    """Two memories of one thread, and its id."""
    thread_id = thread_id_for(ANA, "trip")
    with open_store(home) as store:
        for n, text in enumerate(["We travel to Brno", "We take the night train"], 1):
            said = Evidence(
                thread_id=thread_id, message_id=f"m{n}", role="user", text=text, at=now_utc(), source="user"
            )
            store.transcripts.append(ANA, [said])
            keep(store, ANA, learnt(text, provenance=said_by("ana", thread_id, f"m{n}")))
    return thread_id


def test_forget_can_only_count(tmp_path: Path) -> None:
    fill(tmp_path)
    result = run(tmp_path, "forget", "--thread", "trip", "--with-source", "--dry-run")
    assert (result.exit_code, result.stdout) == (
        0,
        "would erase 2 records, 2 revisions, 4 index rows, 2 messages, 1 thread\n",
    )
    counted = run_json(tmp_path, "forget", "--thread", "trip", "--with-source", "--dry-run")
    assert (counted["verified"], len(run_json(tmp_path, "list"))) == (False, 2)
    done = run_json(tmp_path, "forget", "--thread", "trip", "--with-source", "--yes")
    assert (done["erased"], done["verified"]) == (counted["erased"], True)
    assert run(tmp_path, "forget", "--subject", "nobody", "--dry-run").stdout == (
        "would erase nothing: nothing matches\n"
    )


def test_forget_takes_a_message_of_a_thread(tmp_path: Path) -> None:
    fill(tmp_path)
    assert run(tmp_path, "forget", "--message", "m1", "--yes").stderr == (
        "error: --message needs the thread that it is in; add --thread NAME\n"
    )
    run_json(tmp_path, "forget", "--thread", "trip", "--message", "m1", "--with-source", "--yes")
    assert [record["statement"] for record in run_json(tmp_path, "list")] == ["We take the night train"]
    assert [thread["messages"] for thread in run_json(tmp_path, "threads")] == [1]


def test_forget_takes_a_whole_user(tmp_path: Path) -> None:
    fill(tmp_path)
    done = run_json(tmp_path, "forget", "--scope", "user:ana", "--with-source", "--yes")
    assert (done["erased"]["threads"], done["remains"], done["verified"]) == (1, [], True)
    assert run_json(tmp_path, "threads") == []


def test_forget_names_a_copy_from_before_an_upgrade_and_can_delete_it(tmp_path: Path) -> None:
    fill(tmp_path)
    copy = tmp_path / "memory.db.v3.bak"
    old_file(copy, 3)
    with closing(apsw.Connection(str(copy))) as connection:
        connection.execute("INSERT INTO meta VALUES ('a', 'We travel to Brno')")
    (record, *_) = [each for each in run_json(tmp_path, "list") if "Brno" in each["statement"]]
    result = run(tmp_path, "forget", record["id"], "--with-source", "--yes")
    assert result.exit_code == 1
    assert (
        "remains: memory.db.v3.bak, a copy from before a migration: --with-backups deletes it"
        in result.stdout.splitlines()
    )
    (other,) = run_json(tmp_path, "list")
    done = run_json(tmp_path, "forget", other["id"], "--with-source", "--with-backups", "--yes")
    assert (done["erased"]["backups"], done["verified"], copy.exists()) == (1, True, False)


def test_doctor_repairs_and_says_so(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        connection.execute("DELETE FROM search WHERE space LIKE '%records%'")
    before = run(tmp_path, "doctor")
    assert (before.exit_code, "2 are missing" in before.stdout) == (1, True)
    fixed = run_json(tmp_path, "doctor", "--fix")
    assert fixed["ok"]
    assert [(done["check"], done["detail"]) for done in fixed["repairs"]] == [("index", "added 2 texts and removed 0")]
    again = run_json(tmp_path, "doctor", "--fix")
    assert (again["ok"], again["repairs"]) == (True, [])
