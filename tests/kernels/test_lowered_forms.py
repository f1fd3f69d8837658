"""Every form of instruction in a lowered image is one that ptxas writes for that target.

Judged by the record of what ptxas 13.5.37 made of the probes; where there is a ptxas of that version, the probes are
compiled again and the record must be what it writes.
"""

from __future__ import annotations

from typing import Any

import compiled_forms
import harness
import oracle
import pytest

from coppelius import catalog
from coppelius.isa.table import table_of
from coppelius.lowering.lower import translate
from coppelius.program.listing import parse_listing

HERE = oracle.tool_version("ptxas")
# form -> why no probe has it.  None.
UNSEEN: dict[str, dict[str, str]] = {target: {} for target in compiled_forms.TARGETS}


def rest_slow(*slow: str) -> list[Any]:
    """The targets as parameters, those named left out of an ordinary run."""
    return [pytest.param(t, marks=pytest.mark.slow if t in slow else ()) for t in compiled_forms.TARGETS]


@pytest.mark.parametrize("target", compiled_forms.TARGETS)
def test_every_lowered_form_is_one_that_ptxas_writes(target: str) -> None:
    table, known = table_of(target), compiled_forms.recorded()[target]
    used: dict[str, str] = {}
    for image in catalog.IMAGES:
        for half in harness.HALVES:
            native = parse_listing(harness.listing(image.identity, half))
            program = native if target == "sm86" else translate(native, target)[0]
            for form in compiled_forms.forms(program.encode(), table):
                used.setdefault(form, f"{image.identity} in {half}")
    assert len(used) > 100
    unseen = {form: where for form, where in used.items() if form not in known}
    assert unseen.keys() == UNSEEN[target].keys(), "\n".join(f"{f} ({w})" for f, w in sorted(unseen.items()))


@pytest.mark.parametrize("target", compiled_forms.TARGETS)
def test_a_recorded_word_has_the_form_that_it_stands_for(target: str) -> None:
    known = compiled_forms.recorded()[target]
    assert len(known) > 500
    wrong = [f for f, word in known.items() if compiled_forms.forms(word, table_of(target)) != {f: word}]
    assert not wrong, "\n".join(wrong)
    if target in ("sm89", "sm120"):
        return  # words of sm80 and sm121, asked there
    texts = oracle.disassemble(list(known.values()), target.upper())
    refused = [form for form, text in zip(known, texts, strict=True) if text is None]
    assert not refused, "\n".join(refused)


@pytest.mark.skipif(HERE != oracle.PINNED, reason=f"the record is of ptxas {oracle.PINNED}, here is {HERE}")
@pytest.mark.parametrize("target", rest_slow("sm86", "sm89", "sm120"))
def test_the_record_is_what_ptxas_writes(target: str) -> None:
    written, known = compiled_forms.written(target), compiled_forms.recorded()[target]
    different = [form for form in written.keys() | known.keys() if written.get(form) != known.get(form)]
    assert not different, "\n".join(sorted(different))


def test_forms_leave_out_the_values_of_operands() -> None:
    lines = ["FADD R1, R2, R3", "@P3 FADD R7, R8.reuse, R9", "FADD R1, R2, -R3", "FADD R1, R2, 2"]
    lines += ["LDG.E R1, [R2.64+0x10]", "LDG.E R4, [R6.64]", "LDG.E.64 R4, [R6.64]", "S2R R0, SR_TID.X"]
    program = parse_listing("\n".join([".target sm86", *(f"[B------:R-:W-:-:S01] {line}" for line in lines), ""]))
    found = compiled_forms.forms(program.encode(), program.table)
    assert sorted(found) == ["FADD:1", "FADD:1 B.negate=1", "FADD:2", "LDG:described", "LDG:described SIZE=5", "S2R"]
