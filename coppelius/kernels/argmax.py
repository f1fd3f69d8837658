"""argmax: out[r] = the lowest index of the largest value of logits[r]; NaN never wins, a row of NaN gives 0.

The row stays in registers: first its largest value over the block, then each thread's lowest element equal
to it, then the lowest of those over the block.  NaN loses every maximum and equals nothing; -0 equals +0.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import PT, RZ
from coppelius.isa.refusal import Refusal
from coppelius.kernels.blocks import block_of, fold, larger

THREADS = 256
LANES = 4
_GUARDS = 6
_MAXIMUM_SLOT, _INDEX_SLOT = 0, 4 * THREADS // 32


def argmax(k: Kernel, *, vocabulary: int) -> None:
    """One block a row; quad j of thread t is elements 1024 j + 4 t onwards, all loads in flight at once."""
    steps, rest = divmod(vocabulary, THREADS * LANES)
    if rest or not 0 < steps <= 12:
        raise Refusal(f"argmax: {vocabulary} columns are not 1 to 12 times {THREADS * LANES}")
    k.descriptor()
    with k.region("load"):
        thread = k.thread_index()
        row = k.block_index("row")
        start = k.element("row.start", "logits", row, 4 * vocabulary)
        source = k.offset_pointer("source", start, thread, 4 * LANES)
        quads = [k.LDG_E_128(f"quad{j}", k.at(source, 4 * THREADS * LANES * j)) for j in range(steps)]
        block = block_of(k, thread, THREADS // 32)
    values = [quad[lane] for quad in quads for lane in range(LANES)]
    with k.region("largest"):
        # a chain a lane of the quads, so that none waits for itself alone
        own = [
            quads[0][lane] if steps == 1 else k.FMNMX(f"own{lane}", quads[0][lane], quads[1][lane], ~PT)
            for lane in range(LANES)
        ]
        for quad in quads[2:]:
            for lane in range(LANES):
                k.FMNMX(own[lane], own[lane], quad[lane], ~PT)
        largest = block.maximum("largest", fold("own", own, larger(k)), slot=_MAXIMUM_SLOT)
    with k.region("index"):
        first = k.SHF_L_U32("first", thread, 2, RZ)
        index = k.move("index", 0xFFFFFFFF)
        # six at a time: a guard waits 13 cycles for its predicate, and there are seven predicates
        for group in reversed(range(0, len(values), _GUARDS)):
            places = range(min(group + _GUARDS, len(values)) - 1, group - 1, -1)
            equal = [k.compare_f32(f"equal{at}", "EQ", values[at], largest) for at in places]
            for at, guard in zip(places, equal, strict=True):
                k.IADD3(index, first, at // LANES * THREADS * LANES + at % LANES, RZ, guard=guard)
        lowest = block.minimum("lowest", index, slot=_INDEX_SLOT)
        none = k.compare("none", "EQ", lowest, 0xFFFFFFFF)
        k.MOV(lowest, RZ, guard=none)
    with k.region("store"):
        leader = k.compare("leader", "EQ", thread, RZ)
        k.STG_E(k.at(k.element("out.pointer", "out", row, 4)), lowest, guard=leader)
    k.finish()
