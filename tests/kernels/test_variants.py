"""Shapes are parameters: other ones build, and those a kernel's mapping cannot serve are refused by name."""

import re
from typing import Any

import harness
import pytest

from coppelius import catalog
from coppelius.emit import emit
from coppelius.isa.refusal import Refusal

# fmt: off
OTHERS = [
    ("qk-rope",                {"sequence": 512, "heads": 4, "depth": 128}),
    ("inverse-rope-qkv",       {"sequence": 256, "heads": 4, "depth": 32}),
    ("value-transpose",        {"sequence": 128, "heads": 3, "depth": 64}),
    ("head-to-token",          {"sequence": 512, "heads": 16, "depth": 32}),
    ("token-to-head",          {"sequence": 2048, "heads": 2, "depth": 64}),
    ("layernorm-parameters",   {"width": 1024}),
    ("embedding-scatter",      {"vocabulary": 50304, "width": 512, "rows": 1024}),
    ("transpose-g8-r64-c1024", {"groups": 3, "rows": 64, "columns": 128}),
    ("argmax",                 {"vocabulary": 4096}),
]
REFUSED = [
    ("qk-rope",                {"heads": 6},       "rope: 6 heads are not whole groups of 4"),
    ("qk-rope",                {"sequence": 1020}, "heads: 128 pieces of 16 a row do not divide 1020 positions"),
    ("inverse-rope-qkv",       {"depth": 48},      "heads: 128 pieces of 12 a row do not divide 1024 positions"),
    ("value-transpose",        {"sequence": 1000}, "value-transpose: 1000 x 64 is not whole tiles of 128 x 64"),
    ("value-transpose",        {"depth": 32},      "value-transpose: 1024 x 32 is not whole tiles of 128 x 64"),
    ("head-to-token",          {"heads": 6},       "head moves: 6 heads are not 4 equal groups"),
    ("layernorm-backward",     {"width": 768},     "layernorm: width 768 is not 128 threads of 4 columns"),
    ("layernorm-parameters",   {"width": 500},     "layernorm-parameters: width 500 is not whole blocks of 8"),
    ("embedding-scatter",      {"rows": 512},      "embedding-scatter: 512 rows of 512 are not 1024 of 512"),
    ("embedding-scatter",      {"width": 256},     "embedding-scatter: 1024 rows of 256 are not 1024 of 512"),
    ("transpose-g8-r64-c1024", {"rows": 60},       "transpose: 60 x 1024 is not whole tiles of 64 x 64"),
    ("transpose-g8-r64-c1024", {"rows": 128},      "transpose: 128 x 1024 has tiles in both directions"),
    ("transpose-g8-r64-c1024", {"groups": 1 << 20}, "transpose: 1048576 groups of 64 x 1024 halves leave 31-bit"),
]
# fmt: on


def build(identity: str, options: dict[str, Any]) -> str:
    row = harness.image(identity)
    parameters = catalog.declaration(row)["parameters"]
    return emit(row.kernel, options, parameters=parameters, registers=row.registers, block_x=row.block_x).listing


@pytest.mark.parametrize(("identity", "options"), OTHERS)
def test_another_shape_builds_within_the_same_budget(identity: str, options: dict[str, Any]) -> None:
    assert build(identity, options) != build(identity, dict(harness.image(identity).options))


@pytest.mark.parametrize(("identity", "change", "says"), REFUSED)
def test_a_shape_that_does_not_fit_is_refused(identity: str, change: dict[str, Any], says: str) -> None:
    with pytest.raises(Refusal, match=re.escape(says)):
        build(identity, {**harness.image(identity).options, **change})
