"""The latency grid: cycles from one instruction's issue to another's that shares a register with it.

Hardware checks no fixed latency: a consumer that issues too early reads the old value.  Only stalls
count; scoreboard waits and branches give no credit.  A result of variable latency is signalled by a
scoreboard instead, and its operands may be read long after issue (`reads_late`).

The grids are data: a row a producer class, a column a consumer class, each cell cycles and a witness:

    m  mined: the least distance that shipped or freshly compiled code leaves (exceptions: `latency_reasons`)
    p  published
    a  nobody has seen it: takes the safest neighbour of its row or column

A class belongs to one touch of one instruction, because guard and operand, address and data, low and
high half of one instruction may differ.  Another target's instruction may be of another class
(`targets.latencies`).  `schedule` and `check` share these tables and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from coppelius.isa.access import Touch
from coppelius.isa.form import (
    ALU,
    CONTROL,
    FMA,
    FP64,
    HALF,
    NO_RESULT,
    SYSTEM,
    TENSOR,
    UNIFORM,
    VARIABLE,
    WIDE,
    Encoding,
)
from coppelius.isa.targets import latencies
from coppelius.isa.targets.latencies import Cell, Grid
from coppelius.isa.values import Alias, Suffix

Op = tuple[Encoding, Sequence[int]]

# cycles from an instruction that raises a scoreboard to one that waits for it (mined, published)
SET_TO_WAIT = 2
# a wait done by DEPBAR may follow the setter at once (mined)
SET_TO_DEPBAR = 1
# a scoreboard is a counter of 0..63 (published)
SCOREBOARD_LIMIT = 63


def _grid(text: str) -> Grid:
    """A table of cells (`4m`), column names in its first line, a row name first in each other line."""
    header, *rows = [line.split() for line in text.strip().splitlines()]
    grid: Grid = {}
    for name, *cells in rows:
        for column, cell in zip(header, cells, strict=True):
            grid[name, column] = Cell(int(cell[:-1]), cell[-1])
    return grid


# fmt: off
# Read after write.  General registers: `mixed` is HADD2.F32, `compare` HMNMX2/HSET2/HSETP2, `wide` IMAD.WIDE/HI
# (both halves, all its operands), `queue` the other variable-latency ops, `address` memory's address and data, SHFL,
# LDSM; `mma24`, `mma16`, `mma14` by shape; `move64` CS2R.64; `deep` HFMA2.MMA.
RAW: Grid = _grid("""
            alu fma half mixed compare wide mma  queue address fp64
alu         4m  5m  5m   5m    5m      5m   7m   4m    5m      6m
fma         5m  4m  5m   5m    5m      4m   7m   4m    5m      6m
wide        5m  4m  5p   5p    5p      6m   7p   4m    5m      8m
half        5m  5m  4m   5m    5m      5a   7m   4m    5m      6a
mixed       5m  5m  5m   5m    5m      5a   7m   4m    5m      6a
compare     5m  5m  5m   5m    4m      5a   7m   4m    5m      6a
mma24       24m 24m 24m  24m   24m     24a  24m  22m   23m     24a
mma16       16m 16m 16m  16a   16a     16a  16m  14m   15m     16a
mma14       13m 13m 13m  13a   13a     13a  14m  11m   12m     13a
move64      6m  6m  6a   6a    6a      6a   7a   6a    6a      6a
deep        10p 10p 10p  10p   10p     10a  11p  6p    7p      11a
""")

# Predicates.  `guard` also stands for branches, VOTE, BAR and every predicate operand of a variable-latency op.
RAW |= _grid("""
            guard alu.p fma.p half.p
alu.p       13m   4m    5m    5a
fma.p       13m   5m    4m    5a
half.p      13m   5m    5a    5a
r2p         13m   5m    5a    5a
""")

# Uniform registers: `datapath` UIADD3, ULOP3, ...; `move` ULDC, UMOV, VOTEU; `constant` ULDC and bindless constants.
RAW |= _grid("""
            vector.u queue.u control.u constant.u datapath.u move.u
datapath.u  6m       9m      10m       12m        4m         7m
move.u      2m       2m      3m        5p         2m         2a
""")

# Uniform predicates; `vote.up` is made by VOTEU.
RAW |= _grid("""
            guard.up control.up vector.up datapath.up
datapath.up 11m      9p         6m        4m
vote.up     5m       5a         1m        2m
""")

# Write after write: rows are the first writer.  A result of variable latency is waited for, never counted.
WAW: Grid = _grid("""
            alu fma half mixed compare wide mma24 mma16 mma14 move64 deep queue fp64
alu         2m  1m  1p   1p    1p      2p   6m    6m    6a    1m     1p   6m    1m
fma         1m  1m  1p   1p    1p      2p   6m    6m    6a    1a     1p   6m    1m
wide        2a  1p  2a   2a    2a      1p   6m    6m    6a    2a     2a   6m    1m
half        1p  1p  1p   1p    1p      2p   6m    6m    6a    1a     1p   6m    1m
mixed       1p  1p  1p   1p    1p      2p   6m    6m    6a    1a     1p   6m    1m
compare     1p  1p  1p   1p    1p      2p   6m    6m    6a    1a     1p   6m    1m
mma24       24m 24m 24m  24m   24m     24a  24m   24a   24a   24a    24a  24a   24a
mma16       16m 16m 16m  16m   16m     16a  16a   16m   16a   16a    16a  16a   16a
mma14       14a 14a 14a  14a   14a     14a  14a   14a   14m   14a    14a  14a   14a
move64      2m  2m  3a   3a    3a      3p   6m    6m    6a    1a     1a   6m    2m
deep        3p  3p  3p   3p    3p      3a   6m    6m    6a    3a     1a   6m    1m
""")
WAW |= _grid("""
            alu.p fma.p half.p r2p queue.p
alu.p       2m    1a    1a     1a  6a
fma.p       1a    1a    1a     1a  6a
half.p      1a    1a    1a     1a  6a
r2p         1a    1a    1a     1a  6a
""")
WAW |= _grid("""
            datapath.u move.u queue.u
datapath.u  2m         7m     7p
move.u      2m         1p     4m
""")
WAW |= _grid("""
            datapath.up vote.up queue.up
datapath.up 1p          7a      7a
vote.up     1a          1a      4a
""")

# Write after read, fixed-latency readers: rows are the reader.  Late readers need a scoreboard instead.
WAR: Grid = _grid("""
            fixed mma queue fp64
fixed       1m    2m  2m    1m
mma24       7m    8m  1m    1a
mma16       1m    8a  1m    1a
mma14       7a    8a  1m    1a
""")
WAR |= _grid("""
            datapath.u move.u queue.u
datapath.u  2m         3m     1m
fixed.u     1m         1m     1m
""")
# fmt: on

RAW = latencies.extend(RAW, latencies.RAW_COLUMNS, latencies.RAW_ROWS)
WAW = latencies.extend(WAW, latencies.WAW_COLUMNS, latencies.WAW_ROWS)
WAR = latencies.extend(WAR, latencies.WAR_COLUMNS, latencies.WAR_ROWS)

# A false guard on the first writer lets the second go sooner only where the table says so (published).
WAW_AFTER_PREDICATED = {("datapath.u", "queue.u"): 4}

# how deep the tensor pipe is for a shape: by the longest of these that a name begins with, else 24 (mined)
_TENSOR_DEPTHS = {
    "HMMA.1688": "mma16",
    "HMMA.1688.F32.TF32": "mma24",
    "HMMA.1684": "mma16",
    "HMMA.SP.16816": "mma16",
    "HMMA.SP.16816.F32.TF32": "mma24",
    "HMMA.SP.1688": "mma16",
    "IMMA.16816": "mma16",
    "IMMA.16832.S4": "mma16",
    "IMMA.16832.U4": "mma16",
    "IMMA.SP.16832": "mma16",
    "IMMA.SP.16864.S4": "mma16",
    "IMMA.SP.16864.U4": "mma16",
    "IMMA.88": "mma14",
    "BMMA.168128": "mma16",
    "BMMA.88128": "mma14",
}
# least stall of instructions that redirect control or order memory; the drain (stall 0) is no stall
# mined: never less in shipped code (DEPBAR also published), whatever follows
_MINIMUM_STALL = {"DEPBAR": 4, "MEMBAR": 6} | dict.fromkeys(
    ("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "BSYNC", "EXIT", "RET", "BPT", "CCTL"), 5
)
# address and data of these are ready as early as those of MUFU (mined)
_LIGHT = (
    *("LDC", "R2UR", "REDUX", "MATCH", "WARPSYNC", "RET", "CALL", "BRX", "JMX", "SULD", "SUST", "SURED", "SUATOM"),
    *("TEX", "TLD", "TLD4", "TXD", "TMML"),
)
_MEMORY_PIPES = frozenset(("memory", "shared"))
_UNIFORM_MOVES = ("ULDC", "UMOV", "VOTEU")
_FIXED_PIPES = frozenset((ALU, FMA, WIDE, HALF, TENSOR, UNIFORM))


@lru_cache(maxsize=8192)
def _suffix_columns(encoding: Encoding) -> tuple[int, ...]:
    """Columns of the fields whose codes have suffixes."""
    return tuple(encoding.column[m.name] for m in encoding.modifiers if not isinstance(m, Suffix | Alias))


@lru_cache(maxsize=65536)
def _suffixed(encoding: Encoding, codes: tuple[int, ...]) -> str:
    text, code = encoding.mnemonic, iter(codes)
    for modifier in encoding.modifiers:
        if isinstance(modifier, Suffix):
            text += modifier.text
        elif not isinstance(modifier, Alias):
            text += modifier.suffixes[next(code)]
    return text


def full_name(encoding: Encoding, values: Sequence[int]) -> str:
    """The mnemonic with its suffixes: `HMMA.16816.F32.BF16`."""
    return _suffixed(encoding, tuple([values[column] for column in _suffix_columns(encoding)]))


def stem(encoding: Encoding) -> str:
    """The mnemonic's first part: `IMAD` of `IMAD.WIDE`."""
    return encoding.stem


def is_variable(encoding: Encoding, values: Sequence[int]) -> bool:  # noqa: ARG001 - modifiers may decide one day
    """Whether its results are signalled by a scoreboard."""
    return encoding.latency == VARIABLE


def minimum_stall(encoding: Encoding) -> int:
    """The least stall that makes this instruction effective for the next one."""
    return _MINIMUM_STALL.get(stem(encoding), 1)


def reads_late(encoding: Encoding, values: Sequence[int], touch: Touch) -> bool:
    """Whether this operand is read some time after issue, so that overwriting it needs a scoreboard."""
    if touch.space != "R" or encoding.pipe in _FIXED_PIPES:
        return False
    if encoding.pipe == CONTROL:
        return stem(encoding) == "BAR"
    return is_variable(encoding, values) or encoding.latency == NO_RESULT


def producer_class(encoding: Encoding, values: Sequence[int], touch: Touch) -> str:
    """The row of this written register in RAW and WAW; classes named `queue` and `fp64` are no rows of RAW."""
    return latencies.producer(encoding.target, stem(encoding), _producer_class(encoding, values, touch))


def _producer_class(encoding: Encoding, values: Sequence[int], touch: Touch) -> str:
    if touch.space == "R":
        return _general_class(encoding, values)
    if touch.space == "P":
        if is_variable(encoding, values):
            return "queue.p"
        if stem(encoding) == "R2P":
            return "r2p"
        return {FMA: "fma.p", WIDE: "fma.p", HALF: "half.p"}.get(encoding.pipe, "alu.p")
    move = stem(encoding) in _UNIFORM_MOVES
    if touch.space == "UR":
        if stem(encoding) == "R2UR" and not is_variable(encoding, values):
            return "r2ur.u"
        return "queue.u" if is_variable(encoding, values) else "move.u" if move else "datapath.u"
    if touch.space == "UP":
        return "queue.up" if is_variable(encoding, values) else "vote.up" if move else "datapath.up"
    return "none"


def _general_class(encoding: Encoding, values: Sequence[int]) -> str:
    pipe = encoding.pipe
    if pipe == FP64:
        return "fp64"
    if is_variable(encoding, values):
        return "queue"
    if pipe == TENSOR:
        return _tensor_class(full_name(encoding, values))
    if pipe == HALF:
        return _half_class(encoding, values)
    if stem(encoding) == "CS2R":
        return "alu" if ".32" in full_name(encoding, values) else "move64"
    return pipe if pipe in (FMA, WIDE) else "alu"


@lru_cache(maxsize=1024)
def _tensor_class(name: str) -> str:
    known = [start for start in _TENSOR_DEPTHS if name.startswith(start)]
    return _TENSOR_DEPTHS[max(known, key=len)] if known else "mma24"


def _half_class(encoding: Encoding, values: Sequence[int]) -> str:
    name = full_name(encoding, values)
    if name.startswith("HFMA2.MMA"):
        return "deep"
    if name.startswith(("HMNMX2", "HSET")):
        return "compare"
    return "mixed" if name.startswith("HADD2") and ".F32" in name else "half"


def consumer_class(encoding: Encoding, values: Sequence[int], touch: Touch) -> str:
    """The column of this read register in RAW."""
    return latencies.consumer(encoding.target, stem(encoding), _consumer_class(encoding, values, touch))


def _consumer_class(encoding: Encoding, values: Sequence[int], touch: Touch) -> str:
    pipe = encoding.pipe
    if touch.space == "P":
        if touch.slot == "guard" or pipe not in _FIXED_PIPES or stem(encoding) == "VOTE":
            return "guard"
        return {FMA: "fma.p", WIDE: "fma.p", HALF: "half.p"}.get(pipe, "alu.p")
    if touch.space == "UP":
        if touch.slot == "guard":
            return "guard.up"
        return "datapath.up" if pipe == UNIFORM else "control.up" if pipe == CONTROL else "vector.up"
    if touch.space == "UR":
        return _uniform_consumer(encoding, values, touch)
    if touch.space != "R":
        return "none"
    if pipe in _MEMORY_PIPES and stem(encoding) not in _LIGHT:
        return "address"
    if pipe == FP64:
        return "fp64"
    if pipe == TENSOR:
        return "mma"
    if pipe == HALF:
        name = _half_class(encoding, values)
        return "half" if name == "deep" else name
    if pipe in (ALU, FMA, WIDE) and not is_variable(encoding, values):
        return pipe
    return "address" if stem(encoding) == "SHFL" else "queue"


def _uniform_consumer(encoding: Encoding, values: Sequence[int], touch: Touch) -> str:
    if encoding.pipe == UNIFORM:
        kind = stem(encoding)
        return "constant.u" if kind == "ULDC" else "move.u" if kind in _UNIFORM_MOVES else "datapath.u"
    if encoding.pipe in (CONTROL, SYSTEM) and not is_variable(encoding, values):
        return "control.u"
    if any(a.shift for a in encoding.accesses if a.slot == touch.slot):
        return "constant.u"
    return "vector.u" if encoding.pipe in _FIXED_PIPES else "queue.u"


def raw_cell(producer: str, consumer: str) -> Cell:
    """Read after write between two classes; zero where the producer is waited for by scoreboard."""
    return RAW.get((producer, consumer), _NOTHING)


def waw_cell(first: str, second: str, *, predicated: bool = False) -> Cell:
    """Write after write between two classes; zero where the first is waited for by scoreboard."""
    if predicated:
        if (first, second) in WAW_AFTER_PREDICATED:
            return Cell(WAW_AFTER_PREDICATED[first, second], "p")
        if second == "wide" and not first.startswith("mma"):
            return Cell(1, "p")
    return WAW.get((first, second), _NOTHING)


def war_cell(reader: str, writer: str) -> Cell:
    """Write after read between the classes of `reader_class` and `writer_class`."""
    return WAR.get((reader, writer), _NOTHING)


_NOTHING = Cell(0, "m")


def reader_class(encoding: Encoding, values: Sequence[int], touch: Touch) -> str:
    """The row of this read register in WAR."""
    if touch.space == "UR":
        moves = stem(encoding) in _UNIFORM_MOVES
        return "datapath.u" if encoding.pipe == UNIFORM and not moves else "fixed.u"
    if touch.space == "R" and encoding.pipe == TENSOR:
        return latencies.producer(encoding.target, stem(encoding), _general_class(encoding, values))
    return "fixed" if touch.space == "R" else "none"


def writer_class(encoding: Encoding, values: Sequence[int], touch: Touch) -> str:
    """The column of this written register in WAR."""
    kind = producer_class(encoding, values, touch)
    if touch.space != "R":
        return kind
    return "mma" if kind.startswith("mma") else kind if kind in ("queue", "fp64") else "fixed"


def raw_cycles(producer: Op, written: Touch, consumer: Op, read: Touch) -> int:
    """Cycles between issue that a fixed-latency result needs before this read; 0 where a scoreboard says it."""
    return raw_cell(producer_class(*producer, written), consumer_class(*consumer, read)).cycles


def war_cycles(reader: Op, read: Touch, writer: Op, written: Touch) -> int:
    """Cycles between a fixed-time read and a write of the same register."""
    return war_cell(reader_class(*reader, read), writer_class(*writer, written)).cycles


def waw_cycles(first: Op, written: Touch, second: Op, rewritten: Touch) -> int:
    """Cycles between two writes of one register, the first of fixed latency."""
    guarded = first[1][first[0].column["guard"]] != 7
    return waw_cell(producer_class(*first, written), producer_class(*second, rewritten), predicated=guarded).cycles
