"""qk-rope: queries and keys from tokens' rows to heads' matrices, each pair turned by its position's angle.

    (e, o) -> (e cos - o sin, e sin + o cos), adjacent elements of a head; inverse: by the negative angle.

inverse-rope-qkv: the gradients of queries, keys and values back into tokens' rows, the first two turned back.

A thread takes four columns (two pairs) of four heads at one position, so that one 128-bit load of the table
serves eight turns and every load of the thread is in flight at once.  f32 sides are 128-bit accesses, half
sides 64-bit: lanes then lie side by side on both, with nothing left between them.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import R
from coppelius.isa.refusal import Refusal
from coppelius.kernels.head_place import HeadPlace, head_place

THREADS = 128
LANES = 4
HEADS = 4


def qk_rope(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Grid: runs of eight positions, groups of four heads."""
    place = _place(k, sequence, heads, depth)
    width = heads * depth
    with k.region("load"):
        size = k.size("size", 4 * LANES)
        table = _table(k, place, size)
        source = k.element("source", "qkv", place.in_tokens(3 * width // LANES), size)
        parts = {
            name: [k.LDG_E_128(f"{name}{h}", k.at(source, 4 * (at * width + h * depth))) for h in range(HEADS)]
            for at, name in enumerate("qk")
        }
    index, size = place.in_heads(), k.size("half.size", 2 * LANES)
    for name, vectors in parts.items():
        with k.region(name):
            out = k.element(f"{name}.pointer", name, index, size)
            for h, v in enumerate(vectors):
                _turn(k, v, table)
                k.STG_E_64(k.at(out, 2 * sequence * depth * h), _packed(k, v))
    k.finish()


def inverse_rope_qkv(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Grid: runs of eight positions, groups of four heads."""
    place = _place(k, sequence, heads, depth)
    width = heads * depth
    names = ("dq", "dk", "dv")
    with k.region("load"):
        size = k.size("size", 4 * LANES)
        table = _table(k, place, size)
        index = place.in_heads()
        parts = {}
        for name in names:
            source = k.element(f"{name}.pointer", name, index, size)
            parts[name] = [k.LDG_E_128(f"{name}{h}", k.at(source, 4 * sequence * depth * h)) for h in range(HEADS)]
        out = k.element("out", "dqkv", place.in_tokens(3 * width // LANES), 2 * LANES)
    for at, (name, vectors) in enumerate(parts.items()):
        with k.region(name):
            for h, v in enumerate(vectors):
                if name != "dv":
                    _turn(k, v, table, back=True)
                k.STG_E_64(k.at(out, 2 * (at * width + h * depth)), _packed(k, v))
    k.finish()


def _place(k: Kernel, sequence: int, heads: int, depth: int) -> HeadPlace:
    if heads % HEADS:
        raise Refusal(f"rope: {heads} heads are not whole groups of {HEADS}")
    return head_place(k, sequence=sequence, lanes=depth // LANES, heads=HEADS, pieces=THREADS, threads=THREADS)


def _table(k: Kernel, place: HeadPlace, size: R) -> Vector:
    """(cos, sin, cos, sin) of the thread's two pairs: the table's rows are as long as a head's."""
    made: Vector = k.LDG_E_128("table", k.at(k.element("table.pointer", "table", place.flat, size)))
    return made


def _turn(k: Kernel, v: Vector, table: Vector, *, back: bool = False) -> None:
    """Both pairs in place, one product of each sum unrounded."""
    # of a sum's three operands, the product stands in the other register bank than the two it is added to
    products = k.vector("products", LANES)
    for at in (0, 2):
        sine = -table[at + 1] if back else table[at + 1]
        k.FMUL(products[at + 1], v[at + 1], sine)
        k.FMUL(products[at], v[at], sine)
    for at in (0, 2):
        k.FFMA(v[at], v[at], table[at], -products[at + 1])
        k.FFMA(v[at + 1], v[at + 1], table[at], products[at])


def _packed(k: Kernel, v: Vector) -> Vector:
    """Four halves, in the first two of the four registers."""
    for pair in range(2):
        k.F2FP_PACK_AB(v[pair], v[2 * pair + 1], v[2 * pair])
    return v.pair(0)
