"""Lets the tests of kernels import their harness."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
