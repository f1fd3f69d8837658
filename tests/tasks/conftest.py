"""A miniature checkout for every test here."""

import importlib.util
import sys
from pathlib import Path

import pytest


def load_miniature():
    """The miniature's module; test folders are no packages."""
    if "miniature_checkout" not in sys.modules:
        spec = importlib.util.spec_from_file_location("miniature_checkout", Path(__file__).with_name("miniature.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules["miniature_checkout"] = module
        spec.loader.exec_module(module)
    return sys.modules["miniature_checkout"]


@pytest.fixture(params=[("sm86",)], ids=["sm86"])
def mini(request, tmp_path):
    return load_miniature().Miniature(tmp_path / "checkout", targets=request.param)


@pytest.fixture
def built(mini):
    return mini.built()


load_miniature()  # test modules import `miniature_checkout`
