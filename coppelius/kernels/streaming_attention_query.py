"""attention-query: dQ = scale g K with g = p (dout V^T - delta), and delta = sum(dout out) of each row.

A warp keeps 16 rows of Q, dout and dQ and walks the keys in tiles of 32 from the first to the diagonal.
Of each tile three fragments are on their way before they are needed: the keys along the depth, the
values along the depth, and the keys' transposed rows.  Each comes again for the next tile as soon as its
product has read it.  Masked gradients of the diagonal's tile become 0, whatever their scores hold.

Left out: a NaN or infinity in row k of K also reaches rows of dQ before k, those of its aligned 32: the mask's 0 still
multiplies it.  One in V does not, and tiles past the diagonal's may hold anything.
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
    pack_all,
    place_of,
    rescale,
    room_of,
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
        run_all(load_run(k, keys, key_pointer))
        value_pointer = place.rows_of_runs("value.pointer", "v")
        run_all(load_run(k, values, value_pointer))
        column_pointer = place.columns_of_runs("column.pointer", "kt", spread_of(k, "column", place.group, APART))
        run_all(load_columns(k, columns, column_pointer, sequence, APART))
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
        advance(k, one, [(pointer, RUN * ROW_BYTES) for pointer in (key_pointer, value_pointer)])
        weights, steps = scores(k, "score", queries, [keys])
        run_all([*steps[0], *steps[1]])
        # pieces that no step reads any more come again for the next tile
        loads = load_run(k, keys, key_pointer, guard=more)
        weave([*steps[2], *steps[3]], loads[:TILES])
        products, steps = scores(k, "dp", gradients_in, [values])
        # each exponential while the tensor cores are at the second product
        between = probabilities(k, weights, c, [_by_row(shift)] * TILES)
        weave([*steps[0], *steps[1]], [*loads[TILES:], *between[: len(between) // 2]])
        loads = load_run(k, values, value_pointer, guard=more)
        weave([*steps[2], *steps[3]], [*loads[:TILES], *between[len(between) // 2 :]])
        run_all(loads[TILES:])
    with k.region("gradient"):
        gradients(k, products, weights, [_by_row(delta)] * TILES)
        k.BRA(unmasked, guard=more)
    with k.region("mask"):
        mask_keys(k, products, room, RZ)
    k.place(unmasked)
    with k.region("sum"):
        factors, emits = powers.take(products)
        run_all(emits)
        first, packs = pack_all(k, "gradient", products)
        weave(rescale(k, dq, factors), packs)
        k.IMAD_WIDE_U32(column_pointer, one, 2 * RUN, column_pointer)
        loads = load_columns(k, columns, column_pointer, sequence, APART, guard=more)
        for step, operand in enumerate(first):
            weave(accumulate(k, dq, operand, columns, step), loads if step else ())
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
    run_all(over_lanes(k, sums, largest=False))
    pointer = place.statistic("delta.pointer", "delta")
    first_lane = k.compare("first.lane", "EQ", place.lane, RZ)
    for row in range(2):
        k.STG_E(k.at(pointer, 32 * row), sums[row], guard=first_lane)
    return sums
