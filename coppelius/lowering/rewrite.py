"""One instruction in another target's words: the row of the same name, fields by name, suffixes by text.

Because both tables name their fields alike, whatever only moved needs no rule.  A uniform register that is URZ stays
URZ.  What the target's row cannot hold is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from coppelius.isa.control import CONTROL_FIELDS, Control
from coppelius.isa.form import Encoding
from coppelius.isa.latency import full_name, stem
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table
from coppelius.isa.values import Alias, Modifier, Suffix
from coppelius.lowering.rules import FLOAT_ATOMICS, REMEDIES, RULES, SUFFIXES, Rule, is_float_atomic
from coppelius.program.program import Instruction

_CONTROL = frozenset(f.name for f in CONTROL_FIELDS)
_NO_RULE = Rule("")


def row_name(encoding: Encoding) -> tuple[str, str]:
    """(`mnemonic` or `mnemonic:variant` without the operand form, the operand form)."""
    variant = encoding.form.variant
    form = encoding.name.removeprefix(encoding.mnemonic).removeprefix(":").removeprefix(variant)
    return f"{encoding.mnemonic}:{variant}" if variant else encoding.mnemonic, form


def rewrite(
    row: Instruction, table: Table, *, form: str | None = None, more: Mapping[str, int] | None = None
) -> Instruction:
    """The instruction by the target's table.

    form: another operand form; more: fields that this form has.  Control fields are left at their defaults.
    """
    old = row.encoding
    name, own_form = row_name(old)
    rule = _rule(row, table, name)
    target = target_row(row, table, own_form if form is None else form)
    if target is None:
        instead = REMEDIES.get(stem(old), "write it with what both have")
        raise Refusal(f"{full_name(old, row.values)}: {table.target} has no such instruction; {instead}")
    values = dict(zip(target.column, target.defaults, strict=True))
    for field, value in zip(old.fields, row.values, strict=True):
        into = rule.fields.get(field.name, field.name)
        if field.name in _CONTROL or (more is not None and field.name in more):
            continue
        if into in values:
            values[into] = _carried(old, target, field.name, into, value, rule)
        elif value != field.default and not field.name.endswith((".reuse", ".shown")):
            raise Refusal(f"{full_name(old, row.values)}: {table.target} has no {field.name} {value} in {target.name}")
    values |= {**rule.sets, **(more or {})}
    for place in target.fields:
        if not place.admits(values[place.name]):
            held = f"{place.name} {values[place.name]}"
            raise Refusal(f"{full_name(old, row.values)}: {table.target}'s {target.name} cannot hold {held}")
    return Instruction(target, tuple(values.values())).with_control(Control())


def target_row(row: Instruction, table: Table, form: str) -> Encoding | None:
    """The target's row for an instruction in that operand form, if it has one."""
    name, _ = row_name(row.encoding)
    return _encoding(table, _rule(row, table, name).row or name, form)


def _rule(row: Instruction, table: Table, name: str) -> Rule:
    rules = RULES[table.target]
    if name in FLOAT_ATOMICS and table.target in ("sm90", "sm120", "sm121"):
        kind = next(m for m in row.encoding.modifiers if m.name == "TYPE")
        if is_float_atomic(kind.suffixes[row["TYPE"]]):
            return Rule(FLOAT_ATOMICS[name])
    return rules.get(name, _NO_RULE)


def _encoding(table: Table, name: str, form: str) -> Encoding | None:
    mnemonic, _, variant = name.partition(":")
    ending = variant + form
    return table.by_name.get(f"{mnemonic}:{ending}" if ending else mnemonic)


def _carried(old: Encoding, new: Encoding, name: str, into: str, value: int, rule: Rule) -> int:
    """A field's value in the target's row."""
    modifier, other = _modifier(old, name), _modifier(new, into)
    if modifier is not None and other is not None:
        return _code(old, modifier, other, value, rule)
    before, after = old.fields[old.column[name]], new.fields[new.column[into]]
    if before.width != after.width and any(a.space == "UR" and a.field == name and not a.shift for a in old.accesses):
        return after.high if value == before.high else value
    return value


def _modifier(encoding: Encoding, name: str) -> Modifier | None:
    for modifier in encoding.modifiers:
        if modifier.name == name and not isinstance(modifier, Suffix | Alias):
            return modifier
    return None


def _code(old: Encoding, modifier: Modifier, other: Modifier, value: int, rule: Rule) -> int:
    """The code under which the target's modifier prints the same, or what a rule makes of it."""
    text = modifier.suffixes[value]
    wanted = rule.suffixes.get((modifier.name, text), SUFFIXES.get((old.mnemonic, modifier.name, text), text))
    for code in (value, *other.suffixes):
        if other.suffixes.get(code) in (wanted, text):
            return code
    raise Refusal(f"{old.mnemonic}{text}: no such suffix in {other.name} of the target")
