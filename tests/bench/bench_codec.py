"""Rates of decoding, encoding, printing and parsing on one core, nvdisasm's own beside them.

    COPPELIUS_CORPUS=folder python tests/bench/bench_codec.py

Without a corpus the words are those of our own compiled kernels, repeated.  Each rate is the best of
three runs in process time; a kernel's is over kernels of 900 to 1100 words, or slices of 1000.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import oracle as nvdisasm

from coppelius.container.reader import read_kernels
from coppelius.isa import codec, parser, printer
from coppelius.isa.codec import Decoded
from coppelius.isa.table import sm86
from coppelius.isa.word import Words, from_bytes, to_bytes

BIG = 400_000
SMALL = 20
PARSED = 2_000
DISASSEMBLED = 100_000
OWN = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
TARGETS = {"decode and encode": 1_000_000, "a kernel's decode and encode": 100_000, "print": 200_000}


def best(action: Callable[[], object]) -> float:
    """Seconds of process time, the least of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def corpus() -> list[Words]:
    """The words of each kernel, as many as a big batch needs."""
    folder = os.environ.get("COPPELIUS_CORPUS")
    files = sorted(Path(folder, "cubins").glob("*.cubin")) if folder else sorted(OWN.rglob("*.cubin"))
    out, count = [], 0
    while count < BIG:
        for file in files:
            kernels = [from_bytes(k.code) for k in read_kernels(file)]
            out += kernels
            count += sum(map(len, kernels))
            if count >= BIG:
                break
    return out


def handled(words: Words) -> Decoded:
    """The words that the table takes."""
    decoded = codec.decode(sm86(), words)
    kept = np.flatnonzero(decoded.uids >= 0)
    return Decoded(sm86(), decoded.uids[kept], decoded.values[kept])


def nvdisasm_rate(words: Words) -> float:
    """Words a second that nvdisasm prints, its start included; 0 where it is absent."""
    tool = nvdisasm.find_tool()
    if tool is None:
        return 0.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "words.bin")
        file.write_bytes(to_bytes(words))
        start = time.perf_counter()
        subprocess.run([tool, "-b", "SM86", "-ndf", file], check=True, stdout=subprocess.DEVNULL)
        return len(words) / (time.perf_counter() - start)


def main() -> None:
    """Prints a rate a line, its target beside it where there is one."""
    kernels = corpus()
    big = np.concatenate(kernels)[:BIG]
    small = [k for k in kernels if 900 <= len(k) <= 1100][:SMALL] or [big[i * 1000 :][:1000] for i in range(SMALL)]
    count = sum(map(len, small))
    table = sm86()
    decoded = handled(big)
    each = [handled(k) for k in small]
    # branch targets need their address: left out
    texts = [t for t in printer.texts(decoded)[:: len(decoded.uids) // PARSED] if " 0x" not in t]
    rates = {
        "decode": len(big) / best(lambda: codec.decode(table, big)),
        "encode": len(decoded.uids) / best(lambda: codec.encode(decoded)),
        "a kernel's decode": count / best(lambda: [codec.decode(table, k) for k in small]),
        "a kernel's encode": count / best(lambda: [codec.encode(d) for d in each]),
        "print": len(decoded.uids) / best(lambda: printer.texts(decoded)),
        "a kernel's print": count / best(lambda: [printer.texts(d) for d in each]),
        "parse": len(texts) / best(lambda: [parser.parse(table, t) for t in texts]),
    }
    for prefix in ("", "a kernel's "):
        pair = rates[f"{prefix}decode"], rates[f"{prefix}encode"]
        rates[f"{prefix}decode and encode"] = 1 / (1 / pair[0] + 1 / pair[1])
    print(f"{len(big)} words of {len(kernels)} kernels, {len(decoded.uids)} handled; {len(table.encodings)} encodings")
    for name, rate in rates.items():
        target = f"  (target {TARGETS[name]:,})" if name in TARGETS else ""
        print(f"{name:32s} {rate:12,.0f} words/s{target}")
    plain = big[(big[:, 0] & np.uint64(0xF0)) != 0x40][:DISASSEMBLED]
    print(f"{'nvdisasm ' + nvdisasm.PINNED:32s} {nvdisasm_rate(plain):12,.0f} words/s, printing {len(plain)}")


if __name__ == "__main__":
    main()
