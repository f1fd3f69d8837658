"""Words to fields and back: exact inverses on what is accepted, a refusal by name on what is not."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from coppelius.isa import codec
from coppelius.isa.bits import Field
from coppelius.isa.codec import Decoded
from coppelius.isa.form import Encoding
from coppelius.isa.layout import CHUNK
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86
from coppelius.isa.word import Words, halves

SEED = 20260
WORDS_A_ROW = 12
FADD = 0x000FE200000000000000000509057221  # FADD R5, R9, R5
HMMA = 0x0C4FF000000018FF000000020804723C  # HMMA.16816.F32 R4, R8.reuse, R2.reuse, RZ
EXIT = 0x000FEA0003800000000000000000094D  # @P0 EXIT


def words_of(*numbers: int) -> Words:
    return np.array([halves(n) for n in numbers], dtype=np.uint64)


def random_values(rng: Random, encoding: Encoding) -> list[int]:
    """Legal field values; registers a multiple of four, so that every pair and quad is aligned."""
    return [_value(rng, f) for f in encoding.fields]


def _value(rng: Random, f: Field) -> int:
    if f.name in ("stall", "keep"):
        return {"stall": rng.randint(1, 11), "keep": 1}[f.name]
    if f.codes is not None:
        return rng.choice(sorted(f.codes))
    value = rng.choice((f.default, f.low, f.high, rng.randint(f.low, f.high)))
    return value if value in (f.default, f.high) or f.width < 6 else value & ~3


def packed(rows: list[tuple[Encoding, list[int]]]) -> Decoded:
    table = sm86()
    values = np.zeros((len(rows), table.columns), dtype=np.int64)
    for i, (_, row) in enumerate(rows):
        values[i, : len(row)] = row
    return Decoded(table, np.array([e.uid for e, _ in rows], dtype=np.int16), values)


def plain_read(encoding: Encoding, number: int) -> list[int]:
    """The slow twin of `Layout.read`: one field after the other, in Python integers."""
    out = []
    for f in encoding.fields:
        value = f.bits.take(number) ^ f.invert
        out.append(value - (1 << f.width) if f.signed and value >> (f.width - 1) else value)
    return out


def test_decode_inverts_encode_on_random_words_of_every_row() -> None:
    rng = Random(SEED)
    rows = [(e, random_values(rng, e)) for e in sm86().encodings for _ in range(WORDS_A_ROW)]
    kept, refused = [], 0
    for row in rows:
        try:
            codec.encode(packed([row]))
            kept.append(row)
        except Refusal:  # a wide register that is neither aligned nor zero, a code pair without meaning
            refused += 1
    assert refused < len(rows) // 10, f"seed {SEED}"
    wanted = packed(kept)
    words = codec.encode(wanted)
    found = codec.decode(sm86(), words)
    wrong = [kept[i][0].name for i in np.flatnonzero(found.uids != wanted.uids)]
    assert wrong == [], f"seed {SEED}"
    assert np.array_equal(found.values, wanted.values), f"seed {SEED}"
    assert np.array_equal(codec.encode(found), words)


def test_the_slow_twin_reads_the_same_fields() -> None:
    rng = Random(SEED + 1)
    table = sm86()
    for encoding in table.encodings:
        number = rng.getrandbits(128)
        assert table.layout(encoding).read(words_of(number))[0].tolist() == plain_read(encoding, number), encoding.name


def test_a_batch_longer_than_a_chunk_keeps_its_order() -> None:
    words = np.tile(words_of(FADD, EXIT, HMMA), (CHUNK, 1))
    words[5, 0] = 0xFFF
    decoded = codec.decode(sm86(), words)
    assert np.flatnonzero(decoded.uids < 0).tolist() == [5]
    kept = np.flatnonzero(decoded.uids >= 0)
    again = codec.encode(Decoded(decoded.table, decoded.uids[kept], decoded.values[kept]))
    assert np.array_equal(again, words[kept])


def test_no_words_decode_to_nothing() -> None:
    decoded = codec.decode(sm86(), words_of()[:0].reshape(0, 2))
    assert len(decoded.uids) == 0
    assert codec.encode(decoded).shape == (0, 2)


def test_codes_tell_rows_of_one_opcode_apart() -> None:
    """MUFU.RCP64H and MUFU.RCP have the same never-varying bits."""
    decoded = codec.decode(sm86(), words_of(0x001E240000001000_00000000000D7308, 0x001E240000001800_00000000000D7308))
    names = [decoded.table.encodings[uid].name for uid in decoded.uids]
    assert names == ["MUFU:1", "MUFU:double.1"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (FADD ^ 1 << 92, "bits [92] are not what FADD:1 holds there"),
        (FADD ^ 1 << 40, "bits [40] are not what FADD:1 holds there"),
        (FADD & ~(7 << 110) | 6 << 110, "FADD:1 has no write_barrier 6"),
        (FADD & ~(7 << 113) | 6 << 113, "FADD:1 has no read_barrier 6"),
        (FADD & ~(15 << 105) | 12 << 105, "stall 12 with keep (bit 109): only 1..11 go without a yield"),
        (FADD & ~(15 << 105), "stall 0 with keep (bit 109)"),
        (HMMA & ~(1 << 109), "reuse without keep (bit 109)"),
        (HMMA ^ 2 << 24, "HMMA.16816.F32: a register pair or quad is misaligned"),
        (HMMA ^ 1 << 32, "HMMA.16816.F32: a register pair or quad is misaligned"),
        (FADD | 0xFFF, "no sm86 instruction has opcode 0xfff"),
        (0x000FE20003F06270000000000700720C | 3 << 74, "ISETP:1 has no BOOL 3"),
    ],
)
def test_a_word_outside_the_table_is_refused_by_name(number: int, reason: str) -> None:
    words = words_of(FADD, number)
    decoded = codec.decode(sm86(), words)
    assert decoded.uids[0] >= 0
    assert decoded.uids[1] < 0
    with pytest.raises(Refusal) as caught:
        codec.require(decoded, words)
    message = str(caught.value)
    assert message.startswith("offset 0x10: word ")
    assert reason in message


@pytest.mark.parametrize(
    ("number", "field", "value", "reason"),
    [
        (FADD, "D", 256, "instruction 0 (FADD:1): D 256 is not 0..255"),
        (FADD, "stall", 16, "stall 16 is not 0..15"),
        (FADD, "write_barrier", 6, "FADD:1 has no write_barrier 6"),
        (FADD, "stall", 13, "stall 13 with keep"),
        (FADD, "A", -1, "A -1 is not 0..255"),
        (HMMA, "D", 6, "HMMA.16816.F32: a register pair or quad is misaligned"),
    ],
)
def test_encoding_refuses_a_value_by_name(number: int, field: str, value: int, reason: str) -> None:
    decoded = codec.decode(sm86(), words_of(number))
    encoding = sm86().encodings[decoded.uids[0]]
    decoded.values[0, encoding.column[field]] = value
    with pytest.raises(Refusal) as caught:
        codec.encode(decoded)
    assert reason in str(caught.value)


def test_encoding_refuses_what_did_not_decode() -> None:
    decoded = codec.decode(sm86(), words_of(FADD, FADD | 0xFFF))
    with pytest.raises(Refusal, match="instruction 1 has no encoding"):
        codec.encode(decoded)


def test_a_drain_and_a_yield_may_stall_as_they_like() -> None:
    base = FADD & ~(31 << 105)
    legal = [base | stall << 105 for stall in range(16)] + [base | 1 << 109 | stall << 105 for stall in range(1, 12)]
    assert (codec.decode(sm86(), words_of(*legal)).uids >= 0).all()
    illegal = [base | 1 << 109 | stall << 105 for stall in (0, 12, 13, 14, 15)]
    assert (codec.decode(sm86(), words_of(*illegal)).uids < 0).all()
