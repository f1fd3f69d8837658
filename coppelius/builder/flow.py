"""Control flow and liveness of a draft, instruction by instruction, as bit sets.

A branch goes to its label, and also on where it is guarded or has a predicate operand.  EXIT ends a
path unless guarded.  A guarded write keeps the earlier value alive, except where every read of the
register stands under the same guard: then nobody sees what it kept.
"""

from __future__ import annotations

from collections import defaultdict

from coppelius.builder.draft import Draft, Item
from coppelius.builder.registers import FIRST_VIRTUAL
from coppelius.isa.access import Touch
from coppelius.isa.refusal import Refusal

_ALWAYS = (7, 0)


def conditional(item: Item) -> bool:
    """Whether a branch or EXIT may fall through."""
    if item.guarded:
        return True
    column = item.encoding.column
    for access in item.encoding.accesses:
        if access.slot != "guard" and access.space in ("P", "UP") and access.mode == "read":
            inverted = item.values[column[f"{access.field}.not"]] if f"{access.field}.not" in column else 0
            if (item.values[column[access.field]], inverted) != _ALWAYS:
                return True
    return False


def successors(draft: Draft) -> list[list[int]]:
    """Ordinals that may follow each instruction; refuses a label that is never placed and a fall off the end."""
    out = []
    for i, item in enumerate(draft.items):
        stem = item.encoding.mnemonic.split(".")[0]
        following: list[int] = []
        if item.target is not None and stem != "BSSY":
            if item.target not in draft.labels:
                raise Refusal(f"{item.source.file}:{item.source.line}: label {item.target} is never placed")
            following.append(draft.labels[item.target])
        if stem not in ("EXIT", "BRA") or conditional(item):
            following.append(i + 1)
        for target in following:
            if target >= len(draft.items):
                raise Refusal(f"{item.source.file}:{item.source.line}: the program runs off its end after this")
        out.append(following)
    return out


class Liveness:
    """Where each named register is live: bit 2i of `points[v]` before instruction i, bit 2i+1 after it.

    Lanes of a pair or quad are followed one by one, and the register is live where any of them is.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._lanes = [(v, n, lane) for n, v in enumerate(draft.names.virtuals) for lane in range(v.width)]
        self._number = {(v.space, v.first + lane): i for i, (v, _, lane) in enumerate(self._lanes)}
        self._uses = [self._mask(item.reads) for item in draft.items]
        self._definitions = [self._mask(item.writes) for item in draft.items]
        self._kills = self._find_kills()
        self.points = self._solve()

    def _mask(self, touches: list[Touch]) -> int:
        found = 0
        for touch in touches:
            if touch.number >= FIRST_VIRTUAL:
                found |= 1 << self._number[touch.space, touch.number]
        return found

    def _find_kills(self) -> list[int]:
        """What each instruction surely overwrites."""
        guards: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for item, uses in zip(self.draft.items, self._uses, strict=True):
            for n in _ones(uses):
                guards[n].add(item.guard)
        kills = []
        for item, definitions in zip(self.draft.items, self._definitions, strict=True):
            if item.guarded:
                definitions = sum(1 << n for n in _ones(definitions) if guards[n] <= {item.guard})
            kills.append(definitions)
        return kills

    def _solve(self) -> list[int]:
        following = successors(self.draft)
        count = len(self.draft.items)
        before = [0] * count
        after = [0] * count
        changed = True
        while changed:
            changed = False
            for i in range(count - 1, -1, -1):
                out = 0
                for s in following[i]:
                    out |= before[s]
                into = self._uses[i] | (out & ~self._kills[i])
                if into != before[i] or out != after[i]:
                    before[i], after[i], changed = into, out, True
        self._refuse_undefined(before[0])
        return self._points([m for i in range(count) for m in (before[i], after[i] | self._definitions[i])])

    def _points(self, live: list[int]) -> list[int]:
        """Lanes live at each point -> the points of each named register: a lane's run is entered where it ends."""
        points = [0] * len(self.draft.names.virtuals)
        since: dict[int, int] = {}
        previous = 0
        for point, lanes in enumerate([*live, 0]):
            for lane in _ones(lanes ^ previous):
                if lanes >> lane & 1:
                    since[lane] = point
                else:
                    points[self._lanes[lane][1]] |= (1 << point) - (1 << since[lane])
            previous = lanes
        return points

    def _refuse_undefined(self, entry: int) -> None:
        for n in _ones(entry):
            virtual, _, lane = self._lanes[n]
            if not any(d >> n & 1 for d in self._definitions):
                part = f", lane {lane}," if virtual.width > 1 else ""
                raise Refusal(f"register {virtual.name}{part} is read and never written")


def _ones(mask: int) -> list[int]:
    """Positions of the bits that are set."""
    out = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return out
