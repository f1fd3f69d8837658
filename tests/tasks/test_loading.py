"""What goes wrong before a build can start is said in a line, with plain doit as well."""

import pytest

# fmt: off
BROKEN = [
    # a file               what stands at its end   what is said
    ("tasks/graph.py",     "def (",                 "invalid syntax"),
    ("tasks/emit.py",      "def (",                 "invalid syntax"),
    ("cache/store.py",     "def (",                 "invalid syntax"),
    ("coppelius/model.py", "1 / 0",                 "ZeroDivisionError: division by zero"),
    ("tasks/plan.py",      "import coppelius.gone", "ModuleNotFoundError: No module named 'coppelius.gone'"),
]
# fmt: on


@pytest.mark.parametrize("command", [("run",), ("list",)])
@pytest.mark.parametrize(("path", "end", "says"), BROKEN)
def test_a_module_of_ours_that_cannot_be_loaded(mini, path, end, says, command):
    file = mini.root / path
    file.write_text(f"{file.read_text()}\n{end}\n")
    outcome = mini.doit(*command)
    line = len(file.read_text().splitlines())
    assert (outcome.status, outcome.output) == (2, f"refused: {path}, line {line}: {says}; mend it, and build again\n")


def test_a_package_that_is_not_installed(mini):
    mini.edit("tasks/graph.py", "import Counter", "import Counter\nimport not_there")
    outcome = mini.doit()
    assert outcome.status == 2
    assert outcome.output.startswith("refused: not_there is not installed for ")
    assert outcome.output.endswith("; run `pip install -e .` in the checkout\n")


def test_a_package_that_a_step_misses_fails_the_step(mini):
    mini.edit("coppelius/kernels/halves.py", "def", "import not_there\n\n\ndef")
    outcome = mini.doit()
    assert outcome.status == 1
    assert "emit:third failed\n    not_there is not installed for " in outcome.output
    assert "Traceback" not in outcome.output


def test_a_table_that_cannot_be_drawn_loses_no_release(mini):
    mini.edit("tasks/reporter.py", "from rich.console", "from not_there.console")
    outcome = mini.doit()
    assert outcome.status == 0
    assert "manifest.json: not_there is not installed for " in outcome.output
    assert mini.release_is_whole()


@pytest.mark.parametrize("command", [("run",), ("list", "--all", "--status")])
def test_saved_state_that_cannot_be_opened(mini, command):
    (mini.root / "cache/state.sqlite3").mkdir()
    outcome = mini.doit(*command)
    assert outcome.status == 2
    assert outcome.output.endswith("state.sqlite3: unable to open database file; make it a file that can be written\n")
    assert "Traceback" not in outcome.output


def test_a_trace_that_cannot_be_written(mini):
    mini.environment = {"COPPELIUS_TRACE": "/dev/null/trace.json"}
    outcome = mini.doit()
    assert outcome.status == 0
    assert "/dev/null/trace.json: Not a directory; no trace\n" in outcome.output
