"""attention-forward: out = softmax(Q K^T scale) V of each head, causal, and the logarithm of each row's sum.

A warp keeps 16 rows of Q and of the sums, and walks the keys in tiles of 64 from the first to the diagonal;
tiles past it are never read.  Of each row it keeps the largest score so far and the sum of exponentials
below it, and rescales both sums where the maximum rises:

    p = 2^((s - top) c)    c = |scale| log2 e, the scale's sign folded into Q, so that s - top is never above 0
    lse = top |scale| + ln sum p

The difference is taken before the product: it is exact for near scores however large, so that no
exponent rounds above 0.  Masked scores of the diagonal's tile become minus infinity before the maximum.
While a tile's scores are computed its values are on their way, and the next tile's keys while it is summed.

Left out: values must be finite, for what the mask makes 0 still multiplies the values of the diagonal's tile.
"""

from __future__ import annotations

import math

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, R
from coppelius.kernels.blocks import adding, fold, larger
from coppelius.kernels.exponential import LOG2_E, MINUS_INFINITY
from coppelius.kernels.streaming_attention import (
    DEPTH,
    PIECE,
    ROW_BYTES,
    RUN,
    Place,
    Run,
    Sums,
    accumulate,
    advance,
    column_registers,
    first_operand,
    load_columns,
    load_first,
    load_run,
    mask_keys,
    over_lanes,
    packed,
    place_of,
    room_of,
    run_registers,
    scale_of,
    scores,
    zeros,
)

RUNS = 2  # of 32 keys in a tile
TILE = RUNS * RUN
LOWEST = -3.4028234663852886e38  # the lowest finite: its difference from a row of minus infinities is no NaN
_APART = 8


class Rows:
    """Rows g and g + 8: the largest score so far and the lane's part of the sum below it."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.top = [k.move(f"top{row}", LOWEST) for row in range(2)]
        self.total = [k.zero(f"total{row}") for row in range(2)]

    def take(self, sums: Sums, c: R) -> tuple[R, R]:
        """Scores become exponentials; returns how much the earlier sums shrink."""
        k = self.k
        values = [[s[2 * row + w] for s in sums for w in range(2)] for row in range(2)]
        tops = [fold(f"largest{row}", [self.top[row], *values[row]], larger(k)) for row in range(2)]
        over_lanes(k, "largest", tops, largest=True)
        factors = []
        for row in range(2):
            factor = k.FADD(f"factor{row}", self.top[row], -tops[row])
            k.FMUL(factor, factor, c)
            k.MUFU_EX2(factor, factor)
            k.MOV(self.top[row], tops[row])
            factors.append(factor)
        for s in sums:
            for word in range(4):
                k.FADD(s[word], s[word], -self.top[word // 2])
            for word in range(4):
                k.FMUL(s[word], s[word], c)
            for word in range(4):
                k.MUFU_EX2(s[word], s[word])
        for row in range(2):
            k.FFMA(self.total[row], self.total[row], factors[row], fold(f"sum{row}", values[row], adding(k)))
        return factors[0], factors[1]


def attention_forward(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Grid: heads, blocks of 64 rows, the last ones first."""
    place = place_of(k, sequence=sequence, heads=heads, depth=depth, last_first=True)
    keys = [run_registers(k, f"keys{run}.") for run in range(RUNS)]
    values = [column_registers(k, f"values{run}.") for run in range(RUNS)]
    with k.region("load"):
        loaded = load_first(k, "q", place.own_rows("q.pointer", "q", 2))
        key_pointer = place.rows_of_runs("key.pointer", "k")
        _load_keys(k, keys, key_pointer)
        value_pointer = place.columns_of_runs("value.pointer", "vt", place.spread)
        _load_values(k, values, value_pointer, sequence)
        flip, scale = scale_of(k)
        c = k.FMUL("c", abs(scale), LOG2_E)
        one = k.move("one", 1)
        # tiles before the diagonal's
        room = room_of(k, place)
        left = k.SHF_R_U32_HI("left", RZ, TILE.bit_length() - 1, place.first)
        rows, out = Rows(k), zeros(k, "out")
        query = first_operand(k, "query", loaded, flip)
    again, unmasked, more = k.label("tile"), k.label("unmasked"), k.predicate("more")
    k.place(again)
    with k.region("scores"):
        k.ISETP_NE_AND(more, PT, left, RZ, PT)
        sums = scores(k, "score", query, keys)
        advance(k, one, [(key_pointer, TILE * ROW_BYTES), (value_pointer, 2 * TILE)])
        with k.when(more):
            _load_keys(k, keys, key_pointer)
        k.BRA(unmasked, guard=more)
    with k.region("mask"):
        mask_keys(k, sums, room, MINUS_INFINITY)
    k.place(unmasked)
    with k.region("softmax"):
        factors = rows.take(sums, c)
        weights = packed(k, "weight", sums)
    with k.region("sum"):
        accumulate(k, out, weights, values, factors)
        with k.when(more):
            _load_values(k, values, value_pointer, sequence)
        k.IADD3(room, room, -TILE, RZ)
        k.IADD3(left, left, -1, RZ)
        k.BRA(again, guard=more)
    with k.region("store"):
        _store(k, place, rows, out)
    k.finish()


def _load_keys(k: Kernel, keys: list[Run], pointer: Vector) -> None:
    for at, run in enumerate(keys):
        load_run(k, run, pointer, RUN * ROW_BYTES * at)


def _load_values(k: Kernel, values: list[Sums], pointer: Vector, sequence: int) -> None:
    for at, columns in enumerate(values):
        load_columns(k, columns, pointer, sequence, _APART, 2 * RUN * at)


def _store(k: Kernel, place: Place, rows: Rows, out: Sums) -> None:
    """out as halves, eight neighbours a lane; lse by the first lane of each row."""
    over_lanes(k, "total", rows.total, largest=False)
    shares = [k.MUFU_RCP(f"share{row}", rows.total[row]) for row in range(2)]
    pointer = place.own_rows("out.pointer", "out", 2)
    for row in range(2):
        for run in range(DEPTH // RUN):
            halves = k.vector(f"halves{row}.{run}", 4)
            for word in range(4):
                s = out[4 * run + word]
                for w in range(2):
                    k.FMUL(s[2 * row + w], s[2 * row + w], shares[row])
                k.F2FP_PACK_AB(halves[word], s[2 * row + 1], s[2 * row])
            k.STG_E_128(k.at(pointer, 8 * ROW_BYTES * row + 4 * PIECE * run), halves)
    first_lane = k.compare("first.lane", "EQ", place.lane, RZ)
    statistic = place.statistic("lse.pointer", "lse")
    scale = k.move("scale.again", k.parameter("scale"))
    for row in range(2):
        logarithm = k.MUFU_LG2(f"logarithm{row}", rows.total[row])
        k.FMUL(logarithm, logarithm, math.log(2))
        level = k.FMUL(f"level{row}", rows.top[row], abs(scale))
        k.FADD(logarithm, level, logarithm)
        k.STG_E(k.at(statistic, 32 * row), logarithm, guard=first_lane)
