"""A few blocks of each image where the schedule is honoured: no finding, and the bits of the fast run.

A wait that is missing or a stall that is too short is a fault here, or shows as other bits.
"""

from __future__ import annotations

from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import catalog, model

NAMES = {"count": 1025, "rows": 900, "groups": 1, "positions": 70, "vocabulary": model.VOCABULARY}
SCALARS = {"seed": 0x123456789ABCDEF, "stream": 3, "value": 7}
# identity: what it writes, blocks to run (None: all); adamw's 600 MB of buffers are not run twice
# fmt: off
RUNS: dict[str, tuple[str, list[int] | None]] = {
    "random-normal":          ("out", None),
    "rotary-table":           ("out", None),
    "fill":                   ("out", None),
    "copy":                   ("out", None),
    "cast-down":              ("out", None),
    "cast-up":                ("out", None),
    "add":                    ("out", None),
    "scale":                  ("out", None),
    "argmax":                 ("out", [5, 899]),
    "gather":                 ("out", [5, 899]),
    "layernorm-forward":      ("out mean rstd", [5, 899]),
    "qk-rope":                ("q k", [3, 200]),
    "value-transpose":        ("vt", [5, 63]),
    "head-to-token":          ("out", [5, 127]),
    "token-to-head":          ("out", [5, 127]),
    "inverse-rope-qkv":       ("dqkv", [3, 200]),
    "softmax-forward":        ("probs", [5, 1023]),
    "softmax-backward":       ("dscores", [5, 1023]),
    "layernorm-backward":     ("dx", [5, 899]),
    "layernorm-parameters":   ("dgain dbias", [5]),
    "cross-entropy":          ("loss lse", [5, 899]),
    "cross-entropy-backward": ("dlogits", [5, 899]),
    "embedding-scatter":      ("", [0, 1, 2, 9]),
    "gated-gelu-forward":     ("out", None),
    "gated-gelu-backward":    ("dgate dup", None),
    "transpose-g8-r1024-c64": ("out", [5, 127]),
    "transpose-g8-r64-c1024": ("out", [5, 127]),
    "loss-target-gather":     ("correct", None),
}
# fmt: on


def buffer(parameter: catalog.Parameter, shape: list[int]) -> NDArray[Any]:
    random = np.random.default_rng(sum(parameter.name.encode()))
    count = int(np.prod(shape))
    if parameter.type == "half":
        return harness.hostile_half(count, 1).reshape(shape)
    if parameter.type == "u32":
        # few different ones: the scatter goes round its loop many times
        return random.integers(0, 5, shape).astype(np.uint32)
    return random.standard_normal(shape, np.float32)


def given(identity: str) -> dict[str, Any]:
    """Arguments of a run, from the image's own row."""
    written, blocks = RUNS[identity]
    arguments: dict[str, Any] = {"blocks": blocks}
    for parameter in harness.image(identity).parameters:
        shape = [NAMES[d] if isinstance(d, str) else d for d in parameter.dimensions]
        if parameter.kind == "scalar":
            arguments[parameter.name] = SCALARS.get(parameter.name, NAMES.get(parameter.name, 0.5))
        elif parameter.name in written.split():
            arguments[parameter.name] = shape
        else:
            arguments[parameter.name] = buffer(parameter, shape)
    return arguments | ({"in_place": ["dtable"]} if identity == "embedding-scatter" else {})


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", RUNS)
def test_the_schedule_gives_the_same_bits(identity: str, half: str) -> None:
    strict, fast = (harness.run(identity, half, mode=mode, **given(identity)) for mode in ("strict", "fast"))
    assert strict
    for name, array in strict.items():
        assert array.tobytes() == fast[name].tobytes(), name
