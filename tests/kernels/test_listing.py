"""Every image's material says to nvdisasm what our listing says, and both checks accept it."""

import re
from typing import Any

import harness
import pytest

from coppelius import catalog
from coppelius.check.verdict import judge
from coppelius.isa.printer import texts
from coppelius.program.encoding import encode_listing
from coppelius.program.listing import listing_text
from coppelius.program.program import Program

BRACES = re.compile(r"\s*\{[^}]*\}$")  # what nvdisasm's text hides
IDENTITIES = [image.identity for image in catalog.IMAGES]


def test_nvdisasm_prints_the_same_instructions(oracle: Any) -> None:
    materials = {(i, half): harness.material(i, half) for i in IDENTITIES for half in harness.HALVES}
    oracle.disassemble(b"".join(materials.values()))  # all words asked at once; below they are known
    different = []
    for (identity, half), material in materials.items():
        ours = [BRACES.sub("", text) for text in texts(Program.decode(material).decoded)]
        theirs = oracle.disassemble_kernel(material)
        assert len(theirs) == len(ours)
        different += [
            f"{identity} {half}+{16 * i:#06x}: ours {a!r}, nvdisasm {b!r}"
            for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
            if a != b
        ]
    assert not different, "\n".join(different)


@pytest.mark.parametrize("half", harness.HALVES)
def test_both_checks_accept_every_image(half: str) -> None:
    refused = []
    for image in catalog.IMAGES:
        verdict = judge(harness.material(image.identity, half), {**catalog.declaration(image), "half": half})
        if not verdict["accepted"]:
            refused.append(f"{image.identity}: {verdict['checks']} {verdict['hazards'][:3]}")
    assert not refused, "\n".join(refused)


@pytest.mark.parametrize("identity", IDENTITIES)
def test_listing_and_material_are_each_others_inverse(identity: str) -> None:
    for half in harness.HALVES:
        material = harness.material(identity, half)
        assert listing_text(Program.decode(material)) == harness.listing(identity, half)
        assert encode_listing(harness.listing(identity, half)) == material


def test_no_image_spills_or_adds_atomically() -> None:
    for image in catalog.IMAGES:
        used = {i.encoding.mnemonic.split(".")[0] for i in Program.decode(harness.material(image.identity, "f16"))}
        assert not used & {"LDL", "STL", "RED", "ATOM", "ATOMG", "ATOMS"}, image.identity
