"""The core of the kernel language: one UPPER-CASE call emits one instruction, a lower-case call is a macro.

    k.FFMA("sum", a, b, c)            names a new register `sum` and returns it
    k.LDG_E_128("v", k.at(pointer))   underscores are the mnemonic's dots
    with k.when(p): ...               guards what is emitted inside
    with k.region("mean"): ...        names the place in messages
    k.FADD(d, a, b, stall=6)          pins a control field; the checkers judge it like any other
    with k.loop("rows", count): ...   a body so many times, iterations overlapped where that pays (`loops`)

Registers are allocated by lifetime after the whole kernel is built; a pinned one stays where it is put.
Every instruction remembers the innermost kernel file and line that caused it.

Left out: the language has no bindless constants and no calls; write those as listings.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from coppelius.builder.draft import PIN_FIELDS, Draft, Item, Loop, Source
from coppelius.builder.registers import UniformVector, Vector
from coppelius.builder.select import select
from coppelius.isa.control import Control
from coppelius.isa.form import CONTROL
from coppelius.isa.operands import PT, UP, UR, Constant, P, R
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table, sm86

_HERE = str(Path(__file__).resolve().parent)
_ROOT = Path(__file__).resolve().parents[2]


@cache
def _file(name: str) -> str:
    """A source's name in messages and tables."""
    path = Path(name)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name


# names that hold an underscore of their own
_UNDERSCORED = ("PACK_AB", "BF16_V2", "DEFER_BLOCKING", "H_AND", "MERGE_C")


def mnemonic_of(name: str) -> str:
    """`ISETP_GE_U32_AND` -> `ISETP.GE.U32.AND`."""
    for word in _UNDERSCORED:
        name = name.replace(word, word.replace("_", "\0"))
    return name.replace("_", ".").replace("\0", "_")


def _check_pins(mnemonic: str, pins: Mapping[str, int]) -> None:
    """Refuses pins that no control word holds, whatever its other fields are."""
    for name, value in pins.items():
        if name not in PIN_FIELDS:
            raise Refusal(f"{mnemonic}: no control field {name}; fields: {', '.join(sorted(PIN_FIELDS))}")
        if not isinstance(value, int):
            raise Refusal(f"{mnemonic}: {name} {value!r} is no number")
    given: dict[str, Any] = {"keep": False, **pins}
    if reason := Control(**given).refusal():
        raise Refusal(f"{mnemonic}: {reason}")


class Emitter:
    """A kernel being built.  `parameters`: name -> (kind, type, byte offset in constant bank 0)."""

    def __init__(
        self,
        parameters: Mapping[str, tuple[str, str, int]],
        *,
        block_x: int = 0,
        table: Table | None = None,
    ) -> None:
        self.table = table or sm86()
        self.parameters = dict(parameters)
        self.block_x = block_x
        self.draft = Draft()
        self._guard: P | UP = PT
        self._regions: list[str] = []
        self._labels = 0
        self._marks: list[tuple[int, int]] | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name[:1].isupper():
            raise AttributeError(f"the kernel language has no {name!r}")
        mnemonic = mnemonic_of(name)

        def emit(*operands: object, target: str | None = None, guard: P | UP | None = None, **pins: int) -> Any:
            return self.emit(mnemonic, operands, target=target, guard=guard, pins=pins)

        return emit

    def emit(
        self,
        mnemonic: str,
        operands: Sequence[object],
        *,
        target: str | None = None,
        guard: P | UP | None = None,
        pins: Mapping[str, int] | None = None,
    ) -> Any:
        """Emit one instruction; returns the registers it named (one, a tuple, or None)."""
        source = self._source()
        try:
            encoding, values, made = select(self.table, mnemonic, operands, self.draft.names)
            self._apply_guard(encoding, values, guard)
            _check_pins(mnemonic, pins or {})
        except Refusal as refusal:
            raise Refusal(f"{source.file}:{source.line}: {refusal}") from None
        row = list(encoding.defaults)
        for name, value in values.items():
            row[encoding.column[name]] = value
        if target is None and operands and isinstance(operands[-1], str) and encoding.name.startswith(("BRA", "BSSY")):
            target = operands[-1]
        self.draft.items.append(Item(encoding, row, source, target, dict(pins or {})))
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    def _apply_guard(self, encoding: Any, values: dict[str, int], guard: P | UP | None) -> None:
        wanted = guard if guard is not None else self._guard
        if wanted is PT:
            return
        accepted = encoding.guard.accept(wanted)
        if accepted is None:
            raise Refusal(f"{encoding.mnemonic} takes no guard {wanted}")
        values.update(accepted)

    def _source(self) -> Source:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith((_HERE, contextlib.__file__)):
            frame = frame.f_back
        return Source(_file(frame.f_code.co_filename), frame.f_lineno, "/".join(self._regions))

    # names, places, guards -------------------------------------------------

    def register(self, name: str, *, at: int | None = None) -> R:
        """A new named register, pinned to index `at` if given."""
        return self._new("R", name, 1, at)  # type: ignore[return-value]

    def vector(self, name: str, width: int, *, at: int | None = None) -> Vector:
        """A new pair or quad."""
        return self._new("R", name, width, at)  # type: ignore[return-value]

    def predicate(self, name: str, *, at: int | None = None) -> P:
        """A new named predicate."""
        return self._new("P", name, 1, at)  # type: ignore[return-value]

    def uniform(self, name: str, width: int = 1, *, at: int | None = None) -> UR | UniformVector:
        """A new named uniform register or pair."""
        return self._new("UR", name, width, at)  # type: ignore[return-value]

    def _new(self, space: str, name: str, width: int, at: int | None) -> R | UR | P | UP:
        return self.draft.names.new(space, name, width, at)

    def parameter(self, name: str) -> Constant:
        """The constant that holds a kernel parameter (the low word of a pointer)."""
        if name not in self.parameters:
            raise Refusal(f"no parameter {name!r}; the image declares: {', '.join(self.parameters) or 'none'}")
        return Constant(0, self.parameters[name][2])

    def label(self, name: str) -> str:
        """A label that is to be placed once."""
        self._labels += 1
        return f"{name}.{self._labels}"

    def place(self, label: str) -> None:
        """The next instruction is what `label` names."""
        if label in self.draft.labels:
            raise Refusal(f"label {label} is placed twice")
        self.draft.labels[label] = len(self.draft.items)

    @contextmanager
    def when(self, predicate: P | UP) -> Iterator[None]:
        """Guards every instruction emitted inside."""
        if self._guard is not PT:
            raise Refusal("guards do not nest: combine the predicates first (PLOP3)")
        self._guard = predicate
        try:
            yield
        finally:
            self._guard = PT

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        """Names the part of the kernel that the instructions inside belong to."""
        self._regions.append(name)
        try:
            yield
        finally:
            self._regions.pop()

    @contextmanager
    def loop(
        self,
        name: str,
        count: R | int,
        *,
        least: int = 0,
        stages: int | None = None,
        apart: Sequence[str] = (),
        often: int = 8,
    ) -> Iterator[None]:
        """The instructions inside, `count` times; counter and branches are written where the loop is laid out.

        least: iterations that there surely are.  stages: how many are to be under way at once, refused where they do
        not fit; None: as many as pay and fit.  apart: spaces ("global", "shared", "local") in which no iteration
        touches what another writes.  often: the count that orders are judged by.
        Where the body exchanges values between lanes, a warp's counts must be alike.
        """
        source, draft = self._source(), self.draft
        place = f"{source.file}:{source.line}: loop {name}"
        if self._marks is not None:
            raise Refusal(f"{place} stands in another; loops do not nest")
        if self._guard is not PT:
            raise Refusal(f"{place} stands under a guard; branch around it")
        first, labels, self._marks = len(draft.items), set(draft.labels), []
        try:
            yield
        finally:
            marks, self._marks = self._marks, None
        body = draft.items[first:]
        jumps = [item.encoding.mnemonic for item in body if item.encoding.pipe == CONTROL or item.target is not None]
        if jumps or set(draft.labels) - labels:
            raise Refusal(f"{place}: {', '.join(jumps) or 'a label'} in its body; it takes straight code")
        if not body:
            raise Refusal(f"{place} is empty")
        if isinstance(count, int) and count < least:
            raise Refusal(f"{place}: {count} iterations are not {least} or more")
        stage = [0 if not marks else -1] * len(body)
        for at, number in marks:
            stage[at - first :] = [number] * (len(body) - (at - first))
        if min(stage) < 0:
            raise Refusal(f"{place}: {body[stage.index(-1)].encoding.mnemonic} stands before the first stage")
        own = tuple(stage) if marks else ()
        draft.loops.append(Loop(name, first, len(draft.items), count, source, least, stages, own, tuple(apart), often))

    def stage(self, number: int) -> None:
        """What follows in a loop's body belongs to that stage: so many phases after the iteration's first."""
        if self._marks is None:
            raise Refusal(f"stage {number} stands outside of a loop")
        self._marks.append((len(self.draft.items), number))
