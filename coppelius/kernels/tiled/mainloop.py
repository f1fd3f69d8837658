"""The loop over K: products of one step while the next step's fragments load and a later stage is copied.

A round is one turn of the ring, so that every stage's shared addresses are fixed offsets.  Stage s of it:

    step 0   products of step 0; LDSMs of step 1
             wait until the next stage has arrived (its group of copies, then the block's barrier)
    step 1   products of step 1; LDSMs of the next stage's step 0; copies of the stage a ring ahead into stage s

The barrier says both that the next stage is there for all and that nobody reads this one any more: its last LDSMs stand
before the barrier, its new copies after.  So of S stages S - 2 are on their way as a wait ends and S - 1 after the new
copies, one barrier a stage.

The last round copies nothing and its last stage loads no further step; both stand under one predicate.  Products come
8 cycles apart and what else there is goes one at a time between them, so that the tensor pipe never waits for issue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, URZ, P
from coppelius.kernels.tiled.copies import Copies, Emit, await_groups, commit, fill
from coppelius.kernels.tiled.fragments import Fragments
from coppelius.products.tile import K_STAGE, STEPS, Tile


@dataclass(frozen=True)
class Mainloop:
    """Everything a round needs; `results[i][j]` accumulate."""

    k: Kernel
    tile: Tile
    copies: tuple[Copies, Copies]
    a: Fragments
    b: Fragments
    results: tuple[tuple[Vector, ...], ...]

    def run(self, length: int, *, straight: bool) -> None:
        """All of K: a loop over rounds, or the rounds one after another."""
        rounds = length // K_STAGE // self.tile.stages
        with self.k.region("prologue"):
            self._prologue()
        with self.k.region("rounds"):
            if straight:
                for number in range(rounds):
                    self._round(PT if number < rounds - 1 else None)
            else:
                self._loop(rounds)

    def _loop(self, rounds: int) -> None:
        k = self.k
        # in a uniform register: general ones are what a tile is short of
        left = k.UMOV("left", rounds)
        more = k.predicate("more")
        top = k.label("round")
        k.place(top)

        def count() -> None:
            k.UIADD3(left, left, -1, URZ)
            k.ISETP_NE_AND(more, PT, RZ, left, PT)

        self._round(more, count)
        k.BRA(top, guard=more)

    def _prologue(self) -> None:
        k, stages = self.k, self.tile.stages
        for slot in range(stages):
            for one in self.copies:
                if slot:
                    for move in one.before(slot):
                        move()
                for copy in one.stage(slot):
                    copy()
            commit(k)
        for row in self.results:
            for quad in row:
                for lane in range(4):
                    k.MOV(quad[lane], RZ)
        await_groups(k, stages - 1)
        for load in self._loads(0, 0):
            load()

    def _loads(self, slot: int, step: int) -> list[Emit]:
        """A step's LDSMs in the order in which its products want them."""
        a, b = self.a, self.b
        order = [(a, 0), *((b, p) for p in range(b.pieces)), *((a, p) for p in range(1, a.pieces))]
        return [partial(one.load, slot, step, piece) for one, piece in order]

    def _products(self, step: int) -> list[Emit]:
        """A step's HMMAs, back and forth along N so that neighbours share an operand."""
        out: list[Emit] = []
        for i, row in enumerate(self.results):
            for j in range(len(row)) if i % 2 == 0 else reversed(range(len(row))):
                a, b = self.a.quads[step][i], self.b.quads[step][j // 2].pair(j % 2 * 2)
                out.append(partial(self._product, row[j], a, b))
        return out

    def _product(self, result: Vector, a: Vector, b: Vector) -> None:
        self.k.HMMA_16816_F32(result, a, b, result)

    def _round(self, more: P | None, count: Emit | None = None) -> None:
        """One turn of the ring; `more`: whether another follows, None where none does."""
        k, stages = self.k, self.tile.stages
        for slot in range(stages):
            first = [*self._loads(slot, 1)]
            if count is not None and slot == 0:
                first.append(count)
            self._weave(self._products(0), first)
            await_groups(k, stages - 2)
            last = slot == stages - 1
            self._weave(self._products(STEPS - 1), self._ahead(slot, last, more))

    def _ahead(self, slot: int, last: bool, more: P | None) -> list[Emit]:
        """What goes between the products of a stage's step 1."""
        k = self.k
        guard = PT if more is None else more
        between: list[Emit] = []
        if not last or more is not None:
            between += self._loads((slot + 1) % self.tile.stages, 0)
        if last and more is not None and more != PT:
            between = [partial(_under, k, guard, load) for load in between]
        if more is not None:
            between += [move for one in self.copies for move in one.before(slot)]
            between.append(partial(fill, k))
            between += [copy for one in self.copies for copy in one.stage(slot, guard)]
        between.append(partial(commit, k))
        return between

    def _weave(self, products: Sequence[Emit], between: Sequence[Emit]) -> None:
        """Products, with the rest spread behind them: one each, or as many as it takes."""
        each = -(-len(between) // len(products))
        for place, product in enumerate(products):
            product()
            for other in between[place * each : (place + 1) * each]:
                other()


def _under(k: Kernel, guard: P, emit: Emit) -> None:
    with k.when(guard):
        emit()
