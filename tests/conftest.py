"""Fixtures that every package's tests share, and the line that names the oracle at a session's end."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # no installation holds `cache` and `tasks`
sys.path.insert(0, str(Path(__file__).resolve().parent))  # so that any test may `import oracle`

import oracle as nvdisasm_oracle

DATA = Path(__file__).resolve().parent / "data"
judged = {"words": 0}


@pytest.fixture(scope="session", autouse=True)
def sanitizers() -> None:
    """Every launch of every test is watched by all sanitizers, unless it says otherwise."""
    from coppelius.emulator.launch import CHECKS, Defaults

    Defaults.checks = CHECKS


@pytest.fixture(scope="session")
def oracle() -> Any:
    """The module `tests/oracle.py`: `disassemble(words)`, `disassemble_kernel(code)`."""
    return nvdisasm_oracle


@pytest.fixture(scope="session")
def cuda_index() -> list[dict[str, Any]]:
    """`tests/data/cuda/index.json`: file (relative to its folder), source, variant, toolkit, kernels."""
    rows: list[dict[str, Any]] = json.loads((DATA / "cuda" / "index.json").read_text())
    return rows


@pytest.fixture(scope="session")
def cuda_cubins(cuda_index: list[dict[str, Any]]) -> list[Path]:
    """The cubins compiled from our own sources."""
    return [DATA / "cuda" / row["file"] for row in cuda_index]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The development corpus (COPPELIUS_CORPUS=folder with index.json and cubins/); skips where there is none."""
    folder = os.environ.get("COPPELIUS_CORPUS")
    if folder is None or not (Path(folder) / "index.json").exists():
        pytest.skip("COPPELIUS_CORPUS names no folder with an index.json")
    return Path(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the slow tests out of a run that chooses none by `-m` (`-m slow` runs them)."""
    if config.getoption("markexpr"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    items[:] = [item for item in items if not item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keeps what was recorded; a worker tells its parent how many words were judged."""
    nvdisasm_oracle.save_recording()
    judged["words"] += nvdisasm_oracle.Counts.judged
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["oracle_words"] = judged["words"]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:  # noqa: ARG001
    """Adds what a worker judged."""
    judged["words"] += getattr(node, "workeroutput", {}).get("oracle_words", 0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says which oracle judged the words of this session."""
    if judged["words"]:
        terminalreporter.write_line(f"{nvdisasm_oracle.description()}, {judged['words']} words judged")
