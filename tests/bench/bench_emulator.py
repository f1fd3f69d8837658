"""How fast the emulator runs, in thread-instructions a second on one core: `python tests/bench/bench_emulator.py`.

A thread-instruction is one instruction executed by one thread.  Each line runs one instruction 64 times
between `S2R` and `EXIT`, at 32,768 threads, and takes the best of five launches; the figure includes
fetching, guards and writing back.  Seconds are of processor time, so that a busy machine tells the same.
Goals, in millions a second: FADD, IADD3, LOP3 and IMAD 100, FFMA 25, LDG and STG of neighbouring words 50;
strict mode with every sanitizer 10, on images as they are scheduled.

    --profile    where the time of each image goes, strict and watched: functions by their own seconds
"""

from __future__ import annotations

import cProfile
import os
import pstats
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from coppelius import catalog
from coppelius.arena.grid import evaluate
from coppelius.emit import emit
from coppelius.emulator.launch import CHECKS, Report, launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally, pack_parameters
from coppelius.program.encoding import encode_listing
from coppelius.program.listing import parse_listing

THREADS, COPIES, BLOCK = 32_768, 64, 256
CONTROL = "[B------:R-:W-:-:S01]"
# R2:R3 points at the thread's own 16 bytes, R8 holds its index
HEAD = (
    "S2R R8, SR_TID.X",
    "S2R R9, SR_CTAID.X",
    "IMAD R8, R9, c[0x0][0x0], R8",
    "MOV R4, {size}",
    "IMAD.WIDE.U32 R2, R8, R4, c[0x0][0x160]",
    *(f"I2FP.F32.U32 R{n}, R8" for n in range(16, 32)),
)
# text, bytes a thread of the buffer, goal in millions a second
INSTRUCTIONS = [
    ("FADD R10, R16, R17", 4, 100),
    ("FMUL R10, R16, R17", 4, None),
    ("FFMA R10, R16, R17, R18", 4, 25),
    ("@!P0 FADD R10, R16, R17", 4, None),
    ("IADD3 R10, R16, R17, R18", 4, 100),
    ("IADD3 R10, P1, R16, R17, RZ", 4, None),
    ("LOP3.LUT R10, R16, R17, R18, 0x96, !PT", 4, 100),
    ("IMAD R10, R16, R17, R18", 4, 100),
    ("IMAD.WIDE R10, R16, R17, R18", 4, None),
    ("ISETP.GE.AND P1, PT, R16, R17, PT", 4, None),
    ("SHF.R.U32.HI R10, RZ, 0x3, R16", 4, None),
    ("PRMT R10, R16, 0x5410, R17", 4, None),
    ("HADD2 R10, R16, R17", 4, None),
    ("HFMA2 R10, R16, R17, R18", 4, None),
    ("HFMA2.BF16_V2 R10, R16, R17, R18", 4, None),
    ("F2FP.BF16.PACK_AB R10, R16, R17", 4, None),
    ("MUFU.EX2 R10, R16", 4, None),
    ("SHFL.BFLY PT, R10, R16, 0x10, 0x1f", 4, None),
    ("LDG.E R10, [R2]", 4, 50),
    ("LDG.E.128 R12, [R2]", 16, 50),
    ("LDG.E R10, [R2]", 8, None),
    ("STG.E [R2], R16", 4, 50),
    ("STG.E.128 [R2], R16", 16, 50),
    ("LDS R10, [R9.X4]", 4, None),
    ("HMMA.16816.F32 R16, R20, R24, R28", 4, None),
]


def rate(text: str, size: int, mma: str) -> float:
    """Millions of thread-instructions a second."""
    head = [line.format(size=hex(size)) for line in HEAD]
    lines = [*head, *[text] * COPIES, "EXIT"]
    code = parse_listing("\n".join([".target sm86", *(f"{CONTROL} {line}" for line in lines)])).encode()
    short = parse_listing("\n".join([".target sm86", *(f"{CONTROL} {line}" for line in [*head, "EXIT"])])).encode()
    buffer = np.zeros(THREADS * size, np.uint8)
    spent = {}
    for name, words in (("all", code), ("head", short)):
        best = float("inf")
        for _ in range(5):
            memory = Memory()
            parameters = pack_naturally([buffer], memory)
            started = time.process_time()
            launch(
                words,
                grid=(THREADS // BLOCK, 1, 1),
                block=(BLOCK, 1, 1),
                parameters=parameters,
                memory=memory,
                shared_bytes=4096,
                mma=mma,
            )
            best = min(best, time.process_time() - started)
        spent[name] = best
    return THREADS * COPIES / max(spent["all"] - spent["head"], 1e-9) / 1e6


# image, its named dimensions; rows that make 32,768 threads or more
IMAGES = [
    ("add", {"count": 1 << 20}),
    ("cast-down", {"count": 1 << 20}),
    ("layernorm-forward", {"rows": 512}),
    ("softmax-forward", {"groups": 1}),
    ("transpose-g8-r1024-c64", {}),
]
WAYS = [("fast", ()), ("fast", sorted(CHECKS)), ("strict", ()), ("strict", sorted(CHECKS))]
SIZES = {"u32": np.uint32, "f32": np.float32, "half": np.float16, "u64": np.uint64}
STRICT_GOAL = 10


def image_report(identity: str, names: dict[str, int], mode: str, checks: Sequence[str]) -> tuple[Report, float]:
    """One launch of an image on buffers of small numbers; the report and its processor seconds."""
    image = next(i for i in catalog.IMAGES if i.identity == identity)
    declared, code = catalog.declaration(image), material(identity)
    values: list[Any] = []
    for p in image.parameters:
        if p.kind == "pointer":
            shape = [names[d] if isinstance(d, str) else d for d in p.dimensions]
            values.append(np.ones(shape, SIZES[p.type]))
        else:
            values.append(names.get(p.name, 1))
    memory = Memory()
    rows = [(p["kind"], p["type"], p["offset"]) for p in declared["parameters"]]
    parameters = pack_parameters(rows, values, memory)
    x, y, z = (evaluate(entry, names) for entry in image.grid)
    started = time.process_time()
    report = launch(
        code,
        grid=(x, y, z),
        block=(declared["block_x"], 1, 1),
        parameters=parameters,
        memory=memory,
        shared_bytes=declared["shared_bytes"],
        mode=mode,
        checks=checks,
    )
    return report, time.process_time() - started


@cache
def material(identity: str) -> bytes:
    """An image's words."""
    image = next(i for i in catalog.IMAGES if i.identity == identity)
    declared = catalog.declaration(image)
    emitted = emit(
        image.kernel,
        image.options,
        parameters=declared["parameters"],
        registers=declared["registers"],
        block_x=declared["block_x"],
    )
    return encode_listing(emitted.listing)


def image_rates(profile: bool) -> list[str]:
    """Prints the images' rates in each way; the names of those that miss the goal."""
    missed = []
    for identity, names in IMAGES:
        rates = []
        for mode, checks in WAYS:
            pairs = [image_report(identity, names, mode, checks) for _ in range(3)]
            rates.append(max(report.issued * 32 / seconds / 1e6 for report, seconds in pairs))
        print(f"{identity:28s}" + "".join(f"{rate:15.1f}" for rate in rates) + " M/s")
        if rates[-1] < STRICT_GOAL:
            missed.append(identity)
        if profile:
            profiler = cProfile.Profile()
            profiler.runcall(image_report, identity, names, *WAYS[-1])
            pstats.Stats(profiler).sort_stats("tottime").print_stats(12)
    return missed


def main() -> None:
    """Prints the tables; exits with 1 where a goal is missed."""
    missed = []
    rate(*INSTRUCTIONS[0][:2], "exact")  # the first run warms caches and clock
    for text, size, goal in INSTRUCTIONS:
        for mma in ("exact", "fast") if text.startswith("HMMA") else ("exact",):
            found = rate(text, size, mma)
            note = "" if goal is None else f"   goal {goal}" + ("" if found >= goal else "   MISSED")
            label = (
                f"{text}  ({size} bytes apart)" if "[R2]" in text else f"{text}  ({mma})" if "HMMA" in text else text
            )
            print(f"{label:60s} {found:9.1f} M/s{note}")
            if goal is not None and found < goal:
                missed.append(text)
    print(f"\n{'image':28s}" + "".join(f"{mode + ('+checks' if checks else ''):>15s}" for mode, checks in WAYS))
    missed += image_rates("--profile" in sys.argv)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
