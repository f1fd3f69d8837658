"""Named registers to machine registers: two live at one point never share one.

Pinned registers first, then quads, pairs and singles, each to the lowest aligned place that is free at
all its points; so demand is what the kernel's own overlaps make it.  R253 and R254 are the hardware's.
"""

from __future__ import annotations

from coppelius.builder.draft import Draft
from coppelius.builder.flow import Liveness
from coppelius.builder.registers import FIRST_VIRTUAL, Virtual
from coppelius.isa.refusal import Refusal

LIMITS = {"R": 253, "UR": 63, "P": 7, "UP": 7}


def allocate(
    draft: Draft, *, registers: int = LIMITS["R"], liveness: Liveness | None = None
) -> dict[str, tuple[str, int]]:
    """Place every named register, in the draft's items; returns name -> (space, index).

    `registers`: how many general registers there are; `liveness`: the draft's, where it is known.  Refuses by name
    the one that finds no place.
    """
    limits = LIMITS | {"R": min(registers, LIMITS["R"])}
    liveness = liveness or Liveness(draft)
    busy: dict[str, list[int]] = {space: [0] * limit for space, limit in limits.items()}
    placed: dict[tuple[str, int], int] = {}
    named: dict[str, tuple[str, int]] = {}
    order = sorted(
        (n for n, points in enumerate(liveness.points) if points),
        key=lambda n: (
            draft.names.virtuals[n].pinned is None,
            -draft.names.virtuals[n].width,
            _first(liveness.points[n]),
        ),
    )
    for n in order:
        virtual, points = draft.names.virtuals[n], liveness.points[n]
        file = busy[virtual.space]
        if virtual.pinned is not None:
            choices = range(virtual.pinned, virtual.pinned + 1)
        else:
            choices = range(0, len(file) - virtual.width + 1, virtual.width)
        index = next((c for c in choices if _free(file, c, virtual.width, points)), None)
        if index is None:
            where = f"at {virtual.pinned}" if virtual.pinned is not None else f"among {len(file)}"
            raise Refusal(
                f"{_place(draft, virtual)}register {virtual.name}: no place for {virtual.width} {virtual.space} {where}"
            )
        for i in range(virtual.width):
            file[index + i] |= points
            placed[virtual.space, virtual.first + i] = index + i
        named[virtual.name] = (virtual.space, index)
    _substitute(draft, placed)
    return named


def _place(draft: Draft, virtual: Virtual) -> str:
    """`file:line: ` of its first write, if the draft has one."""
    own = range(virtual.first, virtual.first + virtual.width)
    for item in draft.items:
        if any(touch.space == virtual.space and touch.number in own for touch in item.writes):
            return f"{item.source.file}:{item.source.line}: "
    return ""


def _first(points: int) -> int:
    return (points & -points).bit_length()


def _free(file: list[int], index: int, width: int, points: int) -> bool:
    if index + width > len(file) or file[index] & points:
        return False
    return width == 1 or not any(file[index + i] & points for i in range(1, width))


def _substitute(draft: Draft, placed: dict[tuple[str, int], int]) -> None:
    for item in draft.items:
        for access in item.encoding.accesses:
            column = item.encoding.column[access.field]
            if item.values[column] >= FIRST_VIRTUAL:
                item.values[column] = placed[access.space, item.values[column]]
