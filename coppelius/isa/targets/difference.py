"""A target's rows: those of the target it is based on, changed one after another.

A change takes the rows and gives the rows.  Rows are named by their mnemonic, or by mnemonic and variant
(`BRA:mask`).  A change that names a row which is not there is refused: a table of differences that no longer
fits what it differs from must not pass silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from coppelius.isa.bits import Bits
from coppelius.isa.form import Form
from coppelius.isa.operands import URZ_INDEX
from coppelius.isa.slots import Slot
from coppelius.isa.targets.adapt import SHORT, Adapt, both, wide, widened
from coppelius.isa.values import BindlessConstant, ConstantOperand, Hidden, Modifier

Change = Callable[[Sequence[Form]], list[Form]]


@dataclass(frozen=True)
class Difference:
    """A target, the target it is based on (empty: SM86's rows), and what changes."""

    name: str
    base: str
    changes: tuple[Change, ...] = ()

    def rows(self, base: Sequence[Form]) -> list[Form]:
        """The target's rows from its base's."""
        rows = list(base)
        for change in self.changes:
            rows = change(rows)
        return rows


def _selected(form: Form, names: frozenset[str]) -> str | None:
    """The name among these by which the row is meant."""
    for name in (form.mnemonic, f"{form.mnemonic}:{form.variant}"):
        if name in names:
            return name
    return None


def _each(names: Iterable[str], change: Callable[[Form], Iterable[Form]]) -> Change:
    """The change of the rows of these names, all of which must be there."""
    wanted = frozenset(names)

    def apply(rows: Sequence[Form]) -> list[Form]:
        out: list[Form] = []
        met: set[str] = set()
        for form in rows:
            name = _selected(form, wanted)
            met |= {name} if name else set()
            out += [form] if name is None else change(form)
        if wanted - met:
            raise ValueError(f"no rows are named {sorted(wanted - met)}")
        return out

    return apply


def gone(*names: str) -> Change:
    """Rows that the target has not."""
    return _each(names, lambda _: ())


def added(*rows: Form) -> Change:
    """Rows that only this target has."""
    return lambda old: [*old, *rows]


def renamed(names: Mapping[str, str]) -> Change:
    """Rows under another mnemonic."""
    return _each(names, lambda form: [replace(form, mnemonic=names[form.mnemonic])])


def fixed(names: Iterable[str], more: Mapping[Bits, int]) -> Change:
    """Rows with other values in bits that never vary."""
    return _each(names, lambda form: [replace(form, fixed={**form.fixed, **more})])


def modified(names: Iterable[str], change: Callable[[Modifier], Modifier]) -> Change:
    """Rows with other modifiers."""
    return _each(names, lambda form: [replace(form, modifiers=tuple(change(m) for m in form.modifiers))])


def suffixed(names: Iterable[str], modifier: Modifier) -> Change:
    """Rows with one more modifier, the last."""
    return _each(names, lambda form: [replace(form, modifiers=(*form.modifiers, modifier))])


def operands(names: Iterable[str], change: Adapt) -> Change:
    """Rows with other operands."""
    return _each(names, lambda form: [replace(form, adapt=both(form.adapt, change))])


def everywhere(change: Adapt) -> Change:
    """All rows with other operands."""
    return lambda rows: [replace(form, adapt=both(form.adapt, change)) for form in rows]


def in_pipe(pipe: str, change: Adapt) -> Change:
    """All rows of a pipe with other operands."""
    return lambda rows: [replace(f, adapt=both(f.adapt, change)) if f.pipe == pipe else f for f in rows]


def stems_gone(*stems: str) -> Change:
    """All rows whose mnemonic begins with one of these names."""

    def apply(rows: Sequence[Form]) -> list[Form]:
        if unknown := set(stems) - {form.mnemonic.split(".")[0] for form in rows}:
            raise ValueError(f"no rows are named {sorted(unknown)}")
        return [form for form in rows if form.mnemonic.split(".")[0] not in stems]

    return apply


def suffixes(names: Iterable[str], modifier: str, *codes: int) -> Change:
    """Rows whose modifier of that name has only these codes."""

    def narrow(m: Modifier) -> Modifier:
        if m.name != modifier:
            return m
        return Modifier(m.name, m.field.bits, {c: m.suffixes[c] for c in codes}, default=m.field.default)

    return modified(names, narrow)


def without_forms(names: Iterable[str], digits: str) -> Change:
    """Rows without these operand forms."""
    return _each(names, lambda form: [replace(form, forms="".join(d for d in form.forms if d not in digits))])


def without_hidden(label: str) -> Change:
    """All rows without that brace: the text says it."""

    def kept(hidden: tuple[Hidden, ...]) -> tuple[Hidden, ...]:
        return tuple(h for h in hidden if h.label != label)

    return lambda rows: [replace(form, hidden=kept(form.hidden)) for form in rows]


def wide_uniform_registers() -> Change:
    """All rows with uniform registers of eight bits, where they are fixed ones too."""

    def fixed_wide(fixed: Mapping[Bits, int]) -> dict[Bits, int]:
        place = {b: wide(b) if v == URZ_INDEX and b.width == SHORT else b for b, v in fixed.items()}
        return {place[b]: v if place[b] is b else (1 << place[b].width) - 1 for b, v in fixed.items()}

    return lambda rows: [replace(form, adapt=both(form.adapt, widened), fixed=fixed_wide(form.fixed)) for form in rows]


def without_constant_operands() -> Change:
    """All rows without forms 3 and 5, and without the rows whose operand is a constant by itself."""

    def is_constant(operand: object) -> bool:
        return isinstance(operand, Slot) and isinstance(operand, ConstantOperand | BindlessConstant)

    def apply(rows: Sequence[Form]) -> list[Form]:
        out = []
        for form in rows:
            left = form.forms.replace("3", "").replace("5", "")
            if any(is_constant(o) for o in form.operands) or (form.forms and not left):
                continue
            out.append(replace(form, forms=left))
        return out

    return apply
