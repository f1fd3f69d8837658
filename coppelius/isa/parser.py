"""nvdisasm's text, braces included, back to fields.

Each encoding of the mnemonic is tried; the one that prints exactly this text is the answer.
"""

from __future__ import annotations

import difflib
import re
from functools import cache

from coppelius.isa.control import CONTROL_FIELDS
from coppelius.isa.form import Encoding
from coppelius.isa.printer import render
from coppelius.isa.refusal import Refusal
from coppelius.isa.slots import Slot, Values
from coppelius.isa.table import Table
from coppelius.isa.values import Immediate, Label_, PackedHalves

_LINE = re.compile(
    # braces of digits only are an operand (DEPBAR's scoreboards), braces with names are ours
    r"^(?:@(?P<guard>!?U?P[0-6T]) )?(?P<mnemonic>[A-Za-z0-9_.]+)(?: (?P<operands>(?:[^{]|\{[0-9,]*\})*?))?"
    r"(?: ?\{(?P<braces>[^}=]+=[^}]*)\})?$"
)

_HEXADECIMAL = re.compile(r"^0x[0-9a-f]+$")
_COMMA = re.compile(r",(?![^{]*\})")

_NUMBERS = re.compile(r"-?0x[0-9a-f]+|(?<![0-9a-f.+-])[0-9]+(?![0-9a-f.+-])")

# encodings, each with the modifier fields that make it print one mnemonic
Ways = tuple[tuple[Encoding, tuple[tuple[str, int], ...]], ...]
Parsed = tuple[Encoding, list[int]]


def parse(table: Table, text: str, address: int = 0) -> Parsed:
    """(encoding, field values in its order, control at its defaults) of one instruction's text.

    Refuses by name text that is not exactly what the printer would write for the result.
    """
    line = " ".join(text.split())
    known = _KNOWN.get((table.target, line))
    if known is not None:
        return known[0], list(known[1])
    match = _LINE.match(line)
    if not match:
        raise Refusal(f"{text!r} is no instruction")
    mnemonic = match["mnemonic"]
    operands = match["operands"] or ""
    ways = mnemonic_ways(table, mnemonic)
    if not ways:
        raise Refusal(_unknown(table, mnemonic))
    for encoding, modifiers in ways:
        values = _fill(encoding, modifiers, match["guard"], operands, match["braces"], address)
        if values is None:
            continue
        if _reads_back(encoding, values, line, address):
            _remember(table, line, encoding, values)
            return encoding, values
    why = _nearly(ways, match, address)
    raise Refusal(f"{mnemonic}: no form takes ({operands}){why}; forms: {_shapes(ways)}")


def _nearly(ways: Ways, match: re.Match[str], address: int) -> str:
    """What kept the text from a form that it all but is: its spelling, or one number."""
    guard, operands, braces = match["guard"], match["operands"] or "", match["braces"]
    for encoding, modifiers in ways:
        values = _fill(encoding, modifiers, guard, operands, braces, address)
        if values is not None:
            return f" as it stands; it is written {_printed(encoding, values, address)}"
    for number in _NUMBERS.finditer(operands):
        other = f"{operands[: number.start()]}{'0x0' if 'x' in number[0] else '0'}{operands[number.end() :]}"
        if any(_fill(encoding, modifiers, guard, other, braces, address) is not None for encoding, modifiers in ways):
            return f", {number[0]} is out of its range"
    return ""


# texts that mean the same at every address: programs repeat them, and the steps of a build read each again
_KNOWN: dict[tuple[str, str], tuple[Encoding, tuple[int, ...]]] = {}
_KNOWN_LIMIT = 200_000


def _remember(table: Table, line: str, encoding: Encoding, values: list[int]) -> None:
    if any(isinstance(slot, Label_) for slot in encoding.operands):
        return
    if len(_KNOWN) >= _KNOWN_LIMIT:
        _KNOWN.clear()
    _KNOWN[table.target, line] = encoding, tuple(values)


def _reads_back(encoding: Encoding, values: list[int], line: str, address: int) -> bool:
    return _printed(encoding, values, address) == line


def _printed(encoding: Encoding, values: list[int], address: int) -> str:
    columns = {f.name: [v] for f, v in zip(encoding.fields, values, strict=True)}
    columns["address"] = [address]
    return " ".join(render(encoding, columns)[0].split())


@cache
def mnemonic_ways(table: Table, mnemonic: str) -> Ways:
    """Every encoding that prints this mnemonic, with the modifier fields that make it print so."""
    out = []
    for encoding in table.by_stem.get(mnemonic.split(".")[0], ()):
        stem = encoding.mnemonic
        if mnemonic != stem and not mnemonic.startswith(stem + "."):
            continue
        tokens = tuple(mnemonic[len(stem) :].split(".")[1:])
        out += [(encoding, tuple(values.items())) for values in _modifier_ways(encoding, 0, tokens)]
    return tuple(out)


def _modifier_ways(encoding: Encoding, position: int, tokens: tuple[str, ...]) -> list[Values]:
    if position == len(encoding.modifiers):
        return [] if tokens else [{}]
    found = []
    for used, values in encoding.modifiers[position].matches(tokens):
        found += [values | rest for rest in _modifier_ways(encoding, position + 1, tokens[used:])]
    return found


def _fill(
    encoding: Encoding,
    modifiers: tuple[tuple[str, int], ...],
    guard: str | None,
    operands: str,
    braces: str | None,
    address: int,
) -> list[int] | None:
    values = dict(zip(encoding.column, encoding.defaults, strict=True)) | dict(modifiers)
    if guard is not None:
        found = encoding.guard.parse(guard)
        if found is None:
            return None
        values |= found
    tokens = [t.strip() for t in _COMMA.split(operands)] if operands else []
    matched = _match_operands(encoding.operands, tokens)
    if matched is None:
        return None
    values |= matched
    for slot in encoding.operands:
        if isinstance(slot, Label_) and slot.name in matched:
            distance = matched[slot.name] - address - 16
            if distance % slot.scale:
                return None
            values[slot.name] = distance // slot.scale
            if not encoding.fields[encoding.column[slot.name]].admits(values[slot.name]):
                return None
    if braces is not None and not _apply_braces(encoding, values, braces):
        return None
    return list(values.values())


def _match_operands(slots: tuple[Slot, ...], tokens: list[str]) -> Values | None:
    if not slots:
        return None if tokens else {}
    slot, rest = slots[0], slots[1:]
    if len(tokens) >= slot.tokens:
        values = slot.parse(", ".join(tokens[: slot.tokens]))
        if values is not None:
            more = _match_operands(rest, tokens[slot.tokens :])
            if more is not None:
                return values | more
    if slot.absent is not None:
        more = _match_operands(rest, tokens)
        if more is not None:
            return slot.absent | more
    return None


def _apply_braces(encoding: Encoding, values: Values, braces: str) -> bool:
    hidden = {h.label: h for h in encoding.hidden}
    literal = {s.name for s in encoding.operands if isinstance(s, Immediate | PackedHalves)}
    for part in braces.split(","):
        label, equals, number = part.strip().partition("=")
        if label in hidden:
            found = hidden[label].parse(number)
        elif label in literal:
            found = {label: int(number, 16)} if _HEXADECIMAL.match(number) else None
        else:
            found = None
        if not equals or found is None:
            return False
        if not all(encoding.fields[encoding.column[name]].admits(value) for name, value in found.items()):
            return False
        values |= found
    return True


def _unknown(table: Table, mnemonic: str) -> str:
    stem = mnemonic.split(".")[0]
    known = table.by_stem.get(stem)
    if known:
        return f"{mnemonic}: {stem} has no such modifiers"
    near = difflib.get_close_matches(stem, list(table.by_stem), 3)
    return f"{mnemonic}: no {table.target} instruction" + (f"; nearest: {', '.join(near)}" if near else "")


def _shapes(ways: Ways) -> str:
    shapes = {"(" + ", ".join(shape(s) for s in encoding.operands) + ")" for encoding, _ in ways}
    return " ".join(sorted(shapes))


def shape(slot: Slot) -> str:
    """A word for an operand slot in a refusal."""
    return {
        "Register": "R",
        "UniformRegister": "UR",
        "Predicate": "P",
        "Immediate": "imm",
        "PackedHalves": "imm, imm",
        "ConstantOperand": "c[bank][offset]",
        "BindlessConstant": "cx[UR][offset]",
        "AddressOperand": "[address]",
        "Label_": "target",
    }.get(type(slot).__name__, slot.name)


def default_values(encoding: Encoding) -> list[int]:
    """Field values of an instruction that says nothing."""
    return list(encoding.defaults)


CONTROL_NAMES = tuple(f.name for f in CONTROL_FIELDS)
