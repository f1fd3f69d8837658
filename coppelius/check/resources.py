"""Registers, shared bytes, half format and ends: does the declaration cover what the words really use?

A launch reserves what is declared: a register above it belongs to another warp, a shared byte above it to
another block or to nobody.  The hardware keeps two registers of each thread for itself.  A program of one half
format that computes in the other is wrong silently, because both are 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coppelius.check.facts import Facts
from coppelius.check.flow import Graph
from coppelius.check.hazard import ALONE, Hazard
from coppelius.isa import latency
from coppelius.isa.codec import Decoded
from coppelius.isa.form import Encoding
from coppelius.isa.slots import Access

CHECK = "resources"
# published: two registers are the hardware's own
RESERVED = 2
# published: the highest register an instruction may name, R255 being RZ and two reserved
LAST_REGISTER = 252

_STATELESS = {"R": 255, "P": 7, "UP": 7, "UR": 63, "B": 16}
_HALF_ONLY = ("HADD2", "HMUL2", "HFMA2", "HSET2", "HSETP2", "HMNMX2")
_TENSOR_HALF = ("HMMA",)


@dataclass(frozen=True)
class Demand:
    """Highest register used plus one, in each space; pairs and quads count whole."""

    general: int = 0
    uniform: int = 0
    predicates: int = 0
    uniform_predicates: int = 0
    barriers: int = 0


def register_demand(decoded: Decoded) -> Demand:
    """The registers that the words name, whether or not a path reaches them."""
    most = dict.fromkeys(_STATELESS, 0)
    for encoding, where in decoded.groups():
        block = decoded.values[where]
        for access in encoding.accesses:
            most[access.space] = max(most[access.space], _highest(encoding, access, block))
    return Demand(most["R"], most["UR"], most["P"], most["UP"], most["B"])


def _highest(encoding: Encoding, access: Access, block: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    if access.when:
        name, codes = access.when
        block = block[np.isin(block[:, encoding.column[name]], list(codes))]
    index = block[:, encoding.column[access.field]] >> access.shift
    zero = _STATELESS[access.space]
    if access.space == "UR":
        zero = (1 << (encoding.fields[encoding.column[access.field]].width - access.shift)) - 1
    used = index != zero
    if isinstance(access.width, int):
        return int(np.max(index, initial=-1, where=used)) + access.width if used.any() else 0
    name, widths = access.width
    width = np.array([widths.get(code, 1) for code in block[:, encoding.column[name]].tolist()], dtype=np.int64)
    return int((index + width)[used].max()) if used.any() else 0


def launch_registers(demand: Demand) -> int:
    """What a launch must reserve: the demand, the two reserved ones, made even."""
    return -(-(demand.general + RESERVED) // 2) * 2


def resource_hazards(
    facts: Sequence[Facts], graph: Graph, demand: Demand, declaration: Mapping[str, Any]
) -> list[Hazard]:
    """Where the declaration falls short of the words."""
    return [
        *_registers(facts, demand, declaration.get("registers")),
        *_half(facts, declaration.get("half")),
        *_ends(facts, graph),
    ]


def _registers(facts: Sequence[Facts], demand: Demand, declared: int | None) -> list[Hazard]:
    needed = demand.general + RESERVED
    if demand.general > LAST_REGISTER + 1:
        limit, fact = LAST_REGISTER + 1, f"R{demand.general - 1} is used; R{LAST_REGISTER} is the last usable"
    elif declared is not None and declared < needed:
        limit = declared
        fact = f"R{demand.general - 1} is used, so {needed} registers are needed; {declared} are declared"
    else:
        return []
    top = demand.general - 1
    # an instruction that never executes may name it too, and touches nothing
    ordinal = next((i for i, f in enumerate(facts) if top in f.touched), 0)
    remedy = f"declare {launch_registers(demand)} registers, or use fewer"
    return [Hazard(ordinal, ALONE, CHECK, "registers", f"R{top}", needed, limit, remedy, fact)]


def _half(facts: Sequence[Facts], half: str | None) -> list[Hazard]:
    if half is None:
        return []
    found = []
    for i, f in enumerate(facts):
        used = half_of(f)
        if used is not None and used != half:
            name = latency.full_name(f.encoding, f.values)
            fact = f"{name} computes in {used}, the image is {half}"
            remedy = f"use its {half} counterpart"
            found.append(Hazard(i, ALONE, CHECK, "half format", "", 0, 0, remedy, fact))
    return found


def half_of(f: Facts) -> str | None:
    """The half format that this instruction computes in or converts; None where it does neither."""
    stem = latency.stem(f.encoding)
    if stem not in _HALF_ONLY and not stem.startswith(("HMMA", "F2F", "I2F", "F2I", "MUFU", "RED", "ATOM", "FRND")):
        return None
    name = latency.full_name(f.encoding, f.values)
    if "BF16" in name:
        return "bf16"
    if stem == "HMMA":
        return None if "TF32" in name else "f16"
    if stem == "F2FP" or stem in _HALF_ONLY:
        return None if _is_constant(f) else "f16"
    return "f16" if ".F16" in name else None


def _is_constant(f: Facts) -> bool:
    """Whether a half instruction reads no register: compilers make constants that way, of either format."""
    return not any(key < 255 for key, _ in f.reads)


def _ends(facts: Sequence[Facts], graph: Graph) -> list[Hazard]:
    """Paths that run past the last instruction."""
    found = []
    for node in graph.falls_off:
        if node < graph.reachable:
            last = graph.spans[graph.blocks[node]][1] - 1
            fact = f"control runs past {facts[last].encoding.mnemonic} out of the program"
            found.append(Hazard(last, ALONE, CHECK, "end", "", 0, 0, "end every path in EXIT", fact))
    return sorted(set(found))
