"""What each image is tried with: seeded inputs of the model's own sizes; an output is what is not given.

Left out: hostile inputs, other sizes and counts; those are the tests'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius import model
from coppelius.cli import judges
from coppelius.cli.judges import Judge, Judged, Outcome
from coppelius.isa.refusal import Refusal
from coppelius.reference import (
    adamw,
    attention,
    bounds,
    cross_entropy,
    embedding_scatter,
    layernorm,
    loss_target_gather,
    product,
    rotary_table,
    softmax,
)
from coppelius.reference import half as halves

Array = NDArray[Any]
Given = dict[str, Any]
S, W, H, D, V = model.SEQUENCE, model.WIDTH, model.HEADS, model.HEAD_WIDTH, model.VOCABULARY
COUNT = 100_003  # not whole quads, not whole blocks
SCALE = model.ATTENTION_SCALE


class Trial(NamedTuple):
    """`inputs`: arrays, scalars; `in_place`: inputs that are outputs, too."""

    inputs: Callable[[np.random.Generator, str], Given]
    judge: Judge
    in_place: tuple[str, ...] = ()


def trial_of(identity: str) -> Trial:
    """The image's trial; refuses an image without one."""
    if identity in TRIALS:
        return TRIALS[identity]
    if identity.startswith("tiled-"):
        return _product_trial(identity)
    raise Refusal(f"image {identity!r} has no trial yet; trials are listed in coppelius/cli/trials.py")


def _normal(random: np.random.Generator, *shape: int, size: float = 1.0) -> NDArray[np.float32]:
    return (random.standard_normal(shape) * size).astype(np.float32)


def _halves(random: np.random.Generator, half: str, *shape: int) -> Array:
    return halves.to_bits(random.standard_normal(shape), half)


def _swapped(a: Array) -> Array:
    return np.ascontiguousarray(np.swapaxes(a, -1, -2))


# moves and elementwise ---------------------------------------------------------------------------------


def _counted(*names: str, **scalars: Any) -> Callable[..., Given]:
    return lambda random, _: {n: _normal(random, COUNT, size=8.0) for n in names} | {"count": COUNT} | scalars


def _frequencies(_random: np.random.Generator, _half: str) -> Given:
    return {"frequencies": rotary_table.model_frequencies(), "positions": S}


_SCALARS = adamw.Scalars(1e-3, 0.9, 0.999, 1e-8, 0.01, 1 / (1 - 0.9**3), 1 / (1 - 0.999**3), 1 / 3)


def _bank(random: np.random.Generator, _half: str) -> Given:
    sizes = {"p": 0.02, "m": 1e-3, "v": 1e-3, "g": 3e-3}
    made = {n: random.standard_normal(model.PARAMETERS, np.float32) * np.float32(s) for n, s in sizes.items()}
    made["v"] *= made["v"]
    return made | asdict(_SCALARS)


# rows --------------------------------------------------------------------------------------------------


def _rows(*names: str, statistics: bool = False) -> Callable[..., Given]:
    def inputs(random: np.random.Generator, _half: str) -> Given:
        given: Given = {name: _normal(random, S, W) for name in names}
        if statistics:
            forward = layernorm.layernorm_forward(given["x"], np.ones(W), np.zeros(W), model.LAYERNORM_EPSILON)
            given |= {"mean": forward.mean.astype(np.float32), "rstd": forward.rstd.astype(np.float32)}
        return given

    return inputs


def _logits(random: np.random.Generator, half: str) -> Given:  # noqa: ARG001
    targets = random.integers(0, V, S, dtype=np.uint32)
    targets[::16] = V
    return {"logits": random.standard_normal((S, V), np.float32) * np.float32(3), "targets": targets}


def _losses(random: np.random.Generator, half: str) -> Given:
    given = _logits(random, half)
    lse = cross_entropy.cross_entropy(given["logits"], given["targets"]).lse.astype(np.float32)
    return given | {"lse": lse, "scale": 1 / S}


def _probabilities(random: np.random.Generator, half: str) -> Given:
    probs = halves.to_bits(softmax.softmax_forward(_normal(random, 2, S, S, size=8.0), SCALE), half)
    return {"dprobs": _normal(random, 2, S, S), "probs": probs, "scale": SCALE}


# heads -------------------------------------------------------------------------------------------------


def _angles() -> Array:
    return rotary_table.rotary_table(rotary_table.model_frequencies(), S).astype(np.float32)


def _attention_inputs(kind: str) -> Callable[..., Given]:
    def inputs(random: np.random.Generator, half: str) -> Given:
        q, k, v, dout = (_halves(random, half, H, S, D) for _ in range(4))
        shared: Given = {"q": q, "k": k, "scale": SCALE}
        if kind == "forward":
            return shared | {"vt": _swapped(v)}
        wide = [halves.from_bits(a, half) for a in (q, k, v, dout)]
        forward = attention.attention_forward(wide[0], wide[1], wide[2], SCALE)
        out = halves.to_bits(forward.out, half)
        shared |= {"v": v, "dout": dout, "lse": forward.lse.astype(np.float32)}
        if kind == "query":
            return shared | {"kt": _swapped(k), "out": out}
        delta = (halves.from_bits(out, half) * wide[3]).sum(axis=-1).astype(np.float32)
        return shared | {"qt": _swapped(q), "doutt": _swapped(dout), "delta": delta}

    return inputs


# products ----------------------------------------------------------------------------------------------


def _product_trial(identity: str) -> Trial:
    """By the name: layouts, m, n, k, and whether something is added."""
    _, layouts, *sizes = identity.split("-")
    m, n, k = (int(size[1:]) for size in sizes[:3])
    residual = sizes[3:] == ["add"]

    def inputs(random: np.random.Generator, half: str) -> Given:
        a = _halves(random, half, *((m, k) if layouts[0] == "r" else (k, m)))
        b = _halves(random, half, *((n, k) if layouts[1] == "r" else (k, n)))
        return {"a": a, "b": b} | ({"r": _normal(random, m, n)} if residual else {})

    def judge(o: Outcome) -> Judged:
        wanted = product.product(o.wide("a"), o.wide("b"), layouts, o.given.get("r"))
        mask = o.written["c"]
        # of some tiles the rows are not whole: then all that was written counts as one
        got, reference = (x if mask.all() else x[mask][None] for x in (o.out["c"], wanted))
        norm, element = bounds.product(got, reference, k)
        yield "c", norm
        yield "c", element

    return Trial(inputs, judge)


# fmt: off
TRIALS: dict[str, Trial] = {
    "random-normal": Trial(lambda *_: {"count": COUNT, "std": 0.02, "seed": 0x123456789ABCDEF, "stream": 3},
                           judges.judge_random_normal),
    "rotary-table": Trial(_frequencies, judges.judge_rotary_table),
    "fill": Trial(lambda *_: {"count": COUNT, "value": 0xDEADBEEF},
                  judges.exactly("out", lambda given, _: np.full(COUNT, given["value"]))),
    "copy": Trial(lambda random, _: {"source": random.integers(0, 1 << 32, COUNT, dtype=np.uint32), "count": COUNT},
                  judges.exactly("out", lambda given, _: given["source"])),
    "cast-down": Trial(_counted("source"),
                       judges.exactly("out", lambda given, half: halves.to_bits(given["source"], half),
                                      halves_out=True)),
    "cast-up": Trial(lambda random, half: {"source": _halves(random, half, COUNT), "count": COUNT},
                     judges.exactly("out", lambda given, half: halves.from_bits(given["source"], half))),
    "add": Trial(_counted("a", "b"), judges.exactly("out", lambda given, _: given["a"] + given["b"])),
    "scale": Trial(_counted("a", factor=1.7), judges.exactly("out", lambda given, _: given["a"] * np.float32(1.7))),
    "argmax": Trial(lambda random, half: {"logits": _logits(random, half)["logits"]},
                    judges.exactly("out", lambda given, _: given["logits"].argmax(axis=1))),
    "gather": Trial(lambda random, _: {"table": _normal(random, V, W), "vocabulary": V,
                                       "tokens": random.integers(0, V, S, dtype=np.uint32)},
                    judges.exactly("out", lambda given, _: given["table"][given["tokens"]])),
    "layernorm-forward": Trial(lambda random, half: _rows("x")(random, half) | {
        "gain": _normal(random, W), "bias": _normal(random, W), "epsilon": model.LAYERNORM_EPSILON},
                               judges.judge_layernorm_forward),
    "qk-rope": Trial(lambda random, _: {"qkv": _normal(random, S, 3 * W), "table": _angles()}, judges.judge_qk_rope),
    "value-transpose": Trial(lambda random, _: {"qkv": _normal(random, S, 3 * W)},
                             judges.exactly("vt", lambda given, half: halves.to_bits(
                                 given["qkv"][:, 2 * W:].reshape(S, H, D).transpose(1, 2, 0), half), halves_out=True)),
    "head-to-token": Trial(lambda random, half: {"heads": _halves(random, half, H, S, D)},
                           judges.exactly("out", lambda given, _: given["heads"].transpose(1, 0, 2).reshape(S, W))),
    "token-to-head": Trial(lambda random, _: {"tokens": _normal(random, S, W)},
                           judges.exactly("out", lambda given, half: halves.to_bits(
                               given["tokens"].reshape(S, H, D).transpose(1, 0, 2), half), halves_out=True)),
    "inverse-rope-qkv": Trial(lambda random, _: {n: _normal(random, H, S, D) for n in ("dq", "dk", "dv")}
                              | {"table": _angles()}, judges.judge_inverse_rope_qkv),
    "softmax-forward": Trial(lambda random, _: {"scores": _normal(random, 2, S, S, size=8.0), "scale": SCALE},
                             judges.judge_softmax_forward),
    "softmax-backward": Trial(_probabilities, judges.judge_softmax_backward),
    "layernorm-backward": Trial(lambda random, half: _rows("dy", "x", statistics=True)(random, half)
                                | {"gain": _normal(random, W)}, judges.judge_layernorm_backward),
    "layernorm-parameters": Trial(lambda random, half: _rows("dy", "x", statistics=True)(random, half) | {"rows": S},
                                  judges.judge_layernorm_parameters),
    "cross-entropy": Trial(_logits, judges.judge_cross_entropy),
    "cross-entropy-backward": Trial(_losses, judges.judge_cross_entropy_backward),
    "embedding-scatter": Trial(lambda random, _: {"dtable": _normal(random, V, W), "drows": _normal(random, S, W),
                                                  "tokens": random.integers(0, 700, S, dtype=np.uint32)},
                               judges.exactly("dtable", lambda given, _: _scattered(given)), ("dtable",)),
    "adamw": Trial(_bank, judges.judge_adamw, ("p", "m", "v")),
    "gated-gelu-forward": Trial(_counted("gate", "up"), judges.judge_gated_gelu_forward),
    "gated-gelu-backward": Trial(_counted("dout", "gate", "up"), judges.judge_gated_gelu_backward),
    "transpose-g8-r1024-c64": Trial(lambda random, half: {"source": _halves(random, half, H, S, D)},
                                    judges.exactly("out", lambda given, _: _swapped(given["source"]))),
    "transpose-g8-r64-c1024": Trial(lambda random, half: {"source": _halves(random, half, H, D, S)},
                                    judges.exactly("out", lambda given, _: _swapped(given["source"]))),
    "loss-target-gather": Trial(lambda random, half: _logits(random, half) | {"rows": S},
                                judges.exactly("correct", lambda given, _: _target_logits(given))),
    "attention-forward": Trial(_attention_inputs("forward"), judges.judge_attention_forward),
    "attention-query": Trial(_attention_inputs("query"), judges.judge_attention_query),
    "attention-key": Trial(_attention_inputs("key"), judges.judge_attention_key),
}
# fmt: on


def _scattered(given: Given) -> Array:
    return embedding_scatter.embedding_scatter(given["dtable before"], given["drows"], given["tokens"])


def _target_logits(given: Given) -> Array:
    return loss_target_gather.loss_target_gather(given["logits"], given["targets"])
