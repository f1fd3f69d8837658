"""Several lanes of a thread stepped side by side, so that one lane's results arrive while the others issue.

`Together` answers like the kernel, but a value is one register (or predicate) a lane and a call emits the
instruction for each lane in turn; what all lanes share (constants, numbers, single registers) is given as it
is.  The same function then writes one lane or several: how many is a matter of registers.
"""

from __future__ import annotations

from typing import Any

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import Constant


class Lanes(tuple[Any, ...]):
    """One operand a lane."""

    __slots__ = ()

    def __neg__(self) -> Lanes:
        return Lanes(-value for value in self)

    def __invert__(self) -> Lanes:
        return Lanes(~value for value in self)

    def __abs__(self) -> Lanes:
        return Lanes(abs(value) for value in self)


class Together:
    """The kernel for `count` lanes at once."""

    def __init__(self, kernel: Kernel, count: int) -> None:
        self._kernel = kernel
        self._count = count

    def parameter(self, name: str) -> Constant:
        """The same for all lanes."""
        made: Constant = self._kernel.parameter(name)
        return made

    def __getattr__(self, call: str) -> Any:
        emit = getattr(self._kernel, call)

        def each(*operands: Any, **keywords: Any) -> Lanes:
            return Lanes(
                emit(*(_of(o, n) for o in operands), **{key: _of(o, n) for key, o in keywords.items()})
                for n in range(self._count)
            )

        return each


def _of(operand: Any, lane: int) -> Any:
    return operand[lane] if isinstance(operand, Lanes) else operand
