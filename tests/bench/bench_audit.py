"""The development corpus through the opcode table: what is handled, what is refused by name, whose text differs.

    python tests/bench/bench_audit.py --fetch folder [--no-text]           fetches it into an empty folder first
    COPPELIUS_CORPUS=folder python tests/bench/bench_audit.py [--no-text]

The folder holds `index.json` and `cubins/` as shared/tools/sm86_corpus.py beside the checkout leaves them;
each distinct kernel counts once.  Texts are compared with
nvdisasm's once a distinct word.  Exits with 1 where a word comes back changed or prints otherwise.
"""

import collections
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import oracle as nvdisasm

from coppelius.container.reader import read_kernels
from coppelius.isa import codec, printer
from coppelius.isa.audit import Audit, audit
from coppelius.isa.codec import Decoded
from coppelius.isa.table import sm86
from coppelius.isa.word import Words, from_bytes, text, to_bytes

GROUP = 100_000
_BRACES = re.compile(r" ?\{[A-Za-z][^{}]*=[^{}]*\}$")


def kernels(folder: Path) -> Iterator[bytes]:
    """The code of each distinct kernel."""
    index = json.loads((folder / "index.json").read_text())
    seen: set[bytes] = set()
    for name in dict.fromkeys(row["cubin"] for row in index["kernels"] if not row["dup"]):
        for kernel in read_kernels(folder / "cubins" / name):
            if kernel.code not in seen:
                seen.add(kernel.code)
                yield kernel.code


def text_differences(words: Words) -> tuple[int, collections.Counter[str], dict[str, str]]:
    """(words compared, differences by row, one of each) over the distinct words that are handled."""
    distinct = np.unique(words, axis=0)
    compared, found, first = 0, collections.Counter[str](), dict[str, str]()
    for at in range(0, len(distinct), GROUP):
        part = distinct[at : at + GROUP]
        decoded = codec.decode(sm86(), part)
        kept = np.flatnonzero(decoded.uids >= 0)
        part, decoded = part[kept], Decoded(sm86(), decoded.uids[kept], decoded.values[kept])
        compared += len(part)
        ours, theirs = printer.texts(decoded), nvdisasm.disassemble(to_bytes(part))
        for i, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
            if " ".join(_BRACES.sub("", mine).split()) != " ".join((yours or "").split()):
                row = sm86().encodings[decoded.uids[i]].name
                found[row] += 1
                first.setdefault(row, f"{text(part[i])} {yours!r}, ours {mine!r}")
        nvdisasm._answers.clear()
    return compared, found, first


def fetched(folder: Path) -> Path:
    """The corpus, built into `folder` (144 MB of wheels go through it) unless it is there already."""
    tool = Path(__file__).resolve().parents[3] / "shared" / "tools" / "sm86_corpus.py"
    if not (folder / "index.json").exists():
        subprocess.run([sys.executable, str(tool), "dev", str(folder)], check=True)
    return folder


def main() -> int:
    """Prints the totals; the denominator stands beside each figure."""
    folder = fetched(Path(sys.argv[sys.argv.index("--fetch") + 1])) if "--fetch" in sys.argv else None
    folder = folder or Path(os.environ["COPPELIUS_CORPUS"])
    code = list(kernels(folder))
    words = from_bytes(b"".join(code))
    start = time.perf_counter()
    total: Audit = audit(sm86(), words)
    seconds = time.perf_counter() - start
    print(f"{len(code)} distinct kernels, {total.words} words, {len(sm86().encodings)} rows")
    rate = total.words / seconds
    print(f"handled {total.handled} ({100 * total.share:.4f} %), wrong {total.wrong}, {rate:.0f} words a second")
    for name, count in total.refused.most_common():
        print(f"  refused {count:7d}  {name}  {total.first[name]}")
    if "--no-text" in sys.argv:
        return int(total.wrong > 0)
    compared, found, first = text_differences(words)
    print(f"text: {sum(found.values())} differences in {compared} distinct words; {nvdisasm.description()}")
    for name, count in found.most_common():
        print(f"  {count:7d}  {name}  {first[name]}")
    return int(total.wrong > 0 or bool(found))


if __name__ == "__main__":
    sys.exit(main())
