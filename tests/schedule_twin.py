"""A slow second opinion on schedules: each value in flight is followed on its own along every path of the machine.

Knows no blocks, no fixpoints and nothing of `coppelius.check`; shares the opcode table and the latency grid with it.
From each instruction walkers start, one for each register it writes or reads: each goes on, instruction by
instruction and both ways at a branch, until its value is safe (old enough, waited for, overwritten) and names whoever
comes too early.  Which walkers pass an instruction is kept, so that a program with one control field changed costs
only those walks again (`Twin.changed`).  What the reuse cache keeps is followed by `reuse_twin`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reuse_twin import follow, operands

from coppelius.isa import latency
from coppelius.isa.access import Touch
from coppelius.isa.address import AddressOperand
from coppelius.isa.form import FP64, MEMORY, SHARED, TENSOR, VARIABLE, XU
from coppelius.isa.values import Immediate
from coppelius.program.program import Instruction, Program, branch_target

RAW, WAW, WAR = "read after write", "write after write", "write after read"
# (rule, the instruction that comes too early, register)
Named = frozenset[tuple[str, int, str]]
NONE = 7
DRAIN = 45  # published: cycles of stall 0
OLD = 24  # no fixed latency is longer (mined)
MANY = 15  # counted waits name fewer producers
_ORDERED = ("SHFL", "LDS", "LDSM", "STS", "MOVM")
_TEXTURE = ("TEX", "TLD", "TLD4", "TXD", "TXQ", "TMML")
_LEAVES = ("EXIT", "RET", "BPT", "KILL", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "BRA")
RESULT, OPERAND, TIMED, READ, COPY = range(5)


@dataclass(frozen=True)
class Step:
    """One instruction as the walkers see it."""

    row: Instruction
    stem: str
    stall: int
    wait: int
    write: int
    read: int
    guard: int  # 0: always; n or -n: a predicate or its inverse
    never: bool
    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    late: frozenset[tuple[str, int]]
    variable: bool
    order: str
    late_order: str
    shared: tuple[int, int] | None

    @property
    def op(self) -> latency.Op:
        return self.row.encoding, self.row.values


def step_of(row: Instruction) -> Step:
    """What the walkers need of one instruction."""
    encoding, values = row.encoding, row.values
    stem = latency.stem(encoding)
    number, inverted = row["guard"], row["guard.not"]
    never = (number, inverted) == (7, 1)
    reads, writes = ((), ()) if never else (_masked(row, row.reads), _masked(row, row.writes))
    late = {(t.space, t.number) for t in reads if t.slot != "guard" and latency.reads_late(encoding, values, t)}
    code = number + (101 if encoding.guard.space == "UP" else 1)
    variable = latency.is_variable(encoding, values)
    return Step(
        row, stem, row["stall"], row["wait"], row["write_barrier"], row["read_barrier"],
        0 if number == 7 else -code if inverted else code, never, reads, writes, frozenset(late), variable,
        *(("", "") if never else (_order(row, stem), _late_order(row, stem))), None if never else _shared(row, stem),
    )  # fmt: skip


def _masked(row: Instruction, touches: Sequence[Touch]) -> tuple[Touch, ...]:
    """P2R and R2P touch the predicates that their mask names."""
    if not row.encoding.mnemonic.startswith(("P2R", "R2P")):
        return tuple(touches)
    mask = next((row[s.name] for s in row.encoding.operands if isinstance(s, Immediate)), 0x7F)
    return tuple(t for t in touches if t.space != "P" or t.slot == "guard" or mask >> t.number & 1)


def _order(row: Instruction, stem: str) -> str:
    """The queue in whose order its result comes back, "" for none."""
    if stem in _ORDERED:
        return "shared"
    if stem in _TEXTURE:
        return "texture"
    if row.encoding.latency != VARIABLE:
        return ""
    return {XU: "xu", FP64: "fp64"}.get(row.encoding.pipe, "")


def _late_order(row: Instruction, stem: str) -> str:
    """The queue in whose order its operands are read, "" for none."""
    if stem in _TEXTURE or stem == "REDUX":
        return "texture" if stem != "REDUX" else stem
    if row.encoding.pipe in (MEMORY, SHARED) or stem in _ORDERED:
        return "memory"
    return _order(row, stem)


def _shared(row: Instruction, stem: str) -> tuple[int, int] | None:
    """(base register, offset) of a plain shared address."""
    if stem not in ("LDGSTS", "LDS", "LDSM", "STS", "ATOMS"):
        return None
    address = next((s for s in row.encoding.operands if isinstance(s, AddressOperand)), None)
    if address is None or f"{address.name}.uniform" in row.encoding.column or row.get(f"{address.name}.scale"):
        return None
    return row[address.base.name], row[address.offset.name]


class Walker(NamedTuple):
    """A value in flight: where it started, what it is, which register (of a copy: none)."""

    start: int
    kind: int
    touch: Touch


# where a walker stands: ordinal, calls it is in, age, scoreboards that cover it, how often each was raised by its
# queue from it on, whether its guard still means what it meant
State = tuple[int, tuple[int, ...], int, int, tuple[int, ...], bool]
IDLE: tuple[int, ...] = (0,) * 6


@dataclass
class Twin:
    """A program's walkers.  `through[i]`: those that pass instruction i.  `named`: what is wrong as it is."""

    steps: list[Step]
    targets: Mapping[int, Sequence[int]] = field(default_factory=dict)
    limit: int = 20_000  # states of one walk, beyond which it is given up

    def __post_init__(self) -> None:
        self.given_up = 0
        self.ahead = self._ahead()
        self.through: list[list[Walker]] = [[] for _ in self.steps]
        found: set[tuple[str, int, str]] = set()
        for i in range(len(self.steps)):
            found |= self._alone(i)
            for walker in self._walkers(i):
                named, passed = self._walk(walker)
                found |= named
                for j in passed:
                    self.through[j].append(walker)
        self.begins = self._begins()
        self.keepers: list[list[int]] = [[] for _ in self.steps]
        for i, step in enumerate(self.steps):
            if any(flagged for _, flagged in operands(step.row)):
                named, passed = self._keep(i)
                found |= named
                for j in passed:
                    self.keepers[j].append(i)
        self.named: Named = frozenset(found)

    def _begins(self) -> frozenset[int]:
        """Where blocks begin: behind what may leave, and where control comes from elsewhere."""
        found = set()
        for i, step in enumerate(self.steps):
            targets = {j for j, _ in self._next(i, ())}
            if step.stem in _LEAVES:
                found |= {i + 1, *targets}
        return frozenset(found)

    def _keep(self, i: int) -> tuple[set[tuple[str, int, str]], set[int]]:
        return follow([s.row for s in self.steps], [s.wait for s in self.steps], self.begins, i)

    def changed(self, i: int, **control: int) -> Named:
        """What is wrong once instruction i has other control fields, and was not before."""
        kept = self.steps[i]
        self.steps[i] = replace(kept, **control)  # type: ignore[arg-type]
        alone = {i, max(i - 1, 0)}
        found = set().union(*map(self._alone, alone))
        for walker in self.through[i]:
            found |= self._walk(walker)[0]
        for keeper in self.keepers[i]:
            found |= self._keep(keeper)[0]
        self.steps[i] = kept
        return frozenset(found - self.named)

    def _alone(self, i: int) -> set[tuple[str, int, str]]:
        """Rules of one instruction and the next."""
        step, found = self.steps[i], set()
        if step.stem == "LDGDEPBAR" and not step.never and not any(_waits(s, step.write) for s in self.steps):
            found.add(("group never waited for", i, ""))
        if 0 < step.stall < latency.minimum_stall(step.row.encoding):
            found.add(("minimum stall", i, ""))
        if step.stall == 1 and i + 1 < len(self.steps) and i + 1 in [j for j, _ in self._next(i, ())]:
            for board in {step.write, step.read} - {NONE}:
                if self.steps[i + 1].wait >> board & 1:
                    found.add(("set to wait", i + 1, f"SB{board}"))
        return found

    def _walkers(self, i: int) -> Iterator[Walker]:
        step = self.steps[i]
        # a stall of 0 waits until all of it is done
        done = not step.stall
        for touch in step.writes:
            if touch.space != "B" and not (done and step.variable):
                yield Walker(i, RESULT if step.variable else TIMED, touch)
        for touch in dict.fromkeys(step.reads):
            if touch.space != "B" and not done:
                yield Walker(i, OPERAND if (touch.space, touch.number) in step.late else READ, touch)
        if step.stem == "LDGSTS" and step.shared is not None:
            yield Walker(i, COPY, Touch("copy", "R", step.shared[0]))

    def _next(self, i: int, calls: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """Where control may go."""
        step, count = self.steps[i], len(self.steps)
        going_on = [(i + 1, calls)] if i + 1 < count else []
        if step.never or step.stem not in _LEAVES:
            return going_on
        out = going_on if step.guard or (step.stem in ("BRA", "EXIT", "RET") and _conditional(step.row)) else []
        target = branch_target(step.row, i) if step.stem in ("BRA", "CALL") else None
        if step.stem == "BRA":
            out = [*out, *([(target, calls)] if target is not None and 0 <= target < count else [])]
        elif step.stem == "CALL":
            # a call through a register comes back, with everything still in flight
            through = any(t.space == "R" for t in step.reads) or target is None or not 0 <= target < count
            out = [*out, *(going_on if through else [(target, (*calls, i + 1)[-4:])])]
        elif step.stem == "RET" and calls:
            out = [*out, (calls[-1], calls[:-1])]
        elif step.stem in ("BRX", "BRXU", "JMX", "JMXU"):
            out = [*out, *((t, calls) for t in self.targets.get(i, ()))]
        return out

    def _ahead(self) -> list[int]:
        """The registers that something from an instruction on may touch; with calls, every register everywhere."""
        own = [{(t.space, t.number) for t in (*s.reads, *s.writes)} for s in self.steps]
        self.bits = {key: 1 << n for n, key in enumerate(sorted(set().union(*own)))}
        known = [sum(self.bits[key] for key in keys) for keys in own]
        if any(s.stem in ("CALL", "RET") for s in self.steps):
            return [(1 << len(self.bits)) - 1] * len(own)
        changed = True
        while changed:
            changed = False
            for i in range(len(known) - 1, -1, -1):
                more = known[i]
                for j, _ in self._next(i, ()):
                    more |= known[j]
                if more != known[i]:
                    known[i], changed = more, True
        return known

    def _walk(self, walker: Walker) -> tuple[set[tuple[str, int, str]], set[int]]:
        """Who comes too early for this value, and the instructions that it passes."""
        start = self.steps[walker.start]
        kind, touch = walker.kind, walker.touch
        key = (touch.space, touch.number)
        mask, counts = 0, IDLE
        if kind in (RESULT, OPERAND) or start.row.encoding.pipe == TENSOR:
            mask = 0 if start.write == NONE else 1 << start.write
            if kind in (OPERAND, READ) and start.read != NONE:
                mask |= 1 << start.read
            if kind in (RESULT, OPERAND):
                counts = _raised(counts, start.write)
        found: set[tuple[str, int, str]] = set()
        passed = {walker.start}
        after = start.stall or DRAIN
        same = start.guard != 0 and start.stem not in _LEAVES and not self._sets_guard(start, start.guard)
        todo: list[State] = [
            (j, calls, after, mask, counts, same and j == walker.start + 1) for j, calls in self._next(walker.start, ())
        ]
        seen = set(todo)
        while todo:
            if len(seen) > self.limit:
                self.given_up += 1
                break
            state = todo.pop()
            passed.add(state[0])
            more = self._pass(walker, start, key, state, found)
            if more is None:
                continue
            i = state[0]
            for j, calls in self._next(i, state[1]):
                if kind != COPY and not self.ahead[j] & self.bits[key]:
                    passed.add(j)
                    continue
                ahead = (j, calls, *more[2:5], more[5] and j == i + 1)
                if ahead not in seen:
                    seen.add(ahead)
                    todo.append(ahead)
        return found, passed

    def _pass(
        self, walker: Walker, start: Step, key: tuple[str, int], state: State, found: set[tuple[str, int, str]]
    ) -> State | None:
        """One instruction: what it does too early, and the state behind it, None where the value is safe."""
        i, calls, age, mask, counts, same = state
        kind, step = walker.kind, self.steps[i]
        if step.wait & mask:
            return None
        if step.stem == "DEPBAR" and not step.never:
            board, count = step.row.get("scoreboard", NONE), step.row.get("count")
            counted = ".LE" in latency.full_name(*step.op)
            zero = step.row.get("set") | (1 << board if counted and not count else 0)
            # an MMA's wait is a wait mask
            if kind in (RESULT, OPERAND, COPY) and (zero & mask or (counted and 0 < count < counts[board])):
                return None
        if kind == COPY:
            return self._pass_copy(start, state, found)
        meets = not (same and step.guard == -start.guard)
        rule = self._touch(walker, start, key, step, age, meets)
        if rule:
            found.add((rule, i, f"{key[0]}{key[1]}"))
        if not step.guard and not step.never and any((t.space, t.number) == key for t in step.writes):
            return None
        if kind == OPERAND and step.stem == "BAR" and not step.never:
            return None
        order = start.late_order if kind == OPERAND else start.order if kind == RESULT else ""
        if order and order == (step.late_order if kind == OPERAND else step.order):
            boards = {step.write, step.read} if kind == OPERAND else {step.write}
            mask |= sum(1 << b for b in boards - {NONE})
            if order not in ("memory", "REDUX"):
                counts = _raised(counts, step.write)
        if kind in (TIMED, READ):
            age += step.stall or DRAIN
            if age >= OLD:
                return None
        same = same and step.stem not in _LEAVES and not self._sets_guard(step, start.guard)
        return i, calls, age, mask, counts, same

    @staticmethod
    def _sets_guard(step: Step, guard: int) -> bool:
        number = abs(guard) - 1
        key = ("UP", number - 100) if number >= 100 else ("P", number)
        return any((t.space, t.number) == key for t in step.writes)

    @staticmethod
    def _touch(walker: Walker, start: Step, key: tuple[str, int], step: Step, age: int, meets: bool) -> str:
        """The rule that this instruction breaks by touching the register, "" for none."""
        if not meets:
            return ""
        kind = walker.kind
        reads = [t for t in step.reads if (t.space, t.number) == key]
        writes = [t for t in step.writes if (t.space, t.number) == key]
        if kind == RESULT:
            if reads:
                return RAW
            return WAW if writes and not (start.order and start.order == step.order) else ""
        if kind == OPERAND:
            return WAR if writes and not (start.late_order and start.late_order == step.late_order) else ""
        if kind == TIMED:
            if any(age < latency.raw_cycles(start.op, walker.touch, step.op, t) for t in reads):
                return RAW
            return WAW if any(age < latency.waw_cycles(start.op, walker.touch, step.op, t) for t in writes) else ""
        return WAR if any(age < latency.war_cycles(start.op, walker.touch, step.op, t) for t in writes) else ""

    def _pass_copy(self, start: Step, state: State, found: set[tuple[str, int, str]]) -> State | None:
        """A copy into shared memory: read at the same base before its group was waited for."""
        i, calls, age, mask, counts, same = state
        step = self.steps[i]
        assert start.shared is not None
        base, offset = start.shared
        if step.stem in ("LDS", "LDSM", "ATOMS", "STS") and step.shared is not None and step.shared[0] == base:
            low = step.shared[1]
            if low < offset + 4 and offset < low + 4:
                found.add(("read before copied", i, f"[R{base}{max(low, offset):+#x}]"))
        if any(t.space == "R" and t.number == base for t in step.writes):
            return None
        if step.stem == "LDGDEPBAR" and not step.never and step.write != NONE:
            # its own group, or a later one: groups are done in order
            mask |= 1 << step.write
            counts = _raised(counts, step.write)
        return i, calls, age, mask, counts, same


def _waits(step: Step, board: int) -> bool:
    """Whether an instruction is a DEPBAR for a scoreboard."""
    if step.stem != "DEPBAR" or step.never or board == NONE:
        return False
    counted = ".LE" in latency.full_name(*step.op)
    return bool((step.row.get("set") | (1 << step.row.get("scoreboard", NONE) if counted else 0)) >> board & 1)


def _raised(counts: tuple[int, ...], board: int) -> tuple[int, ...]:
    """The counts once more with one scoreboard raised."""
    if board == NONE:
        return counts
    return (*counts[:board], min(MANY, counts[board] + 1), *counts[board + 1 :])


def _conditional(row: Instruction) -> bool:
    """Whether a predicate operand or threads that part may keep control from leaving."""
    if ".DIV" in latency.full_name(row.encoding, row.values) or ".CONV" in latency.full_name(row.encoding, row.values):
        return True
    operands = [a for a in row.encoding.accesses if a.space in ("P", "UP") and a.mode == "read" and a.slot != "guard"]
    return any((row[a.field], row.get(f"{a.field}.not")) != (7, 0) for a in operands)


def twin_of(program: Program, targets: Mapping[int, Sequence[int]] | None = None) -> Twin:
    """The twin of a program; `targets`: where jumps through registers go, by ordinal."""
    return Twin([step_of(row) for row in program], targets or {})


# which field of which instruction becomes what
Loosening = tuple[int, str, int]


def loosenings(program: Program) -> list[Loosening]:
    """Every single loosening: a stall lowered by one, a wait bit cleared, a barrier dropped or renumbered."""
    found: list[Loosening] = []
    for i, row in enumerate(program):
        if row["stall"] > 1:
            found.append((i, "stall", row["stall"] - 1))
        found += [(i, "wait", row["wait"] & ~(1 << b)) for b in range(6) if row["wait"] >> b & 1]
        for name in ("write_barrier", "read_barrier"):
            if row[name] != NONE:
                found += [(i, name, NONE), (i, name, (row[name] + 1) % 6)]
    return found
