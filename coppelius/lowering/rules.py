"""What an SM86 instruction becomes on another target, beyond the row of its own name.

A rule names a row of SM86 and the target's row; fields and suffixes keep their names where both have them, and
`sets` gives the others.  Names are `mnemonic` or `mnemonic:variant`, without the operand form.  A target's habits
are the forms that its table has and its compiler avoids (`expand`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Rule(NamedTuple):
    """`row`: the target's row.  `fields`: SM86's field -> the target's.  `suffixes`: text -> text of a modifier."""

    row: str
    fields: Mapping[str, str] = {}
    suffixes: Mapping[tuple[str, str], str] = {}
    sets: Mapping[str, int] = {}


class Habits(NamedTuple):
    """What a target's compiler writes; where it does not, the instruction is written as it would write it."""

    scaled: bool = True  # a shared address scales its register
    products_move: bool = True  # a product of zeros brings a value elsewhere
    uniform_addend: bool = True  # a wide product is added to a uniform pair
    leading_minus: bool = True  # a sum with a uniform term begins with a minus


_FLOATS = (".F32.FTZ.RN", ".F16x2.RN", ".F64.RN")

# from SM90 on (facts 5): float atomics have rows of their own
_ATOMICS = {
    "RED:described": Rule("REDG:described"),
    "RED:added": Rule("REDG:added"),
}
FLOAT_ATOMICS = {
    f"{old}:{way}": f"{new}:float-{way}"
    for old, new in (("RED", "REDG"), ("ATOMG", "ATOMG"), ("ATOM", "ATOM"))
    for way in ("described", "added")
}
_HOPPER = _ATOMICS | {"DMMA.884": Rule("DMMA.8x8x4"), "IMNMX": Rule("VIMNMX")}
_BLACKWELL = _HOPPER | {
    "IMNMX": Rule("VIMNMX", suffixes={("U32", ""): ".S32"}),
    "ULDC": Rule("LDCU"),
    "ULDC:indexed": Rule("LDCU:indexed"),
    # the compiler for this target always says so (facts 2)
    "BSSY": Rule("BSSY", sets={"RECONVERGENT": 1}),
    "BSYNC": Rule("BSYNC", sets={"RECONVERGENT": 1}),
    "BREAK": Rule("BREAK", sets={"RELIABLE": 1}),
}
RULES: Mapping[str, Mapping[str, Rule]] = {
    # no conversion of fixed latency
    "sm80": {"I2FP.F32": Rule("I2F:u32.", suffixes={("SRC", ".S32"): ""})},
    "sm89": {},
    "sm90": _HOPPER,
    "sm120": _BLACKWELL,
    "sm121": _BLACKWELL,
}

# measured: what ptxas 13.5.37 writes for each target of the sources and probes under tests/data
_BLACKWELL_HABITS = Habits(scaled=False, products_move=False, leading_minus=False)
HABITS: Mapping[str, Habits] = {
    "sm80": Habits(),
    "sm86": Habits(),
    "sm89": Habits(),
    "sm90": Habits(scaled=False, uniform_addend=False),
    "sm120": _BLACKWELL_HABITS,
    "sm121": _BLACKWELL_HABITS,
}

# stem -> what to write in its place, where a target has nothing like it
REMEDIES: Mapping[str, str] = {
    "WARPSYNC": "meet by BSSY and BSYNC",
    "ATOMS": "add by ATOMS.ADD, whose operand says how much",
    "MUFU": "compute in 32 bits and pack",
    "TEX": "load from global memory", "TLD": "load from global memory", "TXQ": "pass the size as a parameter",
    "SULD": "load from global memory", "SUST": "store to global memory", "SURED": "reduce in global memory by RED",
    "I2IP": "clamp by IMNMX and pack by PRMT",
    "VABSDIFF": "subtract and take IABS", "VABSDIFF4": "subtract byte by byte",
    "IMMA": "multiply bytes", "BMMA": "count by LOP3 and POPC",
}  # fmt: skip

# suffixes of SM89 and later that say in more words what SM86's say
SUFFIXES = {
    ("F2FP", "BF16", ""): ".F16.F32",
    ("F2FP", "BF16", ".BF16"): ".BF16.F32",
}


def is_float_atomic(suffix: str) -> bool:
    """Whether an atomic's type is one of those that moved."""
    return suffix in _FLOATS
