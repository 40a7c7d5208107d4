"""docs/scale.md shows what the model reckons from the committed costs, and the model's arithmetic holds."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "scale.py"
PAGE = ROOT / "docs" / "scale.md"
EXAMPLE = ROOT / "examples" / "shards.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="benchmarks are not part of a source distribution")


@pytest.fixture(scope="module")
def model() -> Any:
    """The names of both modules, which nothing installs."""
    from benchmarks import reckoning, scale

    return SimpleNamespace(**vars(reckoning) | vars(scale))


@pytest.fixture(scope="module")
def costs(model: Any) -> Any:
    return json.loads(model.COSTS.read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------------------- the page


def test_the_page_shows_the_tables_as_they_are_printed(model: Any, costs: Any) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert model.placed(page, costs, model.Load(), model.Node()) == page


def test_every_table_has_a_place_on_the_page(model: Any) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in model.TABLES if page.count(f"<!-- {name} -->\n") != 1] == []


def test_a_table_that_was_changed_by_hand_is_put_right(model: Any, costs: Any) -> None:
    page = "before\n<!-- behind -->\n| a | b |\n<!-- /behind -->\nafter\n"
    table = model.behind(costs, model.Load(), model.Node())
    placed = model.placed(page, costs, model.Load(), model.Node())
    assert placed == f"before\n<!-- behind -->\n{table}\n<!-- /behind -->\nafter\n"


def test_the_page_shows_the_example_as_it_is() -> None:
    code = EXAMPLE.read_text(encoding="utf-8")
    assert f"<!-- examples/shards.py -->\n```python\n{code}```" in PAGE.read_text(encoding="utf-8")


def test_each_tenant_of_the_example_lives_on_its_shard(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLE)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    shards = [line for line in run.stdout.splitlines() if line.startswith("sqlite:")]
    answers = [line for line in run.stdout.splitlines() if line.startswith("- ")]
    assert shards == [f"sqlite:./shard-{n}: From memory:" for n in (1, 0, 0)]
    assert [answer.split(" (")[0] for answer in answers] == [
        f"- The user prefers tea from {tenant}." for tenant in ("acme", "globex", "contoso")
    ]


def test_the_command_reckons_with_what_it_is_given() -> None:
    command = [sys.executable, "-m", "benchmarks.scale", "--json", "--users"]
    one, two = (
        json.loads(subprocess.run([*command, users], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        for users in ("1000000", "2000000")
    )
    assert two["bytes"] == pytest.approx({name: 2 * value for name, value in one["bytes"].items()})
    assert two["shards"] == pytest.approx({name: 2 * value for name, value in one["shards"].items()})


# ------------------------------------------------------------------------------------------------------- the arithmetic


def test_twice_the_records_take_twice_the_room_of_records_alone(model: Any, costs: Any) -> None:
    one, two = (model.storage(costs, model.Load(records=records)) for records in (200, 400))
    assert two == pytest.approx({**one, "records": 2 * one["records"]})


def test_turns_are_those_of_the_active_users(model: Any) -> None:
    load = model.Load(users=86_400, active=0.5, turns=2, peak=3)
    assert (model.turns_a_day(load), model.turns_at_peak(load)) == (86_400, 3)


def test_sessions_in_use_are_arrivals_times_the_time_one_is_held(model: Any, costs: Any) -> None:
    load, node = model.Load(), model.Node()
    assert model.busy_sessions(costs, load, node) == pytest.approx(model.turns_at_peak(load) * model.held(costs, node))
    further = model.held(costs, node._replace(round_trip=node.round_trip + 1)) - model.held(costs, node)
    assert further == pytest.approx(costs["turn"]["statements"] / 1_000)


def test_a_server_of_twice_the_size_halves_the_shards(model: Any, costs: Any) -> None:
    load, node = model.Load(), model.Node()
    twice = node._replace(cores=2 * node.cores, memory=2 * node.memory, disk=2 * node.disk, reading=2 * node.reading)
    one, two = (model.bounds(costs, load, each) for each in (node, twice))
    assert two == pytest.approx({name: value / 2 for name, value in one.items()})


def test_there_is_a_shard_for_the_fewest_users(model: Any, costs: Any) -> None:
    assert model.shards(costs, model.Load(users=1), model.Node()) == 1


def test_a_tenant_fills_its_lane_where_the_model_says(model: Any, costs: Any) -> None:
    load, node = model.Load(), model.Node()
    full = load._replace(users=model.tenant_users(costs, load, node))
    assert model.turns_at_peak(full) * model.lane_of_a_turn(costs, node) == pytest.approx(node.busy)


def test_an_erasure_takes_as_long_as_was_measured_where_it_was_measured(model: Any, costs: Any) -> None:
    measured = costs["erase"]["server_cpu_ms"] + costs["erase"]["app_cpu_ms"]
    assert model.erasure_seconds(costs, costs["erase"]["rows"]) == pytest.approx(measured / 1_000)


def test_partitions_are_a_power_of_two_and_none_is_too_large(model: Any) -> None:
    found = [model.partitions(total, largest=10) for total in (0, 9, 10, 11, 40, 1_000)]
    assert found == [1, 1, 1, 2, 4, 128]


def test_the_largest_table_holds_records_and_messages(model: Any) -> None:
    costs = {
        "bytes": {
            "record": {"search": {"heap": 100, "indexes": 50}, "revisions": {"heap": 180}},
            "message": {"search": {"heap": 10}, "messages": {"heap": 5}},
        }
    }
    load = model.Load(users=10, records=2, active=0.5, turns=1, message_days=4)
    assert model.largest_table(costs, load) == ("revisions", 3_600)
    assert model.largest_table(costs, load._replace(message_days=100)) == ("search", 3_000 + 10_000)


def test_a_replica_that_is_not_behind_misses_nothing(model: Any) -> None:
    load = model.Load(learnt=0.5, sitting=4, pause=60)
    assert model.stale(load, 0) == 0
    assert model.stale(load, 60) == pytest.approx(0.5 * 0.75 * (1 - math.exp(-1)))


def test_a_process_that_keeps_everybody_misses_each_user_once_a_sitting_at_most(model: Any) -> None:
    load = model.Load(users=100_000, active=0.1, turns=8, sitting=4)
    same = model.hit_rate(load, 2, 10**9, same=True)
    assert 0.75 <= same <= 1
    assert same >= model.hit_rate(load, 2, 10**9, same=False)


def test_a_process_that_keeps_one_user_of_many_hits_nearly_never(model: Any) -> None:
    assert model.hit_rate(model.Load(), 20, 1, same=True) < 0.05


def test_the_simulation_says_the_same_each_time(model: Any) -> None:
    assert model.hit_rate(model.Load(), 20, 500, same=True) == model.hit_rate(model.Load(), 20, 500, same=True)


def test_the_first_users_of_zipfs_law_talk_more_often(model: Any) -> None:
    drawn = [model.drawn(n / 1_000, 1_000) for n in range(1_000)]
    assert (drawn[0], max(drawn) < 1_000, drawn == sorted(drawn)) == (0, True, True)
    assert sum(user < 100 for user in drawn) > 3 * sum(user >= 900 for user in drawn)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.5e3, "500 bytes"), (1_500, "1.5 KB"), (2e9, "2 GB"), (34.56e12, "34.6 TB"), (2.34e8, "234 MB")],
)
def test_sizes_are_told_in_three_digits_at_most(model: Any, value: float, said: str) -> None:
    assert model.size(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.02, "20 ms"), (1.5, "1.5 s"), (119, "119 s"), (120, "2 minutes"), (200_000, "2.3 days")]
)
def test_times_are_told_in_the_largest_unit_of_which_there_are_two(model: Any, seconds: float, said: str) -> None:
    assert model.span(seconds) == said
