"""The oracle itself: its answers do not depend on how the words are grouped, and the record gives them back."""

import random
from pathlib import Path
from typing import Any

import oracle
import pytest
from elftools.elf.elffile import ELFFile

EXIT = bytes.fromhex("4d790000000000000000800300ea0f00")
BRANCH_BACK = bytes.fromhex("000fea000383fffffffffe7000008947")[::-1]  # @!P0 BRA, 0x180 bytes back


def code_of(cubin: Path) -> list[bytes]:
    with cubin.open("rb") as file:
        return [s.data() for s in ELFFile(file).iter_sections() if s.name.startswith(".text.")]


def test_refused_words_leave_their_neighbours() -> None:
    words = [EXIT, bytes(16), EXIT, b"\xff" * 16, EXIT]
    assert oracle.disassemble(words) == ["EXIT", None, "EXIT", None, "EXIT"]
    assert oracle.disassemble(b"".join(words)) == oracle.disassemble(words)


def test_branches_follow_the_address() -> None:
    assert oracle.disassemble(EXIT + BRANCH_BACK + BRANCH_BACK, base=0x1000)[1:] == [
        "@!P0 BRA 0xe90",
        "@!P0 BRA 0xea0",
    ]
    assert oracle.disassemble(BRANCH_BACK) == ["@!P0 BRA -0x180"]


def test_own_kernels_read_alike_by_word_and_by_file(cuda_cubins: list[Path]) -> None:
    """By word (cached, branches kept relative) and, where the tool is found, as one plain run at address 0."""
    codes = [code for cubin in cuda_cubins for code in code_of(cubin)]
    assert len(codes) > 600
    whole = b"".join(codes)
    texts = oracle.disassemble_kernel(whole)
    assert None not in texts
    if oracle.available():
        words = [whole[at : at + 16] for at in range(0, len(whole), 16)]
        direct = oracle._ask(words, "SM86", 0)
        assert [(a, b) for a, b in zip(direct, texts, strict=True) if a != b] == []


def test_flipped_bits_alone_and_in_company(cuda_cubins: list[Path]) -> None:
    if not oracle.available():
        pytest.skip("asks the tool itself")
    chance = random.Random(86)
    words = [bytearray(w) for c in code_of(cuda_cubins[0]) for w in (c[i : i + 16] for i in range(0, len(c), 16))]
    for word in words:
        bit = chance.randrange(128)
        word[bit // 8] ^= 1 << bit % 8
    together = oracle._ask([bytes(word) for word in words], "SM86", 0)
    for i in chance.sample(range(len(words)), 4):
        assert oracle._ask([bytes(words[i])], "SM86", 16 * i) == [together[i]]


def test_record_round_trip(tmp_path: Path) -> None:
    record: dict[bytes, Any] = {EXIT: "EXIT", bytes(16): None, BRANCH_BACK: ("@!P0 BRA ", -384, "")}
    oracle.write_record(tmp_path / "answers.xz", record)
    assert oracle.read_record(tmp_path / "answers.xz") == record


def test_unrecorded_word_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "available", lambda: False)
    monkeypatch.setattr(oracle, "_answers", {})
    with pytest.raises(oracle.NotRecorded, match="COPPELIUS_RECORD=1"):
        oracle.disassemble(bytes(range(16)))
