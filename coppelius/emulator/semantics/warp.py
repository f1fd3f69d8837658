"""Lanes of one warp together: shuffles, votes, matches, reductions.

They see the lanes that execute the instruction together.  A shuffle that reads a lane which does not take
part gets what that lane's register holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import LANES, Bools, Group, ballot
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes

Array = npt.NDArray[Any]
_LANE = np.arange(LANES, dtype=np.int32)


@executes("SHFL")
def shfl(op: Operation) -> Step:
    """The lane chosen inside a segment (# published: PTX shfl); out of range gives the own value."""
    a, b, c, d, inside = op.word("A"), op.word("B"), op.word("C"), op.destination(), op.destination_predicate("Pd")
    mode = op.suffix("MODE")

    def step(g: Group) -> None:
        value = np.broadcast_to(a(g), (g.count, LANES))
        source, good = shuffle_source(mode, b(g), c(g))
        if source.shape[0] == 1:
            result = value[:, source[0]]
        else:
            result = np.take_along_axis(value, source.astype(np.intp), axis=1)
        d(g, result)
        inside(g, good)

    return step


def shuffle_source(mode: str, b: Array, c: Array) -> tuple[Array, Bools]:
    """(lane to read, whether it is in range), `[1 or warps, 32]`."""
    bval, cval = (b & np.uint32(31)).astype(np.int32), (c & np.uint32(31)).astype(np.int32)
    segment = (c >> np.uint32(8) & np.uint32(31)).astype(np.int32)
    low = _LANE & segment
    most = low | (cval & ~segment)
    if mode == "UP":
        lane = _LANE - bval
        good = lane >= most
    else:
        lane = {"DOWN": _LANE + bval, "BFLY": _LANE ^ bval}.get(mode, low | (bval & ~segment))
        good = lane <= most
    return np.where(good, lane, _LANE), good


@executes("VOTE", "VOTEU")
def vote(op: Operation) -> Step:
    p, d, truth = op.predicate("Ps"), op.destination(), op.destination_predicate("Pd")
    mode = op.suffix("MODE")

    def step(g: Group) -> None:
        active = g.active
        yes = active & p(g)
        everyone, anyone = (yes == active).all(axis=1, keepdims=True), yes.any(axis=1, keepdims=True)
        result = {"ANY": anyone, "EQ": everyone | ~anyone}.get(mode, everyone)
        d(g, ballot(yes).reshape(-1, 1))
        truth(g, result)

    return step


@executes("MATCH")
def match(op: Operation) -> Step:
    """ANY: the lanes with the same value; ALL: all of them if the values agree, and whether."""
    wide = op.suffix("SIZE") == "U64"
    a, d, truth = op.integer64("A") if wide else op.word("A"), op.destination(), op.destination_predicate("Pd")
    every = op.suffix("MODE") != "ANY"

    def step(g: Group) -> None:
        value, active = np.broadcast_to(a(g), (g.count, LANES)), g.active
        same = (value[:, :, None] == value[:, None, :]) & active[:, None, :]
        mask = ballot(same.reshape(-1, LANES)).reshape(g.count, LANES)
        if every:
            whole = mask == ballot(active).reshape(-1, 1)
            truth(g, whole)
            mask = np.where(whole, mask, np.uint32(0))
        d(g, mask)

    return step


_IDENTITY: dict[str, tuple[Callable[..., Array], int, int]] = {
    "AND": (np.bitwise_and.reduce, 0xFFFFFFFF, -1),
    "OR": (np.bitwise_or.reduce, 0, 0),
    "XOR": (np.bitwise_xor.reduce, 0, 0),
    "SUM": (np.add.reduce, 0, 0),
    "MIN": (np.minimum.reduce, 0xFFFFFFFF, 0x7FFFFFFF),
    "MAX": (np.maximum.reduce, 0, -0x80000000),
}


@executes("REDUX")
def redux(op: Operation) -> Step:
    a, d = op.word("A"), op.destination()
    signed = op.suffix("S32") == "S32"
    reduce, identity, signed_identity = _IDENTITY[op.suffix("OP") or "AND"]
    kind = np.int32 if signed else np.uint32
    neutral = kind(signed_identity if signed else identity)

    def step(g: Group) -> None:
        value = np.broadcast_to(a(g), (g.count, LANES)).view(kind)
        chosen = value if g.mask is None else np.where(g.mask, value, neutral)
        d(g, reduce(chosen, axis=1, keepdims=True, dtype=kind).view(np.uint32))

    return step
