"""Lets the tests of kernels import their harness, and keeps the products from filling the ordinary run."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

# of the tiled products, one a layout runs in the tests that go through all images; `test_products` has them all
OVER_ALL_IMAGES = ("test_strict.py", "test_access.py", "test_lowered.py")
REPRESENTATIVES = ("tiled-rr-m1024-n512-k512-add", "tiled-rc-m1024-n512-k512-", "tiled-cc-m512-n512-k1024")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The other products there are slow."""
    for item in items:
        name = f"{item.name}-".replace("]-", "-")
        if item.path.name in OVER_ALL_IMAGES and "tiled-" in name and not any(r in name for r in REPRESENTATIVES):
            item.add_marker(pytest.mark.slow)
