"""Two worker processes over one queue: one is killed, or comes too late, and each job has its effect once."""

from pathlib import Path

import pytest
from support.postgres import Postgres

from benchmarks.workers import Fault, hasty, two_workers

JOBS = 36


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
@pytest.mark.parametrize("fault", ["kill", "stop"])
def test_each_job_has_its_effect_once_whatever_becomes_of_a_worker(
    tmp_path: Path, request: pytest.FixtureRequest, backend: str, fault: Fault
) -> None:
    url = f"sqlite:{tmp_path}"
    if backend == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = hasty(postgres.url)
    found = two_workers(url, JOBS, fault)
    assert {name: found[name] for name in ("done", "written", "twice", "never")} == {
        "done": JOBS,
        "written": JOBS,
        "twice": 0,
        "never": 0,
    }
    assert 0 < found["held"] <= 4
    if fault == "stop":  # the other began what it held, and what it said of that afterwards was not taken
        assert found["begun"] >= JOBS + found["held"]
        assert found["taken"] == JOBS
