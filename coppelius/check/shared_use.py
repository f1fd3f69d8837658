"""Shared bytes: are the accesses inside what is declared, as far as addresses can be known from the words?

Known are intervals of unsigned values: constants, thread and lane numbers within the block, and what masks, shifts,
sums and products make of them along every path.  Everything else is unknown.  So it is proved, for each access,
either that all its addresses lie inside (its highest end is below the declaration), or that none does (hazard:
its lowest byte lies at or above), or nothing (a note counts these).  With no shared bytes declared, any
access that may run is a hazard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coppelius.check.facts import Facts
from coppelius.check.flow import Graph
from coppelius.check.hazard import ALONE, Hazard, Note
from coppelius.check.shape import COPY, KEY_BASE, SHARED_ACCESS
from coppelius.isa import latency
from coppelius.isa.address import AddressOperand
from coppelius.isa.slots import Register, UniformRegister
from coppelius.isa.values import Immediate, Named

CHECK = "resources"
_TOP = (1 << 32) - 1
# joins of one block before a register that still grows is given up
_PATIENCE = 4

Interval = tuple[int, int]
State = dict[int, Interval]
_ZERO: Interval = (0, 0)


@dataclass
class SharedUse:
    """What is proved.  proved_bytes: the highest end among accesses whose addresses are bounded."""

    hazards: list[Hazard] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    proved_bytes: int = 0


def shared_use(facts: Sequence[Facts], graph: Graph, declaration: Mapping[str, Any]) -> SharedUse:
    """The shared accesses against `shared_bytes`; nothing where that is not declared."""
    use = SharedUse()
    declared = declaration.get("shared_bytes")
    if declared is None or not any(f.meaning in (SHARED_ACCESS, COPY) for f in facts):
        return use
    threads = declaration.get("block_x") or 1024
    unknown: list[int] = []
    for node, entry in enumerate(_entry_states(facts, graph, threads)):
        state = dict(entry or {})
        for i in range(*graph.spans[graph.blocks[node]]):
            f = facts[i]
            if f.meaning in (SHARED_ACCESS, COPY):
                _judge(use, unknown, i, f, state, declared)
            _step(state, f, threads)
    use.hazards = sorted(set(use.hazards))
    if unknown and declared:
        count = len(set(unknown))
        use.notes.append(Note(min(unknown), "shared bytes", f"{count} accesses whose addresses are not bounded here"))
    return use


def _judge(use: SharedUse, unknown: list[int], i: int, f: Facts, state: State, declared: int) -> None:
    name = latency.full_name(f.encoding, f.values)
    span = _address(state, f)
    if not declared:
        fact = f"{name} uses shared memory, none is declared"
        use.hazards.append(Hazard(i, ALONE, CHECK, "shared bytes", "", 1, 0, "declare the shared bytes", fact))
    elif span is None:
        unknown.append(i)
    elif span[0] >= declared or (span[0] == span[1] - _bytes(f) and span[1] > declared):
        fact = f"{name} touches shared bytes {span[0]:#x} to {span[1]:#x}, {declared:#x} are declared"
        remedy = f"declare at least {span[1]} shared bytes"
        use.hazards.append(Hazard(i, ALONE, CHECK, "shared bytes", "", span[1], declared, remedy, fact))
    elif span[1] > declared:
        unknown.append(i)
    else:
        use.proved_bytes = max(use.proved_bytes, span[1])


def _address(state: State, f: Facts) -> Interval | None:
    """(lowest byte, highest end) of a shared access, None where unknown."""
    address = next((s for s in f.encoding.operands if isinstance(s, AddressOperand)), None)
    if address is None:
        return None
    get = dict(zip(f.encoding.column, f.values, strict=True)).get
    base = _register(state, f.values[f.encoding.column[address.base.name]])
    scale = (1, 4, 8, 16)[get(f"{address.name}.scale", 0)]
    uniform = get(f"{address.name}.uniform")
    more = _ZERO if uniform in (None, 63) else state.get(256 + int(uniform or 0))
    if base is None or more is None:
        return None
    offset = f.values[f.encoding.column[address.offset.name]]
    low, high = base[0] * scale + more[0] + offset, base[1] * scale + more[1] + offset
    return None if low < 0 or high > _TOP else (low, high + _bytes(f))


def _bytes(f: Facts) -> int:
    """Bytes that one thread touches at its address; a row of LDSM has 16."""
    name = latency.full_name(f.encoding, f.values)
    if ".128" in name or name.startswith("LDSM"):
        return 16
    if ".64" in name:
        return 8
    return 1 if ".U8" in name or ".S8" in name else 2 if ".U16" in name or ".S16" in name else 4


def _register(state: State, number: int) -> Interval | None:
    return _ZERO if number == 255 else state.get(number)


def _entry_states(facts: Sequence[Facts], graph: Graph, threads: int) -> list[State | None]:
    """Bounds at each node's start: what holds on every path."""
    states: list[State | None] = [None] * len(graph.blocks)
    joins = [0] * len(graph.blocks)
    for entry in graph.entries:
        states[entry] = {}
    pending = deque(graph.entries)
    while pending:
        node = pending.popleft()
        state = dict(states[node] or {})
        for i in range(*graph.spans[graph.blocks[node]]):
            _step(state, facts[i], threads)
        for target in graph.successors[node]:
            before = states[target]
            joins[target] += 1
            after = dict(state) if before is None else _join(before, state, joins[target] > _PATIENCE)
            if after != before:
                states[target] = after
                pending.append(target)
    return states


def _join(one: State, other: State, give_up: bool) -> State:
    joined = {}
    for key, (low, high) in one.items():
        more = other.get(key)
        if more is not None:
            hull = (min(low, more[0]), max(high, more[1]))
            if hull == (low, high) or not give_up:
                joined[key] = hull
    return joined


def _step(state: State, f: Facts, threads: int) -> None:
    """The state after one instruction."""
    if not f.writes:
        return
    value = None if len(f.writes) > 1 and f.writes[1][0] < KEY_BASE["P"] else _value(state, f, threads)
    for key, *_ in f.writes:
        if key >= KEY_BASE["P"]:
            continue
        before = state.pop(key, None)
        if value is None or value[1] > _TOP or value[0] < 0:
            continue
        if not f.guarded:
            state[key] = value
        elif before is not None:
            state[key] = (min(before[0], value[0]), max(before[1], value[1]))


def _value(state: State, f: Facts, threads: int) -> Interval | None:
    rule = _RULES.get(latency.stem(f.encoding))
    if latency.full_name(f.encoding, f.values).startswith(_TOO_HARD):
        return None
    return None if rule is None else rule(state, f, threads)


_TOO_HARD = ("IMAD.HI", "IMAD.WIDE", "IADD3.X", "LEA.X", "LEA.HI", "IMAD.X")


def _operand(state: State, f: Facts, name: str) -> Interval | None:
    """Bounds of an operand; RZ where the form has none of that name."""
    slot = next((s for s in f.encoding.operands if s.name == name), None)
    if slot is None:
        return _ZERO
    column = f.encoding.column
    if f.values[column[f"{name}.negate"]] if f"{name}.negate" in column else 0:
        return None
    if isinstance(slot, Register):
        return _register(state, f.values[column[name]])
    if isinstance(slot, UniformRegister):
        number = f.values[column[name]]
        return _ZERO if number == slot.zero else state.get(256 + number)
    if isinstance(slot, Immediate) and f.values[column[name]] >= 0:
        return f.values[column[name]], f.values[column[name]]
    return None


def _special(_: State, f: Facts, threads: int) -> Interval | None:
    slot = next((s for s in f.encoding.operands if isinstance(s, Named)), None)
    name = slot.names[f.values[f.encoding.column[slot.name]]] if slot is not None else ""
    return {
        "SR_TID.X": (0, threads - 1),
        "SR_TID.Y": _ZERO,
        "SR_TID.Z": _ZERO,
        "SR_LANEID": (0, 31),
        "SRZ": _ZERO,
    }.get(name)


def _move(state: State, f: Facts, _: int) -> Interval | None:
    return _operand(state, f, "B")


def _sum(state: State, f: Facts, _: int) -> Interval | None:
    parts = [_operand(state, f, name) for name in "ABC"]
    known = [part for part in parts if part is not None]
    return (sum(p[0] for p in known), sum(p[1] for p in known)) if len(known) == 3 else None


def _product(state: State, f: Facts, _: int) -> Interval | None:
    a, b, c = (_operand(state, f, name) for name in "ABC")
    zero = _ZERO in (a, b)
    if c is None or ((a is None or b is None) and not zero):
        return None
    if zero or a is None or b is None:
        return c
    return a[0] * b[0] + c[0], a[1] * b[1] + c[1]


def _lea(state: State, f: Facts, _: int) -> Interval | None:
    a, b = _operand(state, f, "A"), _operand(state, f, "B")
    shift = f.values[f.encoding.column["S"]]
    return None if a is None or b is None else ((a[0] << shift) + b[0], (a[1] << shift) + b[1])


def _logic(state: State, f: Facts, _: int) -> Interval | None:
    """Any function of three operands that gives 0 for 0: no bit above the highest that it depends on."""
    lut = f.values[f.encoding.column["LUT"]]
    operands = [_operand(state, f, name) for name in "ABC"]
    if lut & 1:
        return None
    masks = [operand[1] for place, operand in enumerate(operands) if operand is not None and _masked(lut, place)]
    if masks:
        return 0, min(masks)
    used = [operand for place, operand in enumerate(operands) if _depends(lut, place)]
    known = [operand[1].bit_length() for operand in used if operand is not None]
    return (0, (1 << max(known, default=0)) - 1) if len(known) == len(used) else None


def _depends(lut: int, place: int) -> bool:
    """Whether the function looks at operand A (0), B (1) or C (2)."""
    bit = 4 >> place
    return any((lut >> n & 1) != (lut >> (n ^ bit) & 1) for n in range(8))


def _masked(lut: int, place: int) -> bool:
    """Whether the result has no bit that this operand lacks."""
    return not any(lut >> n & 1 for n in range(8) if not n & 4 >> place)


def _shift(state: State, f: Facts, _: int) -> Interval | None:
    name = latency.full_name(f.encoding, f.values)
    a, b, c = (_operand(state, f, n) for n in "ABC")
    if b is None or b[0] != b[1] or b[0] > 31:
        return None
    if name.startswith("SHF.R") and ".HI" in name and c is not None and a == _ZERO and c[1] < 1 << 31:
        return c[0] >> b[0], c[1] >> b[0]
    if name.startswith("SHF.L") and ".HI" not in name and a is not None:
        return a[0] << b[0], a[1] << b[0]
    return None


def _choice(state: State, f: Facts, _: int) -> Interval | None:
    a, b = _operand(state, f, "A"), _operand(state, f, "B")
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


_RULES = {
    "S2R": _special,
    "S2UR": _special,
    "MOV": _move,
    "UMOV": _move,
    "IADD3": _sum,
    "UIADD3": _sum,
    "IMAD": _product,
    "UIMAD": _product,
    "LEA": _lea,
    "ULEA": _lea,
    "LOP3": _logic,
    "ULOP3": _logic,
    "SHF": _shift,
    "USHF": _shift,
    "SEL": _choice,
    "USEL": _choice,
    "IMNMX": _choice,
}
