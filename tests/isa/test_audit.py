"""The audit counts what the table handles, names what it refuses, and sees a table that gives other bits back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coppelius.isa import codec
from coppelius.isa.audit import Audit, audit
from coppelius.isa.codec import Decoded
from coppelius.isa.table import sm86
from coppelius.isa.word import Words

NOP = (0x0000000000007918, 0x000FCC0000000000)
LOAD = (0x0000000402057981, 0x000EA2000C1E1900)  # nvdisasm: LDG.E R5, [R2.64]
NO_SIZE = (0x0000000402057981, 0x000EA2000C1E1F00)  # LDG with size 7
NOTHING = (0x0000000402057FFF, 0x000EA2000C1E1900)  # no such opcode


def words(*rows: tuple[int, int]) -> Words:
    return np.array(rows, dtype=np.uint64)


def test_counts_handled_and_names_refused() -> None:
    found = audit(sm86(), words(NOP, LOAD, NO_SIZE, NO_SIZE, NOTHING))
    assert (found.words, found.handled, found.wrong) == (5, 2, 0)
    assert dict(found.refused) == {"LDG": 2, "opcode 0xfff": 1}
    assert found.first["LDG"] == "000ea2000c1e1f00_0000000402057981"
    assert found.share == pytest.approx(0.4)


def test_sees_a_table_that_gives_other_bits_back(monkeypatch: pytest.MonkeyPatch) -> None:
    right = codec.encode

    def flip(decoded: Decoded) -> Any:
        out = right(decoded)
        out[0, 1] ^= np.uint64(1 << 9)
        return out

    monkeypatch.setattr(codec, "encode", flip)
    found = audit(sm86(), words(LOAD, NOP))
    assert (found.handled, found.wrong) == (1, 1)


def test_sums_and_the_first_example_stays() -> None:
    one, two = audit(sm86(), words(NOP, NO_SIZE)), audit(sm86(), words(NO_SIZE, NOTHING))
    both = one + two
    assert (both.words, both.handled, sum(both.refused.values())) == (4, 1, 3)
    assert Audit().share == 1.0
