"""Macros: lower-case verbs of the kernel language, each a few instructions that every kernel needs.

Addresses are 64-bit pairs: base pointer plus index times element size, one IMAD.WIDE.  Global accesses
go through the descriptor that the driver leaves in constant bank 0 at 0x118, as compiled code does.
"""

from __future__ import annotations

import struct

from coppelius.builder.emitter import Emitter
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, UR, Address, Constant, P, R, Special

DESCRIPTOR = Constant(0, 0x118)  # facts 2.7: every compiled sm_86 kernel loads it


class Kernel(Emitter):
    """A kernel being built: single instructions of `Emitter`, and these macros."""

    _descriptor: UR | None = None

    def descriptor(self) -> UR:
        """The memory descriptor's uniform pair, loaded where it is first asked for (ask before any branch)."""
        if self._descriptor is None:
            self._descriptor = self.emit("ULDC.64", ("descriptor", DESCRIPTOR), guard=PT)
        return self._descriptor

    def at(self, pointer: Vector | R, offset: int = 0) -> Address:
        """The global address `[pointer + offset]`."""
        return Address(R(pointer.index), offset, self.descriptor(), wide=True, descriptor=True)

    def thread_index(self, name: str = "thread") -> R:
        """threadIdx.x."""
        made: R = self.S2R(name, Special("SR_TID.X"))
        return made

    def block_index(self, name: str = "block", axis: str = "X") -> R:
        """blockIdx of that axis."""
        made: R = self.S2R(name, Special(f"SR_CTAID.{axis}"))
        return made

    def element(self, name: str, base: str, index: R, size: int | R) -> Vector:
        """The address of element `index` (u32) of the buffer that parameter `base` points to."""
        made: Vector = self.offset_pointer(name, self.parameter(base), index, size)
        return made

    def offset_pointer(self, name: str, base: Constant | Vector, index: R, size: int | R) -> Vector:
        """`base + index * size` as a 64-bit pair, `index` unsigned; a `size` that several share is a register."""
        # a word of an instruction holds a constant or a number, not both
        if isinstance(base, Constant) and not isinstance(size, R):
            size = self.size(f"{name}.size", size)
        made: Vector = self.IMAD_WIDE_U32(name, index, size, base)
        return made

    def size(self, name: str, size: int) -> R:
        """An element's size in a register (the pipe that multiplies has more room than the one that moves)."""
        made: R = self.IMAD_MOV_U32(name, RZ, RZ, size)
        return made

    def compare(self, name: str, relation: str, a: R, b: object, *, unsigned: bool = True) -> P:
        """Integer comparison into a new predicate: `relation` is LT, LE, EQ, NE, GE or GT."""
        sign = ".U32" if unsigned else ""
        made: P = self.emit(f"ISETP.{relation}{sign}.AND", (name, PT, a, b, PT))
        return made

    def compare_f32(self, name: str, relation: str, a: R, b: object) -> P:
        """Float comparison into a new predicate: LT, EQ, ... are false for NaN; NEU, GEU, ... true."""
        made: P = self.emit(f"FSETP.{relation}.AND", (name, PT, a, b, PT))
        return made

    def exit_when(self, predicate: P) -> None:
        """Lanes for which it holds leave."""
        self.EXIT(guard=predicate)

    def move(self, name: str, value: object) -> R:
        """A register that holds a register, constant or number; a float as the bits of its f32."""
        if isinstance(value, float):
            value = struct.unpack("<I", struct.pack("<f", value))[0]
        made: R = self.MOV(name, value)
        return made

    def zero(self, name: str) -> R:
        """A register that holds zero."""
        made: R = self.MOV(name, RZ)
        return made

    def shuffle_xor(self, name: str, value: R, lanes: int) -> R:
        """The value of the lane whose number differs in the bits of `lanes`."""
        made: R = self.SHFL_BFLY(PT, name, value, lanes, 0x1F)
        return made

    def finish(self) -> None:
        """The end every kernel has: EXIT, and the branch to itself that stops instruction fetch."""
        self.EXIT()
        end = self.label("end")
        self.place(end)
        self.BRA(end, stall=0, keep=0)
