"""The measured errors of the images of rows 1 to 29, as shares of their bounds.

    python tests/bench/bench_errors.py [pytest options]

Runs the kernels' own tests (real shapes, or their seeded samples; both half formats; hostile inputs too) and notes
the worst outcome of each bound that they hold an image to: 1.00 is just allowed, 0 is equal bits.  `--runslow` adds
the whole shapes that the ordinary run samples.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernels"))

import harness

from coppelius import catalog
from coppelius.reference import bounds

KERNELS = Path(__file__).resolve().parents[1] / "kernels"
FILES = (
    "random_normal", "rotary_table", "elementwise", "argmax", "gather", "layernorm", "rope", "value_transpose",
    "head_moves", "softmax", "layernorm_backward", "layernorm_parameters", "cross_entropy", "embedding_scatter",
    "adamw", "gated_gelu", "transpose", "loss_target_gather",
)  # fmt: skip
RULES = ("exact_bits", "elementwise_f32", "half_output", "row_reduction", "column_sum", "absolute")


@dataclass
class Worst:
    """Of one image and bound: the worst share, and how many comparisons and elements it is the worst of."""

    share: float = 0.0
    comparisons: int = 0
    elements: int = 0


def watch() -> dict[tuple[str, str], Worst]:
    """From here on every comparison counts for the image that ran last."""
    found: dict[tuple[str, str], Worst] = {}
    last = [""]
    report = harness.report

    @wraps(report)
    def noted(identity: str, *given: Any, **keywords: Any) -> Any:
        last[0] = identity
        return report(identity, *given, **keywords)

    harness.report = noted

    def measuring(measure: Callable[..., bounds.Measured]) -> Callable[..., bounds.Measured]:
        @wraps(measure)
        def measured(*given: Any, **keywords: Any) -> bounds.Measured:
            made = measure(*given, **keywords)
            worst = found.setdefault((last[0], made.rule), Worst())
            worst.share = max(worst.share, made.worst)
            worst.comparisons += 1
            worst.elements += made.total
            return made

        return measured

    for name in RULES:
        setattr(bounds, name, measuring(getattr(bounds, name)))
    return found


def main() -> int:
    """Prints the table; 1 where a test failed."""
    found = watch()
    paths = [str(KERNELS / f"test_{name}.py") for name in FILES]
    failed = pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", *sys.argv[1:], *paths])
    print("\n| image | bound | worst share of it | comparisons | elements |\n|---|---|---|---|---|")
    for image in catalog.IMAGES[:29]:
        rows = [(rule, worst) for (identity, rule), worst in found.items() if identity == image.identity]
        for rule, worst in sorted(rows, key=lambda row: row[0]):
            cells = image.identity, rule, f"{worst.share:.3g}", f"{worst.comparisons}", f"{worst.elements:,}"
            print("| " + " | ".join(cells) + " |")
        if not rows:
            print(f"| {image.identity} | equal arrays, asserted by its tests | | | |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
