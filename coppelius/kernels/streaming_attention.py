"""What the three streaming attention kernels share: who owns what, fragments from global memory, products.

HMMA.16816.F32 multiplies 16 x 16 by 16 x 8.  Lane 4 g + t holds of the first operand rows g and g + 8, of
the second column g, of the sum columns 2 t and 2 t + 1 of rows g and g + 8.  Nothing else decides which
number is which: the sixteen products of a step may be any sixteen as long as both operands agree, and any
row may stand in place of row g.  Two choices follow, and with them every load is 128 bits of a row, no
shuffle is needed and no shared memory:

    along a row    lane t takes halves 8 t to 8 t + 7 of each 32, two steps' worth of both operands
    among rows     column n of a sum's tile j is row 8 (n / 2) + 2 j + n % 2 of each 32, so that a lane's sums over
                   four tiles are 8 t to 8 t + 7 again: packed to halves they are the next product's first
                   operand, against rows of the transposed matrix.

A warp owns 16 rows of the sequence, four warps are a block of 64 rows of one head and meet in the first
cache level on the same tiles.  Blocks with the longest way come first: grid x is the head, grid y the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, P, R
from coppelius.isa.refusal import Refusal

DEPTH = 64
THREADS = 128
ROWS = 16  # of a warp
BLOCK_ROWS = THREADS // 32 * ROWS
STEPS = DEPTH // 16  # of a product over the depth
RUN = 32  # rows that a lane's 128 bits of a transposed row span over the four lanes
TILES = RUN // 8  # of eight columns in a run
PIECE = 16  # bytes of a vector access
ROW_BYTES = 2 * DEPTH

Run = list[list[Vector]]  # second operands: [tile][128-bit piece]
Sums = list[Vector]


@dataclass(frozen=True)
class Place:
    """`head`, `first`: the warp's head and first row; `group`, `lane`: g and t; `spread`: 8 (g / 2) + g % 2."""

    k: Kernel
    sequence: int
    head: R
    first: R
    group: R
    lane: R
    spread: R

    def own_rows(self, name: str, parameter: str, size: int) -> Vector:
        """Lane t's part of row g of the warp's: 16 halves (size 2) or floats (4) apart, 8 each."""
        k = self.k
        row = k.IADD3(f"{name}.row", self.first, self.group, RZ)
        k.IMAD(row, self.head, self.sequence, row)
        piece = k.IMAD(f"{name}.piece", row, DEPTH * size // PIECE, self.lane)
        return k.element(name, parameter, piece, PIECE)

    def rows_of_runs(self, name: str, parameter: str, start: R | None = None) -> Vector:
        """Row `start` (0) + spread of the head, lane t's piece."""
        k = self.k
        row = k.IMAD(f"{name}.row", self.head, self.sequence, self.spread)
        if start is not None:
            k.IADD3(row, row, start, RZ)
        piece = k.IMAD(f"{name}.piece", row, ROW_BYTES // PIECE, self.lane)
        return k.element(name, parameter, piece, PIECE)

    def columns_of_runs(self, name: str, parameter: str, spread: R, start: R | None = None) -> Vector:
        """Row `spread` of the head's transposed matrix, lane t's piece from column `start` (0) on."""
        k = self.k
        row = k.IMAD(f"{name}.row", self.head, DEPTH, spread)
        piece = k.IMAD(f"{name}.piece", row, 2 * self.sequence // PIECE, self.lane)
        if start is not None:
            k.IADD3(piece, piece, k.SHF_R_U32_HI(f"{name}.start", RZ, 3, start), RZ)
        return k.element(name, parameter, piece, PIECE)

    def statistic(self, name: str, parameter: str) -> Vector:
        """The pointer to row g's f32 in [heads, S]."""
        k = self.k
        row = k.IADD3(f"{name}.row", self.first, self.group, RZ)
        k.IMAD(row, self.head, self.sequence, row)
        return k.element(name, parameter, row, 4)


def place_of(k: Kernel, *, sequence: int, heads: int, depth: int, last_first: bool) -> Place:
    """The thread's place; `last_first`: blocks of the last rows come first."""
    if depth != DEPTH:
        raise Refusal(f"streaming attention: heads of {depth} are not {DEPTH} deep")
    if sequence < BLOCK_ROWS or sequence % BLOCK_ROWS or heads < 1:
        raise Refusal(f"streaming attention: {heads} heads of {sequence} rows are no whole blocks of {BLOCK_ROWS} rows")
    k.descriptor()
    thread, head, block = k.thread_index(), k.block_index("head"), k.block_index("block", "Y")
    warp = k.SHF_R_U32_HI("warp", RZ, 5, thread)
    first = k.IMAD("first", block, -BLOCK_ROWS if last_first else BLOCK_ROWS, RZ)
    if last_first:
        k.IADD3(first, first, sequence - BLOCK_ROWS, RZ)
    k.IMAD(first, warp, ROWS, first)
    lane = k.LOP3_LUT("lane", thread, 3, RZ, 0xC0)
    group = k.SHF_R_U32_HI("group", RZ, 2, thread)
    k.LOP3_LUT(group, group, 7, RZ, 0xC0)
    return Place(k, sequence, head, first, group, lane, spread_of(k, "spread", group, 8))


def spread_of(k: Kernel, name: str, group: R, apart: int) -> R:
    """apart (g / 2) + g % 2: 8 where a lane then holds eight neighbouring halves, 4 for four neighbouring floats."""
    pair = k.SHF_R_U32_HI(f"{name}.pair", RZ, 1, group)
    odd = k.LOP3_LUT(f"{name}.odd", group, 1, RZ, 0xC0)
    made: R = k.IMAD(name, pair, apart, odd)
    return made


def scale_of(k: Kernel) -> tuple[R, R]:
    """The scale's sign as a flip of both halves of a word, and the scale: scores are then only scaled up."""
    scale = k.move("scale", k.parameter("scale"))
    flip = k.SHF_R_S32_HI("flip", RZ, 31, scale)
    k.LOP3_LUT(flip, flip, 0x80008000, RZ, 0xC0)
    return flip, scale


# order -------------------------------------------------------------------------------------------------

Emit = Callable[[], object]  # one instruction


def weave(main: Sequence[Emit], between: Sequence[Emit]) -> None:
    """Both in their order, the second spread evenly after the first: a warp issues in order, and HMMAs leave gaps."""
    done = 0
    for at, emit in enumerate(main, 1):
        emit()
        upto = len(between) * at // len(main)
        for other in between[done:upto]:
            other()
        done = upto


def run_all(emits: Sequence[Emit]) -> None:
    """One after the other."""
    weave(emits, ())


# fragments ---------------------------------------------------------------------------------------------


def load_first(k: Kernel, name: str, pointer: Vector) -> list[Vector]:
    """Rows g and g + 8 of the warp's, both halves of the depth: four loads on their way."""
    return [
        k.LDG_E_128(f"{name}{row}.{piece}", k.at(pointer, 8 * ROW_BYTES * row + 4 * PIECE * piece))
        for row in range(2)
        for piece in range(2)
    ]


def first_operand(k: Kernel, name: str, loaded: Sequence[Vector], flip: R | None = None) -> list[Vector]:
    """The loaded rows as first operands, one a step; `flip` changes signs."""
    steps = []
    for step in range(STEPS):
        fragment = k.vector(f"{name}.step{step}", 4)
        for word in range(4):
            source = loaded[2 * (word % 2) + step // 2][2 * (step % 2) + word // 2]
            if flip is None:
                k.MOV(fragment[word], source)
            else:
                k.LOP3_LUT(fragment[word], source, flip, RZ, 0x3C)
        steps.append(fragment)
    return steps


def run_registers(k: Kernel, name: str) -> Run:
    """Room for 32 rows, as second operands of a product over the depth."""
    return [[k.vector(f"{name}{tile}.{piece}", 4) for piece in range(2)] for tile in range(TILES)]


def load_run(k: Kernel, run: Run, pointer: Vector, offset: int = 0, guard: P = PT) -> list[Emit]:
    """32 rows from `pointer` on; the pieces that the first steps read come first."""

    def piece(register: Vector, at: int) -> Emit:
        return lambda: k.LDG_E_128(register, k.at(pointer, at), guard=guard)

    return [
        piece(pieces[at], offset + 2 * ROW_BYTES * tile + 4 * PIECE * at)
        for at in range(2)
        for tile, pieces in enumerate(run)
    ]


def column_registers(k: Kernel, name: str) -> Sums:
    """Room for 32 columns of the transposed matrix, as second operands of a product over them."""
    return [k.vector(f"{name}{tile}", 4) for tile in range(DEPTH // 8)]


def load_columns(
    k: Kernel, columns: Sums, pointer: Vector, sequence: int, apart: int, offset: int = 0, guard: P = PT
) -> list[Emit]:
    """Lane t's piece of the rows of each tile; `apart` as in `spread_of`."""

    def tile(register: Vector, row: int) -> Emit:
        return lambda: k.LDG_E_128(register, k.at(pointer, offset + 2 * sequence * row), guard=guard)

    inside = apart // 2
    return [tile(c, 4 * apart * (at // inside) + 2 * (at % inside)) for at, c in enumerate(columns)]


def advance(k: Kernel, times: R, pointers: Sequence[tuple[Vector, int]]) -> None:
    """Each pointer by so many bytes, `times` times."""
    for pointer, size in pointers:
        k.IMAD_WIDE_U32(pointer, times, size, pointer)


# products ----------------------------------------------------------------------------------------------


def scores(k: Kernel, name: str, first: Sequence[Vector], runs: Sequence[Run]) -> tuple[Sums, list[list[Emit]]]:
    """The warp's rows times each run's rows, over the depth: each step's tiles side by side, so that none waits."""
    tiles = [tile for run in runs for tile in run]
    sums = [k.vector(f"{name}{at}", 4) for at in range(len(tiles))]

    def product(step: int, total: Vector, pieces: Sequence[Vector]) -> Emit:
        second = pieces[step // 2].pair(2 * (step % 2))
        return lambda: k.HMMA_16816_F32(total, first[step], second, total if step else RZ)

    return sums, [[product(step, *pair) for pair in zip(sums, tiles, strict=True)] for step in range(STEPS)]


def pack(k: Kernel, fragment: Vector, left: Vector, right: Vector) -> list[Emit]:
    """Two neighbouring tiles of sums as halves: a first operand over the rows of their run."""

    def word(at: int) -> Emit:
        source, low = (left, right)[at // 2], 2 * (at % 2)
        return lambda: k.F2FP_PACK_AB(fragment[at], source[low + 1], source[low])

    return [word(at) for at in range(4)]


def pack_all(k: Kernel, name: str, sums: Sums) -> tuple[list[Vector], list[Emit]]:
    """First operands, a step for two tiles, and what fills them."""
    steps = [k.vector(f"{name}.step{at}", 4) for at in range(len(sums) // 2)]
    emits = [emit for at, f in enumerate(steps) for emit in pack(k, f, sums[2 * at], sums[2 * at + 1])]
    return steps, emits


def accumulate(k: Kernel, totals: Sums, first: Vector, columns: Sums, step: int) -> list[Emit]:
    """totals += first columns, for one step of the columns' run."""

    def product(total: Vector, piece: Vector) -> Emit:
        return lambda: k.HMMA_16816_F32(total, first, piece.pair(2 * (step % 2)), total)

    return [product(total, piece) for total, piece in zip(totals, columns, strict=True)]


def rescale(k: Kernel, totals: Sums, factors: Sequence[R]) -> list[Emit]:
    """Rows g and g + 8 of the sums times their factors."""

    def word(total: Vector, at: int) -> Emit:
        return lambda: k.FMUL(total[at], total[at], factors[at // 2])

    return [word(total, at) for total in totals for at in range(4)]


def zeros(k: Kernel, name: str) -> Sums:
    """Sums over the depth's columns, at 0."""
    totals = [k.vector(f"{name}{tile}", 4) for tile in range(DEPTH // 8)]
    for total in totals:
        for word in range(4):
            k.MOV(total[word], RZ)
    return totals


def largest(k: Kernel, start: Sequence[R], sums: Sums, *, magnitude: bool = False) -> tuple[list[R], list[Emit]]:
    """Of `start` and what the lane holds of rows g and g + 8: two chains a row, side by side."""
    chains = [[k.register(f"largest{row}.{w}") for w in range(2)] for row in range(2)]

    def take(tile: int, row: int, w: int) -> Emit:
        chain, value = chains[row][w], sums[tile][2 * row + w]
        return lambda: k.FMNMX(chain, chain if tile else start[row], abs(value) if magnitude else value, ~PT)

    def join(row: int) -> Emit:
        return lambda: k.FMNMX(chains[row][0], chains[row][0], chains[row][1], ~PT)

    every = [take(tile, row, w) for tile in range(len(sums)) for w in range(2) for row in range(2)]
    return [chain[0] for chain in chains], [*every, join(0), join(1)]


def over_lanes(k: Kernel, values: Sequence[R], *, largest: bool) -> list[Emit]:
    """Each value becomes the maximum or sum over the four lanes of its row."""
    others = [k.register(f"other{at}") for at in range(len(values))]

    def ask(at: int, lanes: int) -> Emit:
        return lambda: k.SHFL_BFLY(PT, others[at], values[at], lanes, 0x1F)

    def join(at: int) -> Emit:
        if largest:
            return lambda: k.FMNMX(values[at], values[at], others[at], ~PT)
        return lambda: k.FADD(values[at], values[at], others[at])

    every = range(len(values))
    return [emit for lanes in (1, 2) for emit in (*(ask(at, lanes) for at in every), *map(join, every))]


# the diagonal, stores ----------------------------------------------------------------------------------


def room_of(k: Kernel, place: Place) -> R:
    """How far row g lies behind the first of the lane's keys of the first tile."""
    row = k.IADD3("room.row", place.first, place.group, RZ)
    made: R = k.IMAD("room", place.lane, -8, row)
    return made


def mask_keys(k: Kernel, sums: Sums, room: R, masked: float | R) -> None:
    """Sums of keys behind their row become `masked`; `room`: how many keys after the lane's first row g may see."""
    for row in range(2):
        for at, s in enumerate(sums):
            for w in range(2):
                key = RUN * (at // 4) + 2 * (at % 4) + w
                kept: P = k.compare(f"kept{row}.{key}", "GE", room, key - 8 * row, unsigned=False)
                k.FSEL(s[2 * row + w], s[2 * row + w], masked, kept)


def store_floats(k: Kernel, totals: Sums, place: Place, name: str, parameter: str, factors: tuple[R, R]) -> None:
    """f32 sums of tiles `spread_of` 4 apart, times a factor a row: 128 bits a lane, whole sectors."""
    pointer = place.own_rows(name, parameter, 4)
    for pair in range(0, len(totals), 2):
        for row in range(2):
            out = k.vector(f"{name}.out{pair}.{row}", 4)
            for word in range(4):
                k.FMUL(out[word], totals[pair + word // 2][2 * row + word % 2], factors[row])
            k.STG_E_128(k.at(pointer, 4 * (8 * DEPTH * row + 8 * pair)), out)
