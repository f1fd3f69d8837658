"""Atomics: lanes that name one word take their turns in lane order, warps in order.

Integers wrap; INC and DEC wrap at the operand; float adds round to nearest, f32 flushing subnormals
(.FTZ).  The old value goes to D; RED has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator import spaces
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.numerics import float32, float64, half
from coppelius.emulator.numerics.rounding import BF16, F16, Format
from coppelius.emulator.operation import TRUE, Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared_access import address_of
from coppelius.isa.refusal import Refusal

Array = npt.NDArray[Any]
Combine = Callable[[Array, Array], Array]


def _increment(old: Array, bound: Array) -> Array:
    zero, one = old.dtype.type(0), old.dtype.type(1)
    result: Array = np.where(old >= bound, zero, old + one)
    return result


def _decrement(old: Array, bound: Array) -> Array:
    return np.where((old == 0) | (old > bound), bound, old - old.dtype.type(1))


def _exchange(old: Array, new: Array) -> Array:  # noqa: ARG001 - the shape all combinations share
    return new


_INTEGER: dict[str, Combine] = {
    "ADD": np.add,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "INC": _increment,
    "DEC": _decrement,
    "EXCH": _exchange,
}


def _add_halves(old: Array, value: Array, fmt: Format) -> Array:
    a, b = old.view(np.uint16), value.view(np.uint16)
    low, high = (half.add(a[k::2], b[k::2], fmt) for k in (0, 1))
    packed: Array = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    return packed


def combination(name: str, kind: str) -> tuple[Combine, int]:
    """(old, operand) -> new on unsigned words, and their bytes."""
    if kind.startswith("F32"):
        return lambda old, new: float32.add(old, new, ftz="FTZ" in kind), 4
    if kind.startswith("F64"):
        return float64.add, 8
    if kind.startswith(("F16", "BF16")):
        fmt = F16 if kind.startswith("F16") else BF16
        return lambda old, new: _add_halves(np.ascontiguousarray(old), np.ascontiguousarray(new), fmt), 4
    size = 8 if "64" in kind else 4
    if name not in _INTEGER:
        raise Refusal(f"the emulator has no meaning for the atomic operation {name} of {kind}")
    plain = _INTEGER[name]
    if kind.startswith("S") and name in ("MIN", "MAX"):
        signed = np.int64 if size == 8 else np.int32
        return lambda old, new: plain(old.view(signed), new.view(signed)).view(old.dtype), size
    return plain, size


def take_turns(view: Array, index: Array, combine: Combine, value: Array, compare: Array | None = None) -> Array:
    """Applies one lane after another where they meet; the value each lane found."""
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    starts = np.flatnonzero(np.diff(ranked, prepend=ranked[0] - 1))
    lengths = np.diff(np.append(starts, len(ranked)))
    if compare is None and isinstance(combine, np.ufunc) and int(lengths.max()) > 8 * len(starts):
        return _accumulate(view, ranked, order, starts, lengths, combine, value)
    rank = np.arange(len(ranked)) - np.repeat(starts, lengths)
    old = np.empty_like(value)
    for turn in range(int(lengths.max())):
        now = order[rank == turn]
        here = index[now]
        before = view[here]
        old[now] = before
        after = combine(before, value[now])
        view[here] = after if compare is None else np.where(before == compare[now], value[now], before)
    return old


def _accumulate(
    view: Array, ranked: Array, order: Array, starts: Array, lengths: Array, combine: np.ufunc, value: Array
) -> Array:
    """Many lanes on few words: a running total a word."""
    old = np.empty_like(value)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        lanes = order[start : start + length]
        place = ranked[start]
        totals = combine.accumulate(np.concatenate((view[place : place + 1], value[lanes])), dtype=value.dtype)
        old[lanes] = totals[:-1]
        view[place] = totals[-1]
    return old


Apply = Callable[[Group, Array, Array, "Array | None"], Array]


def _on(op: Operation, space: str, combine: Combine, size: int, *, everywhere: bool = True) -> Apply:
    """(group, address, operand, compare), each `[warps, 32]`, -> old values, of all spaces or global alone."""

    def apply(g: Group, address: Array, value: Array, compare: Array | None) -> Array:
        flat, operand = spaces.flatten(g, address), spaces.flatten(g, value)
        expected = None if compare is None else spaces.flatten(g, compare)
        old = np.zeros(len(flat), operand.dtype)
        for view, index, where in spaces.words(op, space, g, flat, size):
            chosen = slice(None) if where is None else where
            wanted = None if expected is None else expected[chosen]
            old[chosen] = take_turns(view, index, combine, operand[chosen], wanted)
        return spaces.unflatten(g, old)

    if space != "generic":
        return apply

    def anywhere(g: Group, address: Array, value: Array, compare: Array | None) -> Array:
        old = np.zeros((g.count, LANES), value.dtype)
        for name, part, local in spaces.by_space(g, address):
            if name != "global" and not everywhere:
                continue
            np.copyto(old, _on(op, name, combine, size)(part, local, value, compare), where=part.active)
        return old

    return anywhere


def _space(op: Operation) -> str:
    stem = op.mnemonic.split(".")[0]
    return {"ATOMS": "shared", "ATOM": "generic"}.get(stem, "global")


def _bind(op: Operation, name: str, kind: str, *, compare: bool = False) -> Step:
    combine, size = combination(name, kind) if not compare else (_INTEGER["EXCH"], 8 if "64" in kind else 4)
    space = _space(op)
    address = address_of(op, wide=space != "shared")
    everywhere = not kind.startswith("F")
    apply = _on(op, space, combine, size, everywhere=everywhere)
    done = op.destination_predicate("Pd")
    read = op.integer64 if size == 8 else op.word
    expected = read("data") if compare else None
    data = read("new" if compare else "data")
    d = None if not op.has("D") else op.destination64() if size == 8 else op.destination()

    tells = name.startswith("CAST")

    def step(g: Group) -> None:
        value = np.ascontiguousarray(np.broadcast_to(data(g), (g.count, LANES)))
        wanted = None if expected is None else np.ascontiguousarray(np.broadcast_to(expected(g), value.shape))
        at = address(g)
        old = apply(g, at, value, wanted)
        done(g, TRUE if everywhere else ~spaces.in_window(at))
        if d is not None:
            d(g, (old == wanted).astype(old.dtype) if tells else old)

    return step


@executes("RED", "REDG", "ATOM", "ATOMG", "ATOMS")
def atomic(op: Operation) -> Step:
    """With a compare operand: a swap; of .CAST, D is 1 where it was done, else 0.

    Float operands at generic addresses work in global memory alone; Pd says where (# read from ptxas's fallback).
    """
    op.ignore(".CAS")
    return _bind(op, op.suffix("OP"), op.suffix("TYPE") or "U32", compare=op.has("new"))


@executes("ATOMS.POPC.INC.32")
def count(op: Operation) -> Step:
    """Adds one for every active lane that names the word."""
    address, d = address_of(op, wide=False), op.destination()
    apply = _on(op, "shared", np.add, 4)

    def step(g: Group) -> None:
        ones = np.ones((g.count, LANES), np.uint32)
        d(g, apply(g, np.broadcast_to(address(g), ones.shape), ones, None))

    return step
