"""attention-forward: out = softmax(Q K^T scale) V of each head, causal, and the logarithm of each row's sum.

A warp keeps 16 rows of Q and of the sums, and walks the keys in tiles of 64 from the first to the diagonal;
tiles past it are never read.  Of each row it keeps the largest score so far and the sum of exponentials
below it, and rescales both sums where the maximum rises:

    p = 2^((s - top) c)    c = |scale| log2 e, the scale's sign folded into Q, so that s - top is never above 0
    lse = top |scale| + ln sum p

The difference is taken before the product: it is exact for near scores however large, so that no
exponent rounds above 0.  Masked scores of the diagonal's tile become minus infinity before the maximum.
While a tile's scores are computed its values are on their way, and the next tile's keys while it is summed.

A masked score has no effect, whatever Q K^T gives there.

Left out: a NaN or infinity in row k of V also reaches rows of out before k, those of its aligned 64: the mask's 0
still multiplies it.  Tiles past the diagonal's may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, P, R
from coppelius.kernels.exponential import LOG2_E, MINUS_INFINITY
from coppelius.kernels.streaming_attention import (
    DEPTH,
    PIECE,
    ROW_BYTES,
    RUN,
    Emit,
    Place,
    Run,
    Sums,
    accumulate,
    advance,
    column_registers,
    first_operand,
    largest,
    load_columns,
    load_first,
    load_run,
    mask_keys,
    over_lanes,
    pack_all,
    place_of,
    rescale,
    room_of,
    run_all,
    run_registers,
    scale_of,
    scores,
    weave,
    zeros,
)

RUNS = 2  # of 32 keys in a tile
TILE = RUNS * RUN
LOWEST = -3.4028234663852886e38  # the lowest finite: its difference from a row of minus infinities is no NaN
LEAST = 2.0**-120  # of c: too little to tell scores apart, enough to keep an infinity
_APART = 8


class Rows:
    """Rows g and g + 8: the largest score so far and the lane's part of the sum below it."""

    def __init__(self, k: Kernel, c: R) -> None:
        self.k, self.c = k, c
        self.top = [k.move(f"top{row}", LOWEST) for row in range(2)]
        self.total = [k.zero(f"total{row}") for row in range(2)]

    def rise(self, sums: Sums, loads: Sequence[Emit]) -> list[R]:
        """Takes the tile's largest scores, loads between; returns by how much earlier sums shrink."""
        k = self.k
        tops, emits = largest(k, self.top, sums)
        weave(emits, loads)
        run_all(over_lanes(k, tops, largest=True))
        factors = []
        for row in range(2):
            factor = k.FADD(f"factor{row}", self.top[row], -tops[row])
            k.FMUL(factor, factor, self.c)
            k.MUFU_EX2(factor, factor)
            k.MOV(self.top[row], tops[row])
            factors.append(factor)
        return factors

    def shrink(self, factors: Sequence[R]) -> list[Emit]:
        """The sums of exponentials so far, below the new tops."""
        return [partial(self.k.FMUL, total, total, f) for total, f in zip(self.total, factors, strict=True)]

    def exponentials(self, tiles: Sums) -> list[Emit]:
        """Scores become exponentials."""
        k, words = self.k, range(4)
        return [
            emit
            for s in tiles
            for emit in (
                *(partial(k.FADD, s[w], s[w], -self.top[w // 2]) for w in words),
                *(partial(k.FMUL, s[w], s[w], self.c) for w in words),
                *(partial(k.MUFU_EX2, s[w], s[w]) for w in words),
            )
        ]

    def add(self, tiles: Sums) -> list[Emit]:
        """Exponentials into the sums, rows in turn."""
        return [
            partial(self.k.FADD, self.total[r], self.total[r], s[2 * r + w])
            for s in tiles
            for w in (0, 1)
            for r in (0, 1)
        ]


def attention_forward(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Grid: heads, blocks of 64 rows, the last ones first."""
    place = place_of(k, sequence=sequence, heads=heads, depth=depth, last_first=True)
    keys = [run_registers(k, f"keys{run}.") for run in range(RUNS)]
    values = [column_registers(k, f"values{run}.") for run in range(RUNS)]
    with k.region("load"):
        loaded = load_first(k, "q", place.own_rows("q.pointer", "q", 2))
        key_pointer = place.rows_of_runs("key.pointer", "k")
        run_all(_load_keys(k, keys, key_pointer))
        value_pointer = place.columns_of_runs("value.pointer", "vt", place.spread)
        run_all([load for loads in _load_values(k, values, value_pointer, sequence) for load in loads])
        flip, scale = scale_of(k)
        c = k.FMUL("c", abs(scale), LOG2_E)
        # a scale of 0 must leave masked scores at minus infinity
        k.FMNMX(c, c, LEAST, ~PT)
        one = k.move("one", 1)
        # tiles before the diagonal's
        room = room_of(k, place)
        left = k.SHF_R_U32_HI("left", RZ, TILE.bit_length() - 1, place.first)
        rows, out = Rows(k, c), zeros(k, "out")
        query = first_operand(k, "query", loaded, flip)
    again, unmasked, more = k.label("tile"), k.label("unmasked"), k.predicate("more")
    k.place(again)
    with k.region("scores"):
        k.ISETP_NE_AND(more, PT, left, RZ, PT)
        sums, steps = scores(k, "score", query, keys)
        run_all([*steps[0], *steps[1]])
        # pieces that no step reads any more come again for the next tile
        loads = _load_keys(k, keys, key_pointer, TILE, more)
        weave([*steps[2], *steps[3]], loads[: len(loads) // 2])
        advance(k, one, [(key_pointer, TILE * ROW_BYTES), (value_pointer, 2 * TILE)])
        k.BRA(unmasked, guard=more)
    with k.region("mask"):
        mask_keys(k, sums, room, MINUS_INFINITY)
    k.place(unmasked)
    with k.region("sum"):
        factors = rows.rise(sums, _load_keys(k, keys, key_pointer, 0, more)[len(loads) // 2 :])
        next_values = _load_values(k, values, value_pointer, sequence, more)
        _sum(k, rows, factors, sums, out, values, next_values)
        k.IADD3(room, room, -TILE, RZ)
        k.IADD3(left, left, -1, RZ)
        k.BRA(again, guard=more)
    with k.region("store"):
        _store(k, place, rows, out)
    k.finish()


def _sum(
    k: Kernel, rows: Rows, factors: Sequence[R], sums: Sums, out: Sums, values: list[Sums], loads: list[list[Emit]]
) -> None:
    """Exponentials two steps ahead of the products that they go into, and packed one step ahead.

    Values come again for the next tile once their last step has read them.
    """
    pairs = [sums[at : at + 2] for at in range(0, len(sums), 2)]
    weights, packs = pack_all(k, "weight", sums)
    ready = [[*rows.add(pair), *packs[4 * at : 4 * at + 4]] for at, pair in enumerate(pairs)]
    weave(rows.exponentials(pairs[0]), [*rows.shrink(factors), *rescale(k, out, factors)])
    run_all([*rows.exponentials(pairs[1]), *ready[0]])
    between = [
        [*ready[1], *rows.exponentials(pairs[2])],
        [*ready[2], *rows.exponentials(pairs[3])],
        [*ready[3], *loads[0]],
        loads[1],
    ]
    for step, weight in enumerate(weights):
        weave(accumulate(k, out, weight, values[step // 2], step), between[step])


def _load_keys(k: Kernel, keys: list[Run], pointer: Vector, ahead: int = 0, guard: P = PT) -> list[Emit]:
    """Both runs' first pieces, then their second ones, so many keys ahead."""
    loads = [load_run(k, run, pointer, ROW_BYTES * (ahead + RUN * at), guard) for at, run in enumerate(keys)]
    half = len(loads[0]) // 2
    return [*loads[0][:half], *loads[1][:half], *loads[0][half:], *loads[1][half:]]


def _load_values(k: Kernel, values: list[Sums], pointer: Vector, sequence: int, guard: P = PT) -> list[list[Emit]]:
    """Each run's."""
    return [load_columns(k, c, pointer, sequence, _APART, 2 * RUN * at, guard) for at, c in enumerate(values)]


def _store(k: Kernel, place: Place, rows: Rows, out: Sums) -> None:
    """out as halves, eight neighbours a lane; lse by the first lane of each row."""
    run_all(over_lanes(k, rows.total, largest=False))
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
