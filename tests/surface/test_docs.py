"""The documents: their code runs, their links lead somewhere, the reference says what the docstrings say."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TESTED_ELSEWHERE = {"migrating.md"}
"""Pages whose code needs files of other programs; their own tests make those."""

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documents are not part of a source distribution")


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page, each behind as many blank lines as stand before it, so that errors name its line.

    A block below the name of a file, as `<!-- examples/host.py -->`, is that file, which has a test of its own.
    """
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"(?<!-->\n)^```python\n(.*?)^```", text, re.S | re.M)
    return ["\n" * text[: each.start(1)].count("\n") + each[1] for each in found]


WITH_CODE = [page for page in PAGES if page.name not in TESTED_ELSEWHERE and blocks(page)]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page; code is none of it."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page.name != "README.md" and f"]({page.name})" not in index] == []


def test_every_command_in_the_documents_is_registered() -> None:
    from everthread.cli import app

    shown = {
        name for page in PAGES for name in re.findall(r"(?:`|^ {4})everthread ([a-z]+)", page.read_text("utf-8"), re.M)
    }
    assert shown <= {command.name for command in app.registered_commands}


def events_of(source: Path) -> set[str]:
    """The names of the events that a module announces, as far as they are written where it does."""
    calls = [each for each in ast.walk(ast.parse(source.read_text(encoding="utf-8"))) if isinstance(each, ast.Call)]
    announced = [each.args[2] for each in calls if isinstance(each.func, ast.Name) and each.func.id == "announce"]
    parts = [part for event in announced for part in ast.walk(event) if isinstance(part, ast.Constant)]
    return {part.value for part in parts if isinstance(part.value, str)}


def test_every_event_of_a_turn_is_told() -> None:
    events = {
        event for room in ("nodes", "graphs") for each in (ROOT / room).rglob("*.py") for event in events_of(each)
    }
    turn = (DOCS / "turn.md").read_text(encoding="utf-8")
    assert len(events) > 15
    assert [event for event in sorted(events) if f"`{event}`" not in turn] == []


def test_the_reference_says_what_the_docstrings_say() -> None:
    made: str = runpy.run_path(str(DOCS / "make_reference.py"))["reference"]()
    assert (DOCS / "reference.md").read_text(encoding="utf-8") == made, "run python docs/make_reference.py"
