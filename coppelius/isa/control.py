"""The control word, bits [124:105]: what the scheduler of a warp obeys, since hardware checks almost nothing.

The stall delays the *next* instruction of the warp.  Bit 109 is "keep issuing": 0 lets another warp in
(printed `Y`), and only then may a stall be 12 to 15; stall 0 drains and needs 0 too.  Six scoreboards
SB0..SB5 are counters, raised by a write barrier (result written) or a read barrier (sources read) and
waited on by a mask.  Reuse flags belong to operands, need bit 109 = 1 and a stall of 1 to 11.

Printed as `[B0-----:R-:W2:Y:S04]`: wait mask, read barrier, write barrier, yield, stall.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from coppelius.isa.bits import Field, bits
from coppelius.isa.refusal import Refusal

NO_BARRIER = 7
BARRIERS = 6
MAX_STALL = 15

_BARRIER_CODES = frozenset((0, 1, 2, 3, 4, 5, NO_BARRIER))

STALL = Field("stall", bits[108:105], default=1)
KEEP = Field("keep", bits[109], default=1)
WRITE_BARRIER = Field("write_barrier", bits[112:110], codes=_BARRIER_CODES, default=NO_BARRIER)
READ_BARRIER = Field("read_barrier", bits[115:113], codes=_BARRIER_CODES, default=NO_BARRIER)
WAIT = Field("wait", bits[121:116])
CONTROL_FIELDS = (STALL, KEEP, WRITE_BARRIER, READ_BARRIER, WAIT)
# their columns: every encoding begins with its guard and the guard's inversion; and none of them set
CONTROL_COLUMNS = slice(2, 7)
NO_CONTROL = (0,) * 5

# nvdisasm refuses keep with stall 0 or 12..15
LEGAL_KEEP = frozenset(range(1, 12))

_TEXT = re.compile(r"^\[B([0-5-]{6}):R([0-5-]):W([0-5-]):([Y-]):S([0-9]{2})\]$")


@dataclass(frozen=True)
class Control:
    """One instruction's control fields; `keep` is bit 109 as stored (False prints `Y`)."""

    stall: int = 1
    keep: bool = True
    write_barrier: int = NO_BARRIER
    read_barrier: int = NO_BARRIER
    wait: int = 0

    def refusal(self) -> str:
        """Why the machine has no such control word, or an empty string."""
        if not 0 <= self.stall <= MAX_STALL:
            return f"stall {self.stall} is not 0..15"
        if self.keep and self.stall not in LEGAL_KEEP:
            return f"stall {self.stall} needs the yield (keep off): only 1..11 go without it"
        for name, barrier in (("write", self.write_barrier), ("read", self.read_barrier)):
            if barrier not in _BARRIER_CODES:
                return f"{name} barrier {barrier} is not 0..5"
        return "" if 0 <= self.wait < 64 else f"wait mask {self.wait:#x} names more than six scoreboards"


def legal_keep(stall: int) -> bool:
    """Whether an instruction may keep issuing (bit 109 = 1) with this stall."""
    return stall in LEGAL_KEEP


_WAITS = tuple("".join(str(n) if mask >> n & 1 else "-" for n in range(6)) for mask in range(64))
_BARRIER_NAMES = "012345?-"


def control_text(stall: int, keep: int, write_barrier: int, read_barrier: int, wait: int) -> str:
    """The five fields as printed in a listing."""
    return (
        f"[B{_WAITS[wait]}:R{_BARRIER_NAMES[read_barrier]}:W{_BARRIER_NAMES[write_barrier]}"
        f":{'-' if keep else 'Y'}:S{stall:02d}]"
    )


def parse_control(text: str) -> Control:
    """Inverse of `control_text`; refuses anything else."""
    match = _TEXT.match(text)
    if not match:
        raise Refusal(f"{text!r} is no control word; it looks like [B0-----:R-:W2:Y:S04]")
    waits, read, write, keep, stall = match.groups()
    if any(c not in ("-", str(n)) for n, c in enumerate(waits)):
        raise Refusal(f"{text!r}: the wait mask names scoreboards in their places, as B0-2---")
    barrier = {"-": NO_BARRIER}
    control = Control(
        int(stall),
        keep == "-",
        barrier[write] if write in barrier else int(write),
        barrier[read] if read in barrier else int(read),
        sum(1 << n for n, c in enumerate(waits) if c != "-"),
    )
    if reason := control.refusal():
        raise Refusal(f"{text!r}: {reason}")
    return control
