"""A hazard: one place where the control bits do not cover a dependence.

It knows the material only: which rule, which two instructions, which register, cycles needed and given,
what to do.  The image's name and the kernel's source line are added where it is reported.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from coppelius.isa.word import WORD_BYTES

# ordinals that stand for "no second instruction"
ALONE = -1


@dataclass(frozen=True, order=True)
class Hazard:
    """`ordinal` is the instruction that comes too early, `cause` the one it depends on (`ALONE`: none)."""

    ordinal: int
    cause: int
    check: str
    rule: str
    register: str
    needed: int
    given: int
    remedy: str
    fact: str

    @property
    def offset(self) -> int:
        """Byte offset of the instruction that comes too early."""
        return self.ordinal * WORD_BYTES

    @property
    def cause_offset(self) -> int | None:
        """Byte offset of the instruction it depends on."""
        return None if self.cause == ALONE else self.cause * WORD_BYTES

    def as_json(self) -> dict[str, object]:
        """JSON-ready, offsets included."""
        return asdict(self) | {"offset": self.offset, "cause_offset": self.cause_offset}


def register_name(key: int) -> str:
    """The name of a register key (see `facts.KEY_BASE`)."""
    for base, prefix in ((528, "B"), (520, "UP"), (512, "P"), (256, "UR")):
        if key >= base:
            return f"{prefix}{key - base}"
    return f"R{key}"


@dataclass(frozen=True, order=True)
class Note:
    """Something worth knowing that is no hazard."""

    ordinal: int
    rule: str
    fact: str

    def as_json(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self) | {"offset": self.ordinal * WORD_BYTES}
