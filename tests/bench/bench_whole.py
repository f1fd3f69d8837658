"""The products and attention at the model's shapes: every proof that takes minutes, and the errors beside their bounds.

    PYTHONPATH=. python tests/bench/bench_whole.py [fast] [sixteen] [exact] [attention] [hostile]

    fast       each product whole, in fast mode, against float64
    sixteen    16 blocks of each at the real grid: strictly, all sanitizers on, the numpy model's bits
    exact      each product whole in exact mode: the numpy model's bits, and against float64
    attention  the three passes whole, in fast and in exact mode, against float64
    hostile    the three passes at short sequences, with other scales, infinities, large, small and constant inputs

Without a word all of them, both half formats each: about a quarter of an hour of one core.  They are the kernels' own
tests, slow ones too; 1.00 is just allowed.
"""

import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from bench_errors import KERNELS, Worst

import attention_cases  # isort: skip  (bench_errors names its folder)
import harness  # isort: skip

from coppelius import catalog
from coppelius.reference import bounds

PARTS = {
    "fast": ("test_products.py", "whole and not exact"),
    "sixteen": ("test_products.py", "sixteen"),
    "exact": ("test_products.py", "whole and exact"),
    "attention": ("test_streaming_attention.py", "the_models_shape and not blocks"),
    "hostile": ("test_streaming_attention.py", "not the_models_shape"),
}
RULES = ("exact_bits", "product", "attention", "attention_statistics")

Found = dict[tuple[str, str, str], Worst]


def watch() -> Found:
    """From here on every comparison counts for the image and half format that ran last."""
    found: Found = {}
    last = ["", ""]

    def running(run: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(run)
        def noted(identity: str, half: str, *given: Any, **keywords: Any) -> Any:
            last[:] = identity, half
            return run(identity, half, *given, **keywords)

        return noted

    def measuring(measure: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(measure)
        def measured(*given: Any, **keywords: Any) -> Any:
            made = measure(*given, **keywords)
            for one in made if isinstance(made, tuple) else (made,):
                rule = "relative norm, a format's" if last[1] in one.rule else one.rule  # 2^-8 and 2^-11
                worst = found.setdefault((*last, rule), Worst())
                worst.share = max(worst.share, one.worst)
                worst.comparisons += 1
                worst.elements += one.total
            return made

        return measured

    harness.report = running(harness.report)
    attention_cases.run = running(attention_cases.run)
    for name in RULES:
        setattr(bounds, name, measuring(getattr(bounds, name)))
    return found


def table(found: Found) -> str:
    """Worst shares a format; comparisons and elements of both."""
    lines = ["| image | bound | bf16 | f16 | comparisons | elements |", "|---|---|---:|---:|---:|---:|"]
    for image in catalog.IMAGES[29:]:
        for rule in dict.fromkeys(rule for identity, _, rule in found if identity == image.identity):
            both = [found.get((image.identity, half, rule)) for half in harness.HALVES]
            shares = [f"{w.share:.3g}" if w else "" for w in both]
            counts = (sum(w.comparisons for w in both if w), sum(w.elements for w in both if w))
            lines.append(f"| {image.identity} | {rule} | {' | '.join(shares)} | {counts[0]} | {counts[1]:,} |")
    return "\n".join(lines)


def main() -> int:
    """Prints a table a part; 1 where a test failed."""
    found, failed = watch(), 0
    for part in sys.argv[1:] or PARTS:
        file, words = PARTS[part]
        found.clear()
        started = time.process_time()
        options = ["-q", "-p", "no:cacheprovider", "--no-header", "-m", "slow or not slow", "-k", words]
        failed |= int(pytest.main([*options, str(KERNELS / file)]))
        print(f"\n{part}: {time.process_time() - started:.0f} s of processor time\n\n{table(found)}\n", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
