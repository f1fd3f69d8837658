"""How far each image's outputs lie from their reference: a comparison an output, over what was written.

All of it after a whole launch; after some blocks, the elements that those wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coppelius import model
from coppelius.isa.refusal import Refusal
from coppelius.reference import (
    adamw,
    attention,
    bounds,
    cross_entropy,
    gated_gelu,
    head_layout,
    layernorm,
    random_normal,
    rotary_table,
    softmax,
)
from coppelius.reference import half as halves
from coppelius.reference.bounds import Measured

Array = NDArray[Any]
Given = dict[str, Any]
H, SCALE = model.HEADS, model.ATTENTION_SCALE
Judged = Iterator[tuple[str, Measured]]
Judge = Callable[["Outcome"], Judged]


@dataclass(frozen=True)
class Outcome:
    """A launch's inputs and outputs, and which elements of each output were written."""

    given: Given
    out: Mapping[str, Array]
    written: Mapping[str, NDArray[np.bool_]]
    half: str

    def wide(self, name: str) -> NDArray[np.float64]:
        """Halves as float64."""
        source = self.given[name] if name in self.given else self.out[name]
        return halves.from_bits(source, self.half)

    def elements(
        self, name: str, rule: Callable[..., Measured], reference: ArrayLike, *more: Any, **how: Any
    ) -> Measured:
        """The rule over the written elements; further arrays that it takes are per element."""
        mask = self.written[name]
        chosen = [np.broadcast_to(np.asarray(a), mask.shape)[mask] if np.ndim(a) else a for a in (reference, *more)]
        return rule(np.ascontiguousarray(self.out[name][mask]), *chosen, **how)

    def rows(
        self, name: str, rule: Callable[..., Measured], reference: Array, *more: Any, widen: bool = False
    ) -> Measured:
        """The rule over the rows that were written whole; further arrays hold a number a row."""
        mask = self.written[name]
        whole = mask.all(axis=-1)
        if whole.sum() * mask.shape[-1] != mask.sum():
            raise Refusal(f"{name}: a row was written in part")
        got = self.wide(name) if widen else self.out[name]
        return rule(got[whole], reference[whole], *(a[whole] if isinstance(a, np.ndarray) else a for a in more))


def exactly(name: str, reference: Callable[[Given, str], Array], *, halves_out: bool = False) -> Judge:
    """The same bits; any NaN answers a NaN."""

    def judge(o: Outcome) -> Judged:
        kind = o.half if halves_out else ("f32" if o.out[name].dtype == np.float32 else "")
        wanted = np.ascontiguousarray(reference(o.given, o.half), o.out[name].dtype)
        mask = o.written[name]
        yield name, bounds.exact_bits(o.out[name][mask], wanted[mask], nan=kind)

    return judge


def judge_random_normal(o: Outcome) -> Judged:
    wanted = random_normal.random_normal(o.given["count"], o.given["std"], o.given["seed"], o.given["stream"])
    yield "out", o.elements("out", bounds.absolute, wanted.values, wanted.bound)


def judge_rotary_table(o: Outcome) -> Judged:
    wanted = rotary_table.rotary_table(o.given["frequencies"], o.given["positions"])
    yield "out", o.elements("out", bounds.absolute, wanted, rotary_table.ERROR)


def judge_gated_gelu_forward(o: Outcome) -> Judged:
    yield "out", _half(o, "out", gated_gelu.gated_gelu_forward(o.given["gate"], o.given["up"]))


def judge_gated_gelu_backward(o: Outcome) -> Judged:
    wanted = gated_gelu.gated_gelu_backward(o.given["dout"], o.given["gate"], o.given["up"])
    yield "dgate", _half(o, "dgate", wanted.dgate, wanted.dgate_terms)
    yield "dup", _half(o, "dup", wanted.dup)


def _half(o: Outcome, name: str, reference: ArrayLike, terms: Any = None) -> Measured:
    if terms is None:
        return o.elements(name, bounds.half_output, reference, half=o.half)
    return o.elements(name, lambda got, wanted, met: bounds.half_output(got, wanted, o.half, met), reference, terms)


def judge_adamw(o: Outcome) -> Judged:
    mask = o.written["half_copy"]
    # the state before the launch is kept beside it: the launch writes in place
    p, m, v, g = (o.given[name][mask] for name in ("p before", "m before", "v before", "g"))
    scalars = adamw.Scalars(**{field.name: o.given[field.name] for field in fields(adamw.Scalars)})
    wanted = adamw.adamw(p, m, v, g, scalars)
    new = {name: o.out[name][mask] for name in ("p", "m", "v", "half_copy")}
    yield "p", bounds.elementwise_f32(new["p"], wanted.p, wanted.p_terms)
    yield "m", bounds.elementwise_f32(new["m"], wanted.m, wanted.m_terms)
    yield "v", bounds.elementwise_f32(new["v"], wanted.v, ulps=4)
    yield "half_copy", bounds.exact_bits(new["half_copy"], halves.to_bits(new["p"], o.half))


def judge_layernorm_forward(o: Outcome) -> Judged:
    x = o.given["x"]
    wanted = layernorm.layernorm_forward(x, o.given["gain"], o.given["bias"], o.given["epsilon"])
    yield "out", _half(o, "out", wanted.out, wanted.terms)
    yield "mean", o.elements("mean", bounds.row_reduction, wanted.mean, np.abs(x).max(axis=1))
    yield "rstd", o.elements("rstd", bounds.row_reduction, wanted.rstd)


def judge_layernorm_backward(o: Outcome) -> Judged:
    wanted = layernorm.layernorm_backward(*(o.given[name] for name in ("dy", "x", "mean", "rstd", "gain")))
    yield "dx", o.rows("dx", bounds.row_reduction, wanted)


def judge_layernorm_parameters(o: Outcome) -> Judged:
    wanted = layernorm.layernorm_parameters(*(o.given[name] for name in ("dy", "x", "mean", "rstd")))
    yield "dgain", o.elements("dgain", bounds.column_sum, wanted.dgain, wanted.dgain_magnitude)
    yield "dbias", o.elements("dbias", bounds.column_sum, wanted.dbias, wanted.dbias_magnitude)


def judge_cross_entropy(o: Outcome) -> Judged:
    wanted = cross_entropy.cross_entropy(o.given["logits"], o.given["targets"])
    for name, values in (("loss", wanted.loss), ("lse", wanted.lse)):
        yield name, o.elements(name, bounds.row_reduction, values, wanted.magnitude)


def judge_cross_entropy_backward(o: Outcome) -> Judged:
    wanted = cross_entropy.cross_entropy_backward(*(o.given[name] for name in ("logits", "lse", "targets", "scale")))
    yield "dlogits", _half(o, "dlogits", wanted.dlogits, wanted.terms)


def judge_softmax_forward(o: Outcome) -> Judged:
    yield "probs", _half(o, "probs", softmax.softmax_forward(o.given["scores"], SCALE))


def judge_softmax_backward(o: Outcome) -> Judged:
    wanted = softmax.softmax_backward(o.given["dprobs"], o.wide("probs"), SCALE)
    yield "dscores", _half(o, "dscores", wanted.dscores, wanted.terms)


def judge_qk_rope(o: Outcome) -> Judged:
    for name, wanted in zip("qk", head_layout.qk_rope(o.given["qkv"], o.given["table"], H), strict=True):
        yield name, _half(o, name, wanted.values, wanted.terms)


def judge_inverse_rope_qkv(o: Outcome) -> Judged:
    wanted = head_layout.inverse_rope_qkv(*(o.given[name] for name in ("dq", "dk", "dv", "table")))
    yield "dqkv", _half(o, "dqkv", wanted.values, wanted.terms)


def judge_attention_forward(o: Outcome) -> Judged:
    wanted = attention.attention_forward(o.wide("q"), o.wide("k"), np.swapaxes(o.wide("vt"), -1, -2), SCALE)
    yield "out", o.rows("out", bounds.attention, wanted.out, o.half, widen=True)
    yield "lse", o.elements("lse", bounds.attention_statistics, wanted.lse)


def judge_attention_query(o: Outcome) -> Judged:
    q, k, v, out, dout = (o.wide(name) for name in ("q", "k", "v", "out", "dout"))
    wanted = attention.attention_query(q, k, v, out, dout, o.given["lse"], SCALE)
    yield "dq", o.rows("dq", bounds.attention, wanted.dq, o.half)
    yield "delta", o.elements("delta", bounds.attention_statistics, wanted.delta)


def judge_attention_key(o: Outcome) -> Judged:
    q, k, v, dout = (o.wide(name) for name in ("q", "k", "v", "dout"))
    wanted = attention.attention_key(q, k, v, dout, o.given["lse"], o.given["delta"], SCALE)
    yield "dk", o.rows("dk", bounds.attention, wanted.dk, o.half)
    yield "dv", o.rows("dv", bounds.attention, wanted.dv, o.half)
