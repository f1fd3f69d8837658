"""The miniature checkout of the build's tests."""

import runpy
from pathlib import Path

_build = runpy.run_path(str(Path(__file__).parents[1] / "tasks" / "conftest.py"))
mini, built = _build["mini"], _build["built"]
