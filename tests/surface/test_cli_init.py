"""`everthread init` writes what a project's files say, and nothing else."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from everthread.cli import app
from everthread.cli.draft import draft, notes_of


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["init", *arguments])


def python_project(root: Path) -> Path:
    project = root / "billing"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "billing"\ndescription = "Invoices,\\n  on time"\nrequires-python = ">=3.11"\n'
        "[tool.pytest.ini_options]\n[tool.mypy]\nstrict = true\n"
    )
    (project / "Makefile").write_text(
        ".PHONY: test\nVENV := .venv\ntest: lint\n\tpytest\nlint:\n\truff\nclean:\n\trm x\n"
    )
    return project


def test_each_line_names_the_file_that_says_it(tmp_path: Path) -> None:
    assert draft(python_project(tmp_path)) == (
        "# billing\n\n"
        "- Invoices, on time (pyproject.toml)\n- Python >=3.11 (pyproject.toml)\n\n"
        "## Commands\n\n"
        "- `pytest` (pyproject.toml)\n- `mypy` (pyproject.toml)\n- `make test` (Makefile)\n- `make lint` (Makefile)\n\n"
        "## Rules\n\nWrite here what no file says: how to work in this project, and what never to do.\n"
    )


def test_other_languages_build_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"test": "vitest", "postinstall": "x"}, "description": ""}')
    (tmp_path / "Cargo.toml").write_text("[package]")
    (tmp_path / "app.sln").write_text("")
    assert [(note.text, note.source) for note in notes_of(tmp_path)] == [
        ("npm run test", "package.json"),
        ("cargo build", "Cargo.toml"),
        ("cargo test", "Cargo.toml"),
        ("dotnet test", "app.sln"),
    ]


def test_a_malformed_build_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project")
    (tmp_path / "package.json").write_text("[1]")
    assert notes_of(tmp_path) == []
    result = run(str(tmp_path))
    assert (result.exit_code, (tmp_path / "AGENTS.md").exists()) == (2, False)
    assert "write AGENTS.md by hand" in result.stderr


def test_an_agents_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    project = python_project(tmp_path)
    (project / "AGENTS.md").write_text("mine\n")
    refused = run(str(project))
    assert (refused.exit_code, (project / "AGENTS.md").read_text()) == (2, "mine\n")
    assert "--force replaces it" in refused.stderr
    assert run(str(project), "--print").stdout.startswith("# billing\n")
    assert (project / "AGENTS.md").read_text() == "mine\n"
    assert run(str(project), "--force").exit_code == 0
    assert (project / "AGENTS.md").read_text() == draft(project)


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    result = run(str(tmp_path / "nowhere"))
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: {tmp_path / 'nowhere'} is not a folder; name the project's top folder\n",
    )
