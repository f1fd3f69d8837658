"""A target's opcode table: every encoding, found by opcode, by mnemonic and by ordinal; checked whole when made.

No word matches two encodings; names are unique; every encoding decodes its own default word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from coppelius.isa.form import Encoding, Form
from coppelius.isa.layout import Layout
from coppelius.isa.refusal import Refusal
from coppelius.isa.word import halves


class Table:
    """The encodings of one target, ordinals in `uid` order."""

    def __init__(self, target: str, forms: Iterable[Form]) -> None:
        self.target = target
        self.forms = tuple(forms)
        self.encodings: tuple[Encoding, ...] = tuple(e for form in self.forms for e in form.expand())
        for uid, encoding in enumerate(self.encodings):
            encoding.uid, encoding.target = uid, target
        self.by_name = {e.name: e for e in self.encodings}
        if len(self.by_name) != len(self.encodings):
            names = [e.name for e in self.encodings]
            twice = sorted({n for n in names if names.count(n) > 1})
            raise ValueError(f"{target}: encodings named twice: {twice}")
        self._layouts: dict[int, Layout] = {}
        self.columns = max(len(e.fields) for e in self.encodings)
        self.by_stem: dict[str, list[Encoding]] = defaultdict(list)
        self.by_opcode: dict[int, list[Encoding]] = defaultdict(list)
        for e in self.encodings:
            self.by_stem[e.mnemonic.split(".")[0]].append(e)
            self.by_opcode[e.opcode].append(e)

    @cached_property
    def candidates(self) -> npt.NDArray[np.int16]:
        """`int16[4096, k]`: encodings to try for each value of bits [11:0], -1 where there are no more."""
        most = max(len(v) for v in self.by_opcode.values())
        out = np.full((4096, most), -1, dtype=np.int16)
        for opcode, encodings in self.by_opcode.items():
            out[opcode, : len(encodings)] = [e.uid for e in encodings]
        return out

    @cached_property
    def masks(self) -> npt.NDArray[np.uint64]:
        """`uint64[n, 4]`: match mask low and high, match value low and high of each encoding."""
        rows = [(*halves(e.match_mask), *halves(e.match_value)) for e in self.encodings]
        return np.array(rows, dtype=np.uint64)

    @cached_property
    def values(self) -> npt.NDArray[np.uint64]:
        """`uint64[n, 2]`: the bits of each encoding that are no field's."""
        return np.array([halves(e.value) for e in self.encodings], dtype=np.uint64)

    @cached_property
    def shared_opcodes(self) -> frozenset[int]:
        """Opcodes whose encodings the match bits alone do not tell apart."""
        return frozenset(o for o, encodings in self.by_opcode.items() if _overlap(encodings))

    @property
    def exclusive(self) -> bool:
        """Whether the match bits alone tell all encodings apart."""
        return not self.shared_opcodes

    def layout(self, encoding: Encoding) -> Layout:
        """Its fields as arrays, made once."""
        found = self._layouts.get(encoding.uid)
        if found is None:
            found = self._layouts[encoding.uid] = Layout(encoding)
        return found

    def ambiguities(self) -> list[tuple[str, str]]:
        """Pairs of encodings that some word could match both of; empty for a sound table."""
        found = []
        for encodings in self.by_opcode.values():
            for i, a in enumerate(encodings):
                for b in encodings[i + 1 :]:
                    if not (a.value ^ b.value) & a.mask & b.mask and not _disjoint_codes(a, b):
                        found.append((a.name, b.name))
        return found


def _overlap(encodings: list[Encoding]) -> bool:
    return any(
        not (a.match_value ^ b.match_value) & a.match_mask & b.match_mask
        for i, a in enumerate(encodings)
        for b in encodings[i + 1 :]
    )


def _disjoint_codes(a: Encoding, b: Encoding) -> bool:
    """Whether codes of some field keep two encodings apart."""
    return _excludes(a, b) or _excludes(b, a)


def _excludes(a: Encoding, b: Encoding) -> bool:
    for f in a.fields:
        if f.codes is None:
            continue
        if f.bits.mask & b.mask == f.bits.mask and (f.bits.take(b.value) ^ f.invert) not in f.codes:
            return True
        twin = next((g for g in b.fields if g.bits == f.bits), None)
        if twin is not None and twin.codes is not None:
            mine = {c ^ f.invert for c in f.codes}
            if not mine & {c ^ twin.invert for c in twin.codes}:
                return True
    return False


@cache
def sm86() -> Table:
    """The table of SM86."""
    from coppelius.isa.forms import all_forms

    return Table("sm86", all_forms())


@cache
def table_of(target: str) -> Table:
    """The table of a target by its name; refuses an unknown one."""
    if target == "sm86":
        return sm86()
    from coppelius.isa.targets.chips import DIFFERENCES, forms_of

    if target not in DIFFERENCES:
        raise Refusal(f"no target {target!r}; known: {', '.join(sorted(['sm86', *DIFFERENCES]))}")
    return Table(target, forms_of(target))
