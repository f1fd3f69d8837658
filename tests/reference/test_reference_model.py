"""Head layouts, activation, optimiser, attention and products: hand cases, slopes, and other spellings."""

import math

import numpy as np
import pytest

from coppelius.reference.adamw import Scalars, adamw
from coppelius.reference.attention import attention_forward, attention_key, attention_query
from coppelius.reference.gated_gelu import gated_gelu_backward, gated_gelu_forward, gelu
from coppelius.reference.head_layout import (
    head_to_token,
    inverse_rope_qkv,
    qk_rope,
    token_to_head,
    turn,
    value_transpose,
)
from coppelius.reference.product import product
from coppelius.reference.rotary_table import model_frequencies, rotary_table

RANDOM = np.random.default_rng(2)


def test_heads_are_head_major_slices_of_the_columns() -> None:
    tokens = np.arange(2 * 6, dtype=np.float32).reshape(2, 6)
    heads = token_to_head(tokens, 3)
    assert heads.tolist() == [[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]
    assert np.array_equal(head_to_token(heads), tokens)
    qkv = np.concatenate([tokens + 100, tokens + 200, tokens], axis=1)
    assert np.array_equal(value_transpose(qkv, 3), heads.transpose(0, 2, 1))


def test_rope_is_complex_multiplication() -> None:
    table = rotary_table(model_frequencies(2), 5)
    qkv = RANDOM.normal(size=(5, 24))
    (q, _), (k, _) = qk_rope(qkv, table, 2)
    factors = table[..., 0] + 1j * table[..., 1]
    for made, start in ((q, 0), (k, 8)):
        for head in range(2):
            source = qkv[:, start + 4 * head : start + 4 * head + 4]
            turned = (source[:, 0::2] + 1j * source[:, 1::2]) * factors
            assert np.allclose(made[head, :, 0::2], turned.real)
            assert np.allclose(made[head, :, 1::2], turned.imag)


def test_inverse_rope_undoes_rope_and_leaves_v() -> None:
    table = rotary_table(model_frequencies(2), 5)
    dq, dk, dv = RANDOM.normal(size=(3, 2, 5, 4))
    made, _ = inverse_rope_qkv(turn(dq, table).values, turn(dk, table).values, dv, table)
    assert np.allclose(made, np.concatenate([head_to_token(m) for m in (dq, dk, dv)], axis=1))


def test_gelu_is_the_tanh_form_and_has_its_limits() -> None:
    for x in (-3.0, -0.5, 0.0, 0.7, 4.0):
        t = math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        assert gelu(np.array(x)) == pytest.approx(0.5 * x * (1 + t), rel=1e-12)
    assert gelu(np.array([1e30, -1e30])).tolist() == [1e30, 0.0]
    assert gelu(np.array(-8.0)) < 0  # where 1 + tanh has lost every digit
    made = gated_gelu_backward(np.ones(2), np.array([1e30, -1e30]), np.ones(2))
    assert made.dgate.tolist() == [1.0, 0.0]


def test_gated_gelu_gradients_are_slopes() -> None:
    gate, up, dout = RANDOM.normal(size=(3, 50)) * 2
    made, step = gated_gelu_backward(dout, gate, up), 1e-6
    by_gate = (gated_gelu_forward(gate + step, up) - gated_gelu_forward(gate - step, up)) / (2 * step)
    by_up = (gated_gelu_forward(gate, up + step) - gated_gelu_forward(gate, up - step)) / (2 * step)
    assert np.allclose(made.dgate, dout * by_gate, atol=1e-8)
    assert np.allclose(made.dup, dout * by_up, atol=1e-8)


def test_adamw_first_step_moves_by_the_rate() -> None:
    # at the first step m correction1 = g and v correction2 = g^2, so the step is rate * sign(g)
    scalars = Scalars(0.5, 0.75, 0.875, 0.0, 0.25, 4.0, 8.0, 2.0)
    zero = np.zeros(2, np.float32)
    made = adamw(np.array([1.0, -1.0], np.float32), zero, zero, np.array([3.0, -5.0], np.float32), scalars)
    assert made.m.tolist() == [1.5, -2.5]
    assert made.v.tolist() == [4.5, 12.5]
    assert made.p.tolist() == [1.0 - 0.5 - 0.125, -1.0 + 0.5 + 0.125]
    assert made.p_terms.tolist() == [1.0, 1.0]
    assert list(Scalars.__dataclass_fields__) == [
        "rate", "beta1", "beta2", "epsilon", "decay", "correction1", "correction2", "gradient_scale",
    ]  # fmt: skip


def test_attention_is_a_loop_over_rows() -> None:
    q, k, v = RANDOM.normal(size=(3, 2, 5, 4))
    made = attention_forward(q, k, v, 0.5)
    for head in range(2):
        for row in range(5):
            logits = [0.5 * float(q[head, row] @ k[head, column]) for column in range(row + 1)]
            total = sum(math.exp(x) for x in logits)
            expected = sum(math.exp(x) / total * v[head, column] for column, x in enumerate(logits))
            assert np.allclose(made.out[head, row], expected)
            assert made.lse[head, row] == pytest.approx(math.log(total))


def test_attention_gradients_are_slopes() -> None:
    q, k, v, dout = RANDOM.normal(size=(4, 2, 4, 3))
    out, lse = attention_forward(q, k, v, 0.5)
    dq, delta = attention_query(q, k, v, out, dout, lse, 0.5)
    dk, dv = attention_key(q, k, v, dout, lse, delta, 0.5)
    step = 1e-6
    for at, gradient in enumerate((dq, dk, dv)):
        for index in np.ndindex(q.shape):
            worth = []
            for sign in (1, -1):
                moved = [q.copy(), k.copy(), v.copy()]
                moved[at][index] += sign * step
                worth.append(float((attention_forward(*moved, 0.5).out * dout).sum()))
            assert gradient[index] == pytest.approx((worth[0] - worth[1]) / (2 * step), abs=1e-7)


def test_product_reads_each_layout() -> None:
    a, b, r = RANDOM.normal(size=(3, 5)), RANDOM.normal(size=(5, 2)), RANDOM.normal(size=(3, 2))
    expected = np.einsum("mk,kn->mn", a, b)
    assert np.allclose(product(a, b.T, "rr"), expected)
    assert np.allclose(product(a, b, "rc"), expected)
    assert np.allclose(product(a.T, b, "cc", r), expected + r)
    with pytest.raises(ValueError, match=r"layouts 'x': two letters"):
        product(a, b, "x")
