"""What memory rows share: addresses, sizes, order and eviction, and the expansion of one operation to its address ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.form import MEMORY, Form, Operand
from coppelius.isa.operands import RZ_INDEX
from coppelius.isa.slots import READ, WRITE, Predicate, Register, Width
from coppelius.isa.values import Modifier

SIZES = {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16", 4: "", 5: ".64", 6: ".128"}
SIZE = Modifier("SIZE", bits[75:73], SIZES, default=4)
BY_SIZE: Width = ("SIZE", {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 6: 4})

EVICT = Modifier("EVICT", bits[86:84], {1: "", 0: ".EF", 2: ".EL", 3: ".LU", 4: ".EU", 5: ".NA"}, default=1)
PREFETCH = Modifier("LTC", bits[69:68], {0: "", 1: ".LTC64B", 2: ".LTC128B", 3: ".LTC256B"})

_ORDERS = {
    0: "", 1: ".CONSTANT.PRIVATE", 2: ".CONSTANT.CTA", 3: ".CONSTANT.CTA.PRIVATE", 5: ".STRONG.SM", 6: ".STRONG.GPU.PRIVATE",
    7: ".STRONG.GPU", 8: ".MMIO.GPU", 9: ".CONSTANT.SM", 10: ".STRONG.SYS", 11: ".CONSTANT.SM.PRIVATE", 12: ".MMIO.SYS",
    13: ".CONSTANT.VC", 14: ".CONSTANT.VC.PRIVATE", 15: ".CONSTANT.GPU",
}  # fmt: skip
LOAD_ORDER = Modifier("ORDER", bits[80:77], _ORDERS | {4: ".CONSTANT"})
STORE_ORDER = Modifier("ORDER", bits[80:77], _ORDERS | {4: ".STRONG.SM.PRIVATE"})
COPY_ORDER = Modifier(
    "ORDER",
    bits[80:77],
    _ORDERS
    | {
        4: ".CONSTANT",
        5: ".MMIO.CTA",
        6: ".GPU.PRIVATE",
        7: ".MMIO.CTA.PRIVATE",
        8: ".MMIO.SM",
        10: ".MMIO.VC",
        12: ".MMIO.GPU",
    },
)

PLAIN_E = Modifier("E", bits[72], {0: "", 1: ".E"}, default=1)
DESCRIBED_E = Modifier("E", bits[72], {1: ".E"}, default=1)

# a load gives zero where this predicate is false; stored inverted, so that all-zero bits mean always
FALLBACK = Predicate("Ps", bits[66:64], READ, inverted=bits[67], stored_inverted=True, optional={"Ps": 7, "Ps.not": 0})
LOADED = Register("D", bits[23:16], WRITE, width=BY_SIZE)
STORED = Register("data", bits[39:32], READ, width=BY_SIZE)

Build = Callable[[AddressOperand], tuple[Operand, ...]]
Modifiers = Callable[[Modifier], tuple[Modifier, ...]]


class Some(Register):
    """A register read that is never RZ: nvdisasm has no name for RZ there."""

    def __init__(self, name: str, place: Bits) -> None:
        super().__init__(name, place, READ)
        self.place = Field(name, place, frozenset(range(RZ_INDEX)))
        self.fields = (self.place,)


@dataclass(frozen=True)
class Ways:
    """Where one operation's address lies: the opcode with a uniform register, and the bits that choose among its ways."""

    opcode: int
    uniform: Bits
    extend: Bits
    descriptor: Bits
    needs_base: bool = False
    offset: Bits = bits[63:40]


def plain_address(*, name: str = "address", offset: Bits = bits[63:40]) -> AddressOperand:
    """`[R2+0x10]`, a pair where `.E`."""
    return AddressOperand(name, bits[31:24], offset, wide="E")


def uniform_rows(
    mnemonic: str, latency: str, ways: Ways, build: Build, modifiers: Modifiers, variant: str = ""
) -> list[Form]:
    """The described and the added row of a global operation."""
    described = AddressOperand(
        "address",
        bits[31:24],
        ways.offset,
        uniform=ways.uniform,
        descriptor=ways.descriptor,
        shown=bits[101],
        needs_base=ways.needs_base,
    )
    extended = {3: ".64", 2: ".U32", 0: ".U32"}
    added_e = Modifier("E", bits[72] + ways.extend, {3: ".E", 2: ".E", 0: ""}, default=3)
    added = AddressOperand(
        "address", bits[31:24], ways.offset, uniform=ways.uniform, extends=("E", extended), uniform_span=2
    )
    return [
        Form(mnemonic, ways.opcode, MEMORY, latency, build(described), modifiers(DESCRIBED_E), variant=f"{variant}described",
             fixed={bits[91]: 1, ways.extend: 1}, hidden=described.hidden),
        Form(mnemonic, ways.opcode, MEMORY, latency, build(added), modifiers(added_e), variant=f"{variant}added",
             fixed={bits[91]: 1, ways.descriptor: 0}, hidden=added.hidden),
    ]  # fmt: skip


def plain_row(
    mnemonic: str,
    opcode: int,
    latency: str,
    build: Build,
    modifiers: Modifiers,
    offset: Bits = bits[63:40],
    variant: str = "",
) -> Form:
    """The row of a global operation without a uniform register."""
    return Form(
        mnemonic, opcode, MEMORY, latency, build(plain_address(offset=offset)), modifiers(PLAIN_E),
        variant=f"{variant}plain", fixed={bits[91]: 0},
    )  # fmt: skip
