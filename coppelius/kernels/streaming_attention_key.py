"""attention-key: dK = scale g^T Q and dV = p^T dout of each head.

A warp keeps 16 rows of K, V, dK and dV and walks the queries in tiles of 32 from the diagonal's to the
last.  It computes the transposed scores, keys as rows: p^T and g^T are then first operands as they are,
and lse and delta belong to columns, of which a lane has eight neighbours.

p goes into its product times 2^14, which its bound of 1 leaves room for in f16, so that small
ones keep their digits; the sums are divided by that where they are stored.  Queries and dout along the
depth come for the next tile as soon as their products have read them (the last tile asks for itself
again); the transposed rows, for which there are no registers that long, are asked for before the products
that precede their own.  Masked ones of the diagonal's tile become 0.

Left out: a NaN or infinity in row q of Q (of dout) also reaches rows of dK (of dV) after q, those of its aligned 32:
the mask's 0 still multiplies it.  Tiles before the diagonal's may hold anything.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, P, R
from coppelius.kernels.exponential import LOG2_E
from coppelius.kernels.streaming_attention import (
    PIECE,
    ROW_BYTES,
    ROWS,
    RUN,
    TILES,
    Place,
    Sums,
    accumulate,
    advance,
    column_registers,
    first_operand,
    load_columns,
    load_first,
    load_run,
    pack_all,
    place_of,
    rescale,
    run_all,
    run_registers,
    scale_of,
    scores,
    spread_of,
    store_floats,
    weave,
    zeros,
)
from coppelius.kernels.streaming_attention_gradient import APART, Powers, gradients, probabilities

SHIFT = 14


def attention_key(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Grid: heads, blocks of 64 rows; the first ones have the longest way."""
    place = place_of(k, sequence=sequence, heads=heads, depth=depth, last_first=False)
    queries, douts = run_registers(k, "queries"), run_registers(k, "douts")
    # one place for two: dout is read before the queries' columns are asked for, and they before dout again
    more_columns = [register for pieces in douts for register in pieces]
    with k.region("load"):
        key = load_first(k, "k", place.own_rows("k.pointer", "k", 2))
        value = load_first(k, "v", place.own_rows("v.pointer", "v", 2))
        # the diagonal's tile
        tile = k.SHF_R_U32_HI("tile", RZ, RUN.bit_length() - 1, place.first)
        start = k.SHF_L_U32("start", tile, RUN.bit_length() - 1, RZ)
        query_pointer = place.rows_of_runs("query.pointer", "q", start)
        run_all(load_run(k, queries, query_pointer))
        dout_pointer = place.rows_of_runs("dout.pointer", "dout", start)
        run_all(load_run(k, douts, dout_pointer))
        spread = spread_of(k, "column", place.group, APART)
        query_columns = place.columns_of_runs("query.columns", "qt", spread, start)
        dout_columns = place.columns_of_runs("dout.columns", "doutt", spread, start)
        statistics = _statistics(k, place, start)
        flip, scale = scale_of(k)
        c = k.FMUL("c", abs(scale), LOG2_E)
        top = k.move("top", float(SHIFT))
        left = k.IADD3("left", -tile, sequence // RUN - 1, RZ)
        past = k.predicate("past")
        k.ISETP_NE_AND(past, PT, RZ, RZ, PT)
        powers, dk, dv = Powers(k), zeros(k, "dk"), zeros(k, "dv")
        keys, values = first_operand(k, "key", key, flip), first_operand(k, "value", value)
    again, unmasked = k.label("tile"), k.label("unmasked")
    k.place(again)
    with k.region("scores"):
        # the last tile asks for itself again: loads under a guard would keep what they replace alive
        moving = _moving(k, left)
        columns = column_registers(k, "columns")
        shifts = _load_statistic(k, "lse", statistics["lse"])
        weights, steps = scores(k, "score", keys, [queries])
        weave([emit for step in steps for emit in step], load_columns(k, columns, dout_columns, sequence, APART))
        deltas = _load_statistic(k, "delta", statistics["delta"])
        advance(k, moving, [(query_pointer, RUN * ROW_BYTES), (dout_pointer, RUN * ROW_BYTES), (dout_columns, 2 * RUN)])
        for shift in shifts:
            k.FFMA(shift, shift, LOG2_E, -top)
        # each exponential while the tensor cores are at the second product
        between = probabilities(k, weights, c, _by_column(shifts), top)
        products, steps = scores(k, "dp", values, [douts])
        weave([*steps[0], *steps[1]], between[: len(between) // 2])
        loads = load_columns(k, more_columns, query_columns, sequence, APART)
        # those in place of dout's first pieces, which no step reads any more
        weave([*steps[2], *steps[3]], [*loads[::2], *between[len(between) // 2 :]])
        advance(k, moving, [(pointer, 4 * RUN) for pointer in statistics.values()])
    with k.region("gradient"):
        run_all(loads[1::2])
        gradients(k, products, weights, _by_column(deltas))
        k.BRA(unmasked, guard=past)
    with k.region("mask"):
        _mask_queries(k, weights, products)
    k.place(unmasked)
    with k.region("sum"):
        p, packs = pack_all(k, "p", weights)
        run_all(packs)
        factors, emits = powers.take(products)
        g, packs = pack_all(k, "g", products)
        # all that the second product waits for, while the tensor cores are at the first
        first = [emit for step, operand in enumerate(p) for emit in accumulate(k, dv, operand, columns, step)]
        weave(first, [*load_run(k, queries, query_pointer), *emits, *packs, *rescale(k, dk, factors)])
        # dout's first pieces lie in every second place
        loads = load_run(k, douts, dout_pointer)
        loads = [load for two in zip(loads[:TILES], loads[TILES:], strict=True) for load in two]
        for step, operand in enumerate(g):
            weave(accumulate(k, dk, operand, more_columns, step), loads if step else ())
        advance(k, _moving(k, left), [(query_columns, 2 * RUN)])
        k.ISETP_EQ_AND(past, PT, RZ, RZ, PT)
        k.IADD3(left, left, -1, RZ)
        k.BRA(again, guard=k.compare("more", "GE", left, 0, unsigned=False))
    with k.region("store"):
        # found again: the loop has no registers left for it
        place = place_of(k, sequence=sequence, heads=heads, depth=depth, last_first=False)
        # both sums hold 2^SHIFT
        share = k.FMUL("share", k.move("scale.again", k.parameter("scale")), 2.0**-SHIFT)
        store_floats(k, dk, place, "dk.pointer", "dk", powers.undo(share))
        inverse = k.move("inverse", 2.0**-SHIFT)
        store_floats(k, dv, place, "dv.pointer", "dv", (inverse, inverse))
    k.finish()


def _statistics(k: Kernel, place: Place, start: R) -> dict[str, Vector]:
    """Pointers to lse and delta of the lane's first query."""
    row = k.IMAD("statistic.row", place.head, place.sequence, start)
    k.IMAD(row, place.lane, 8, row)
    return {name: k.element(f"{name}.pointer", name, row, 4) for name in ("lse", "delta")}


def _load_statistic(k: Kernel, name: str, pointer: Vector) -> list[R]:
    """The lane's eight neighbours."""
    quads = [k.LDG_E_128(f"{name}.quad{at}", k.at(pointer, PIECE * at)) for at in range(2)]
    return [quad[lane] for quad in quads for lane in range(4)]


def _by_column(values: list[R]) -> list[list[R]]:
    """A number a column as the four words of each tile need it."""
    return [[values[2 * tile], values[2 * tile + 1]] * 2 for tile in range(TILES)]


def _moving(k: Kernel, left: R) -> R:
    """1 where another tile follows, else 0."""
    made: R = k.IMNMX_U32("moving", left, 1, PT)
    return made


def _lead(k: Kernel) -> R:
    """How far row g lies behind the lane's first query of the diagonal's tile, which two warps of 16 rows share."""
    thread = k.thread_index()
    lead: R = k.SHF_R_U32_HI("lead", RZ, 2, thread)
    upper = k.SHF_R_U32_HI("lead.warp", RZ, 1, thread)
    k.LOP3_LUT(upper, upper, ROWS, RZ, 0xC0)
    k.LOP3_LUT(lead, lead, 7, upper, 0xEA)
    lane = k.LOP3_LUT("lead.lane", thread, 3, RZ, 0xC0)
    k.IMAD(lead, lane, -8, lead)
    return lead


def _mask_queries(k: Kernel, weights: Sums, products: Sums) -> None:
    """Both become 0 where the query comes before the row's key."""
    lead = _lead(k)
    for row in range(2):
        for at in range(TILES):
            for w in range(2):
                kept: P = k.compare(f"kept{row}.{at}.{w}", "LE", lead, 2 * at + w - 8 * row, unsigned=False)
                for sums in (weights, products):
                    k.FSEL(sums[at][2 * row + w], sums[at][2 * row + w], RZ, kept)
