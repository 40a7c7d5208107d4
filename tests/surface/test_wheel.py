"""The wheel: what it holds, and that it works where nothing of this repository is."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (built,) = out.glob("*.whl")
    return built


def test_the_three_folders_are_links_to_the_code() -> None:
    assert [(ROOT / "everthread" / name).readlink() for name in ("graphs", "nodes", "stores")] == [
        Path("../graphs"),
        Path("../nodes"),
        Path("../stores"),
    ]


def test_every_module_and_script_is_in_the_wheel_once_and_nothing_bare(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    assert {name.split("/")[0] for name in names} == {
        "everthread",
        next(n for n in names if "dist-info" in n).split("/")[0],
    }
    tracked = [
        path.relative_to(ROOT)
        for folder in ("graphs", "nodes", "stores")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sql")
    ]
    assert [str(path) for path in tracked if f"everthread/{path}" not in names] == []


def test_it_installs_and_imports_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    python = env / "bin" / "python"
    site = next((env / "lib").glob("python*/site-packages"))
    # The dependencies come from this environment; a .pth of a folder does not run that folder's own .pth files, so the
    # editable install of this repository is not seen.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    script = (
        "import everthread, everthread.graphs, everthread.nodes, everthread.stores, sys\n"
        "from everthread.graphs import create_memory_agent\n"
        "from everthread import Identity, MemoryState\n"
        "store = everthread.stores.open_store('sqlite::memory:'); store.close()\n"
        "print(everthread.__file__, [name for name in ('graphs', 'nodes', 'stores') if name in sys.modules])\n"
    )
    run = subprocess.run([str(python), "-E", "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout.split("\n")[0] == f"{site / 'everthread' / '__init__.py'} []"
    assert not [path.name for path in site.iterdir() if path.name in ("graphs", "nodes", "stores")]
