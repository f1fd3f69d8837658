"""attention-query: dQ = scale g K with g = p (dout V^T - delta), and delta = sum(dout out) of each row.

A warp keeps 16 rows of Q, dout and dQ and walks the keys in tiles of 32 from the first to the diagonal.
Of each tile three fragments are on their way before they are needed: the keys along the depth, the
values along the depth, and the keys' transposed rows.  Each comes again for the next tile as soon as its
product has read it.  Masked gradients of the diagonal's tile become 0, whatever their scores hold.

Left out: keys must be finite, for a gradient of 0 still multiplies the keys of the diagonal's tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, R
from coppelius.kernels.exponential import LOG2_E
from coppelius.kernels.streaming_attention import (
    ROW_BYTES,
    RUN,
    TILES,
    Place,
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
    spread_of,
    store_floats,
    zeros,
)
from coppelius.kernels.streaming_attention_gradient import APART, Powers, gradients, probabilities


def attention_query(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Grid: heads, blocks of 64 rows, the last ones first."""
    place = place_of(k, sequence=sequence, heads=heads, depth=depth, last_first=True)
    keys, values, columns = run_registers(k, "keys"), run_registers(k, "values"), column_registers(k, "columns")
    with k.region("load"):
        query = load_first(k, "q", place.own_rows("q.pointer", "q", 2))
        dout = load_first(k, "dout", place.own_rows("dout.pointer", "dout", 2))
        out = load_first(k, "out", place.own_rows("out.pointer", "out", 2))
        lse_pointer = place.statistic("lse.pointer", "lse")
        shift = [k.LDG_E(f"lse{row}", k.at(lse_pointer, 32 * row)) for row in range(2)]
        key_pointer = place.rows_of_runs("key.pointer", "k")
        load_run(k, keys, key_pointer)
        value_pointer = place.rows_of_runs("value.pointer", "v")
        load_run(k, values, value_pointer)
        column_pointer = place.columns_of_runs("column.pointer", "kt", spread_of(k, "column", place.group, APART))
        load_columns(k, columns, column_pointer, sequence, APART)
        flip, scale = scale_of(k)
        c = k.FMUL("c", abs(scale), LOG2_E)
        one = k.move("one", 1)
        room = room_of(k, place)
        left = k.SHF_R_U32_HI("left", RZ, RUN.bit_length() - 1, place.first)
        powers, dq = Powers(k), zeros(k, "dq")
    with k.region("delta"):
        delta = _delta(k, place, dout, out)
    with k.region("load"):
        for row in range(2):
            k.FMUL(shift[row], shift[row], LOG2_E)
        queries, gradients_in = first_operand(k, "query", query, flip), first_operand(k, "dout", dout)
    again, unmasked, more = k.label("tile"), k.label("unmasked"), k.predicate("more")
    k.place(again)
    with k.region("scores"):
        k.ISETP_NE_AND(more, PT, left, RZ, PT)
        weights = scores(k, "score", queries, [keys])
        advance(k, one, [(key_pointer, RUN * ROW_BYTES), (value_pointer, RUN * ROW_BYTES), (column_pointer, 2 * RUN)])
        with k.when(more):
            load_run(k, keys, key_pointer)
        products = scores(k, "dp", gradients_in, [values])
        with k.when(more):
            load_run(k, values, value_pointer)
    with k.region("gradient"):
        probabilities(k, weights, c, [_by_row(shift)] * TILES)
        gradients(k, products, weights, [_by_row(delta)] * TILES)
        k.BRA(unmasked, guard=more)
    with k.region("mask"):
        mask_keys(k, products, room, RZ)
    k.place(unmasked)
    with k.region("sum"):
        factors = powers.take(products)
        accumulate(k, dq, packed(k, "gradient", products), [columns], factors)
        with k.when(more):
            load_columns(k, columns, column_pointer, sequence, APART)
        k.IADD3(room, room, -RUN, RZ)
        k.IADD3(left, left, -1, RZ)
        k.BRA(again, guard=more)
    with k.region("store"):
        store_floats(k, dq, place, "dq.pointer", "dq", powers.undo(k.parameter("scale")))
    k.finish()


def _by_row(values: Sequence[R]) -> list[R]:
    """A number a row as the four words of a tile need it."""
    return [values[0], values[0], values[1], values[1]]


def _delta(k: Kernel, place: Place, dout: Sequence[Vector], out: Sequence[Vector]) -> list[R]:
    """sum(dout out) of rows g and g + 8, in f32: each lane its sixteen in order, then the lanes."""
    sums = [k.zero(f"delta{row}") for row in range(2)]
    for row in range(2):
        for piece in range(2):
            for word in range(4):
                for half in ("H0_H0", "H1_H1"):
                    a, b = (
                        k.HADD2_F32(f"{name}.wide", -RZ, R(loaded[2 * row + piece][word].index, half=half))
                        for name, loaded in (("dout", dout), ("out", out))
                    )
                    k.FFMA(sums[row], a, b, sums[row])
    over_lanes(k, "delta", sums, largest=False)
    pointer = place.statistic("delta.pointer", "delta")
    first_lane = k.compare("first.lane", "EQ", place.lane, RZ)
    for row in range(2):
        k.STG_E(k.at(pointer, 32 * row), sums[row], guard=first_lane)
    return sums
