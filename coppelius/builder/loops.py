"""Counted loops laid out: prologue, kernel and epilogue of a body that stands in the draft once.

`lay_out` writes phase after phase (`program.stages`).  The kernel is as many phases as a value has copies: each
iteration of that many has registers of its own, and no value is moved.  Copied are the registers that belong to one
iteration: not live where the body begins, nor behind the loop; all others have one place, and their order is kept.

A count in a register is compared after every phase: iterations that were started are finished in an epilogue of their
own, so that every count is right, fewer than stages included.  A constant count is peeled, and compared once a round.

Left out: loops within loops, branches inside a body, values that reach the next iteration in another register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coppelius.builder.draft import Draft, Item, Loop
from coppelius.builder.emitter import Emitter
from coppelius.builder.flow import Liveness
from coppelius.builder.registers import FIRST_VIRTUAL, Virtual
from coppelius.isa.operands import PT, RZ, R
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table
from coppelius.program.stages import Stages, in_turn

_Span = tuple[int, int]


@dataclass(frozen=True)
class LaidOut:
    """A draft without that loop.  The spans of ordinals: before the loop, its phases, and behind it."""

    draft: Draft
    before: _Span
    prologue: tuple[_Span, ...]
    kernel: tuple[_Span, ...]
    epilogues: tuple[_Span, ...]  # by iterations started: in the prologue 1, 2, ..., then in the kernel
    behind: _Span
    constant: int | None
    passes: int = 0

    def path(self, count: int) -> list[_Span]:
        """The spans that so many iterations come through, neighbours joined; else straight through the draft."""
        if self.constant is not None:
            middle = [*self.prologue, *self.kernel * self.passes, *self.epilogues]
        else:
            filled = min(count, len(self.prologue))
            left = count - filled
            middle = [*self.prologue[:filled], *(self.kernel[n % len(self.kernel)] for n in range(left))]
            at = len(self.prologue) + (left - 1) % len(self.kernel) if left else filled - 1
            middle += [self.epilogues[at]] if count else []
        joined = [self.before]
        for first, end in [*middle, self.behind]:
            if first == joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
            elif first < end:
                joined.append((first, end))
        return joined


def lay_out_all(draft: Draft, table: Table, *, but: int | None = None) -> Draft:
    """Every loop as it is written, one iteration after another; `but`: the place in `draft.loops` of one that waits."""
    for n in reversed(range(len(draft.loops))):
        if n != but:
            loop = draft.loops[n]
            draft = lay_out(draft, loop, in_turn(loop.end - loop.first), table).draft
    return draft


def own_registers(draft: Draft, loop: Loop, table: Table) -> list[Virtual]:
    """The registers of one iteration: written in the body, live neither at its beginning nor behind the loop."""
    plain = lay_out(draft, loop, in_turn(loop.end - loop.first), table)
    if not plain.kernel:
        return []
    body, behind = plain.kernel[0][0], plain.behind[0]
    written = {(t.space, t.number) for item in draft.items[loop.first : loop.end] for t in item.writes}
    live = Liveness(plain.draft).points
    own = []
    for virtual, points in zip(plain.draft.names.virtuals, live, strict=True):
        names = {(virtual.space, virtual.first + lane) for lane in range(virtual.width)}
        if virtual.pinned is None and names & written and not (points >> 2 * body & 1 or points >> 2 * behind & 1):
            own.append(virtual)
    return own


def lay_out(draft: Draft, loop: Loop, stages: Stages, table: Table, own: Sequence[Virtual] = ()) -> LaidOut:
    """The draft with one of its loops in these stages; `own`: registers that may have copies."""
    writer = _Writer(draft, loop, stages, table, own)
    spans = writer.constant(loop.count) if isinstance(loop.count, int) else writer.counted(loop.count)
    return writer.finish(*spans)


class _Writer:
    """One layout on its way."""

    def __init__(self, draft: Draft, loop: Loop, stages: Stages, table: Table, own: Sequence[Virtual]) -> None:
        self.old, self.loop, self.stages = draft, loop, stages
        self.body = draft.items[loop.first : loop.end]
        if not self.body:
            raise Refusal(f"{loop.source.file}:{loop.source.line}: loop {loop.name} is empty")
        self.emitter = Emitter({}, table=table)
        self.out = self.emitter.draft = Draft(list(draft.items[: loop.first]), {}, draft.names.copy())
        self.unroll = 1
        self.copies = self._copies(own)
        self.passes = 0

    def _copies(self, own: Sequence[Virtual]) -> dict[tuple[str, int], list[int]]:
        """For each register of an iteration its places, the iterations taking turns."""
        needed = {}
        for n, virtual in enumerate(own):
            touches = [(i, w) for i, item in enumerate(self.body) for w in _touches(item, virtual)]
            needed[n] = self.stages.copies(touches)
        self.unroll = max(needed.values(), default=1)
        found: dict[tuple[str, int], list[int]] = {}
        for n, count in needed.items():
            virtual = own[n]
            turns = next(c for c in range(count, self.unroll + 1) if self.unroll % c == 0)
            firsts = [virtual.first]
            for turn in range(1, turns):
                made = self.out.names.new(virtual.space, f"{virtual.name}.{turn}", virtual.width)
                firsts.append(made.index)
            for lane in range(virtual.width):
                found[virtual.space, virtual.first + lane] = [first + lane for first in firsts]
        return found

    def counted(self, count: R) -> tuple[list[_Span], list[_Span], list[_Span]]:
        """A count in a register: `left` is what is still to start, once the prologue has started its part."""
        k, depth, done = self.emitter, self.stages.count - 1, self._label("done")
        begin = len(self.out.items)
        left = k.IADD3(f"{self.loop.name}.left", count, -depth, RZ) if depth else k.MOV(f"{self.loop.name}.left", count)
        if self.loop.least < 1:
            k.BRA(done, guard=self._compare("none", "EQ", left, -depth))
        self._own_source(begin)
        exits: list[tuple[int, str]] = []
        prologue = []
        for phase in range(depth):
            label = self._label(f"after{phase + 1}") if self.loop.least < phase + 2 else None
            exits += [(phase + 1, label)] if label else []
            prologue.append(self._phase(phase, phase + 1, (left, phase + 1 - depth, label)))
        top = self._label("top")
        k.place(top)
        kernel = []
        for u in range(self.unroll - 1):
            label = self._label(f"after{depth + 1 + u}")
            exits.append((depth + 1 + u, label))
            kernel.append(self._phase(depth + u, None, (left, u + 1, label)))
        begin = len(self.out.items)
        more = self._compare("more", "NE", left, self.unroll)
        k.IADD3(left, left, -self.unroll, RZ)
        self._own_source(begin)
        self._issue(depth + self.unroll - 1, None)
        self._branch(top, more)
        kernel.append((begin, len(self.out.items)))
        epilogues = self._epilogues([(depth + self.unroll, ""), *exits], done)
        by_started = [epilogues.get(m, (0, 0)) for m in range(1, depth + self.unroll + 1)]
        k.place(done)
        return prologue, kernel, by_started

    def _epilogues(self, exits: Sequence[tuple[int, str]], done: str) -> dict[int, _Span]:
        """What is left of the iterations started, for each way out; ways that leave the same share it."""
        texts: dict[tuple[tuple[int, int], ...], list[tuple[int, str]]] = {}
        for started, label in exits:
            texts.setdefault(self._rest(started), []).append((started, label))
        spans: dict[int, _Span] = {}
        for n, ways in enumerate(texts.values()):
            begin = len(self.out.items)
            for _, label in ways:
                if label:
                    self.emitter.place(label)
            self._finish(ways[0][0])
            if n < len(texts) - 1:
                self._branch(done, PT)
            spans |= {started: (begin, len(self.out.items)) for started, _ in ways}
        return spans

    def constant(self, count: int) -> tuple[list[_Span], list[_Span], list[_Span]]:
        """A count known here: phases in a row, those of whole rounds of the kernel in a loop."""
        depth = self.stages.count - 1
        passes = max(0, count - depth) // self.unroll
        if passes < 2:
            passes = 0
        self.passes = passes
        k, begin = self.emitter, len(self.out.items)
        left = k.MOV(f"{self.loop.name}.left", passes) if passes else RZ
        self._own_source(begin)
        for phase in range(min(depth, count)):
            self._issue(phase, count)
        prologue, kernel = [(begin, len(self.out.items))], []
        if passes:
            top = self._label("top")
            k.place(top)
            begin = len(self.out.items)
            k.IADD3(left, left, -1, RZ)
            more = self._compare("more", "NE", left, RZ)
            self._own_source(begin)
            for u in range(self.unroll):
                self._issue(depth + u, None)
            self._branch(top, more)
            kernel = [(begin, len(self.out.items))]
        begin = len(self.out.items)
        for phase in range(min(depth, count) + passes * self.unroll, count + depth if count else 0):
            self._issue(phase, count)
        return prologue, kernel, [(begin, len(self.out.items))]

    def finish(self, prologue: list[_Span], kernel: list[_Span], epilogues: list[_Span]) -> LaidOut:
        """The rest of the draft behind the loop, labels in their new places."""
        loop, out, old = self.loop, self.out, self.old
        behind = len(out.items)
        moved = behind - loop.end
        out.items += old.items[loop.end :]
        for label, place in old.labels.items():
            out.labels[label] = place if place <= loop.first else place + moved
        for other in old.loops:
            if other is not loop:
                by = moved if other.first >= loop.end else 0
                out.loops.append(replace(other, first=other.first + by, end=other.end + by))
        return LaidOut(
            out,
            (0, prologue[0][0] if prologue else kernel[0][0]),
            tuple(prologue),
            tuple(kernel),
            tuple(epilogues),
            (behind, len(out.items)),
            loop.count if isinstance(loop.count, int) else None,
            self.passes,
        )

    def _phase(self, phase: int, count: int | None, check: tuple[R, int, str | None]) -> _Span:
        """One phase, and the way out behind it where all have been started."""
        begin = len(self.out.items)
        left, last, label = check
        ended = self._compare("ended", "EQ", left, last) if label else PT
        self._own_source(begin)
        self._issue(phase, count)
        if label:
            self._branch(label, ended)
        return begin, len(self.out.items)

    def _issue(self, phase: int, count: int | None) -> None:
        """The instructions of one phase, of those iterations that there are."""
        for i in self.stages.order:
            iteration = phase - self.stages.stage[i]
            if iteration >= 0 and (count is None or iteration < count):
                self.out.items.append(self._of_iteration(self.body[i], iteration))

    def _rest(self, started: int) -> tuple[tuple[int, int], ...]:
        """(instruction, whose registers) of what is left when so many iterations were started."""
        return tuple(
            (i, (phase - self.stages.stage[i]) % self.unroll)
            for phase in range(started, started + self.stages.count - 1)
            for i in self.stages.order
            if 0 <= phase - self.stages.stage[i] < started
        )

    def _finish(self, started: int) -> None:
        for i, turn in self._rest(started):
            self.out.items.append(self._of_iteration(self.body[i], turn))

    def _of_iteration(self, item: Item, iteration: int) -> Item:
        """An instruction on the registers of that iteration."""
        values = list(item.values)
        fields = {(access.space, item.encoding.column[access.field]) for access in item.encoding.accesses}
        for space, column in fields:
            places = self.copies.get((space, values[column])) if values[column] >= FIRST_VIRTUAL else None
            if places:
                values[column] = places[iteration % len(places)]
        return replace(item, values=values)

    def _label(self, what: str) -> str:
        return f"{self.loop.name}:{what}:{self.loop.first}"

    def _compare(self, what: str, relation: str, left: R, number: object) -> object:
        return self.emitter.emit(f"ISETP.{relation}.U32.AND", (f"{self.loop.name}.{what}", PT, left, _word(number), PT))

    def _branch(self, label: str, guard: object) -> None:
        begin = len(self.out.items)
        self.emitter.BRA(label, guard=guard)
        self._own_source(begin)

    def _own_source(self, begin: int) -> None:
        for item in self.out.items[begin:]:
            item.source = self.loop.source


def _word(number: object) -> object:
    """A number as the 32 bits that it is compared by; 0 as the register that holds it."""
    if isinstance(number, int):
        return number & 0xFFFFFFFF if number else RZ
    return number


def _touches(item: Item, virtual: Virtual) -> list[bool]:
    """Whether an instruction writes a register, for each way in which it touches it."""
    numbers = range(virtual.first, virtual.first + virtual.width)
    return [
        writes
        for writes, touches in ((False, item.reads), (True, item.writes))
        if any(t.space == virtual.space and t.number in numbers for t in touches)
    ]
