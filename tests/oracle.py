"""nvdisasm as the oracle of what a machine word means; its recorded answers where the tool is absent.

A text is a function of the word and, for the branch group, of its address. So each distinct word is asked
once a process, a branch's text is kept relative to its address, and the same table, compressed, is the
record. Where neither the tool nor the record knows a word, the test fails and says how to cure that.

    disassemble(words, sm="SM86", base=0)   texts, None for each word that nvdisasm refuses
    disassemble_kernel(code, sm="SM86")     the same at address 0, where a kernel's branches are read

nvdisasm prints nothing for a file that holds a refused word, but its complaints name the addresses: those
words become NOP, and the second run prints the rest (measured: 2000 words, 156 of them bad, in two runs).
Words are grouped by 100,000 (measured: about 0.2 s a start, then 100,000 words a second).

COPPELIUS_RECORD=1 adds every answer of a session to `data/nvdisasm_answers.<SM>.xz`. Texts come without
the trailing semicolon.
"""

import fcntl
import functools
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

PINNED = "13.5.37"
DATA = Path(__file__).resolve().parent / "data"
GROUP = 100_000
WORD = 16  # bytes
NOP = bytes.fromhex("18790000000000000000000000c00f00")
REFUSED = bytes.fromhex("ff7f05020400000000191e0c00a20e00")  # no operation has this opcode
FIRST_BASE, SECOND_BASE = 1 << 36, 1 << 37  # two bases tell the numbers that move with the address
RECORDING = os.environ.get("COPPELIUS_RECORD") == "1"

Bytes = bytes | bytearray | memoryview  # or any array of whole words
Text = str | None | tuple[str, int, str]  # plain, refused, or (before, displacement from the word, after)


class NotRecorded(AssertionError):
    """A word that the record does not know, asked for where the tool is absent."""


class Counts:
    """What this process asked: words judged, words new to it."""

    judged = 0
    asked = 0


# ------------------------------------------------------------------------------------------ the tool
@functools.cache
def find_tool(name: str = "nvdisasm") -> Path | None:
    """The environment's (NVDISASM=...), the Python package's, or the one on PATH."""
    named = os.environ.get(name.upper())
    if named is not None:
        return Path(named) if Path(named).is_file() else None
    for root in sys.path:
        for found in sorted(Path(root).glob(f"nvidia/cu*/bin/{name}"), reverse=True):
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


@functools.cache
def tool_version(name: str = "nvdisasm") -> str | None:
    """The version that the tool prints, such as 13.5.37; None where there is no tool."""
    tool = find_tool(name)
    if tool is None:
        return None
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    return found[1] if found else None


def available() -> bool:
    """Whether the tool itself will answer."""
    return tool_version() is not None


def description() -> str:
    """The line for the end of a session: which oracle judged."""
    version = tool_version()
    if version is None:
        return f"oracle: recorded answers of nvdisasm {PINNED}"
    return f"oracle: nvdisasm {version}" + ("" if version == PINNED else f" (pinned: {PINNED})")


def _run(words: Sequence[bytes], sm: str, base: int) -> tuple[list[str | None], str]:
    """One start of nvdisasm: the text printed at each word's address if any, and its complaints."""
    tool = find_tool()
    assert tool is not None
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"".join(words))
        file.flush()
        command = [tool, "-b", sm, "-ndf", "-base", hex(base), file.name]
        said = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    texts: list[str | None] = [None] * len(words)
    for address, text in re.findall(r"^\s*/\*([0-9a-f]+)\*/\s*(.*)$", said.stdout, re.MULTILINE):
        texts[(int(address, 16) - base) // WORD] = text.rstrip().removesuffix(";").rstrip() or None
    return texts, said.stderr


def _ask(words: Sequence[bytes], sm: str, base: int) -> list[str | None]:
    """Texts of words lying one after the other from `base` on."""
    texts, complaints = _run(words, sm, base)
    if "error" not in complaints:
        assert any(texts) or len(words) == 1, f"nvdisasm printed nothing for {len(words)} words: {complaints}"
        return texts  # a few words print nothing without a complaint: refused as well
    addresses = {int(at, 16) for at in re.findall(r"at address (0x[0-9a-f]+)", complaints)}
    bad = {(at - base & 0xFFFFFFFF) // WORD for at in addresses} & set(range(len(words)))
    if len(words) == 1:
        assert "llegal" in complaints or bad, f"nvdisasm: {complaints.strip()}"
        return [None]
    bad |= {i for i, word in enumerate(words) if not any(word[:8])}  # refused without an address (measured)
    if bad:  # one more run, all of the named words out of the way
        mended = _ask([NOP if i in bad else word for i, word in enumerate(words)], sm, base)
        return [None if i in bad else text for i, text in enumerate(mended)]
    silent = _refused_silently(words, sm)
    if silent:
        mended = _ask([NOP if i in silent else word for i, word in enumerate(words)], sm, base)
        return [None if i in silent else text for i, text in enumerate(mended)]
    half = len(words) // 2  # complaints without an address
    return _ask(words[:half], sm, base) + _ask(words[half:], sm, base + WORD * half)


def _refused_silently(words: Sequence[bytes], sm: str) -> set[int]:
    """Words refused without an address: each is put before one whose refusal has one; complaints come in order."""
    _, complaints = _run([w for word in words for w in (word, REFUSED)], sm, 0)
    bad: set[int] = set()
    reached, named = 0, False
    for line in complaints.splitlines():
        address = re.search(r"at address (0x[0-9a-f]+)", line)
        if address:
            reached, named = int(address[1], 16) // WORD // 2 + 1, True
        elif "llegal" in line and not named:
            bad.add(reached)
        else:
            named = False
    return bad & set(range(len(words)))


def _relative(first: str | None, second: str | None, at: int) -> Text:
    """One form for both addresses (FIRST_BASE + at, SECOND_BASE + at) of an address-dependent text."""
    if first is None or first == second:
        return first
    assert second is not None
    for one, two in zip(re.finditer("-?0x[0-9a-f]+", first), re.finditer("-?0x[0-9a-f]+", second), strict=True):
        if one[0] != two[0]:
            move = int(one[0], 16) - FIRST_BASE - at
            assert int(two[0], 16) - SECOND_BASE - at == move, (first, second)
            return first[: one.start()], move, first[one.end() :]
    raise AssertionError(f"address-dependent text not understood: {first!r}, {second!r}")


def _ask_all(words: Sequence[bytes], sm: str) -> Iterable[tuple[bytes, Text]]:
    """The answers to new words; the branch group (low opcode byte 0x40 to 0x5f) is asked at two addresses."""
    plain = [word for word in words if not 0x40 <= word[0] <= 0x5F]
    branches = [word for word in words if 0x40 <= word[0] <= 0x5F]
    for at in range(0, len(plain), GROUP):
        part = plain[at : at + GROUP]
        yield from zip(part, _ask(part, sm, 0), strict=True)
    for at in range(0, len(branches), GROUP):
        part = branches[at : at + GROUP]
        both = zip(part, _ask(part, sm, FIRST_BASE), _ask(part, sm, SECOND_BASE), strict=True)
        yield from ((word, _relative(a, b, WORD * i)) for i, (word, a, b) in enumerate(both))


# ---------------------------------------------------------------------------------------- the record
def record_path(sm: str) -> Path:
    """Where the answers for one architecture lie."""
    return DATA / f"nvdisasm_answers.{sm}.xz"


def read_record(path: Path) -> dict[bytes, Text]:
    """word -> answer. A line is: text, tab, word in hex; `\\x01` stands around a displacement; empty = refused."""
    if not path.exists():
        return {}
    record: dict[bytes, Text] = {}
    for line in lzma.decompress(path.read_bytes()).decode().split("\n")[1:]:
        text, _, word = line.partition("\t")
        before, mark, rest = text.partition("\x01")
        if mark:
            move, _, after = rest.partition("\x01")
            record[bytes.fromhex(word)] = (before, int(move), after)
        elif word:
            record[bytes.fromhex(word)] = text or None
    return record


def write_record(path: Path, record: dict[bytes, Text]) -> None:
    """Sorted by text, because like texts have like words: that halves the file."""
    lines = []
    for word, text in record.items():
        shown = "\x01".join(map(str, text)) if isinstance(text, tuple) else text or ""
        lines.append(f"{shown}\t{word.hex()}")
    body = "\n".join([f"nvdisasm {PINNED}", *sorted(lines)])
    path.write_bytes(lzma.compress(body.encode(), preset=9 | lzma.PRESET_EXTREME))


def save_recording() -> None:
    """Adds this process's answers to the record; called at the end of a session (also in each worker)."""
    if not RECORDING or not _answers:
        return
    assert tool_version() == PINNED, f"recording needs nvdisasm {PINNED}, not {tool_version()}"
    for sm, answers in _answers.items():
        with (Path(tempfile.gettempdir()) / f"coppelius_record_{sm}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = read_record(record_path(sm))
            if not answers.keys() <= known.keys():
                write_record(record_path(sm), known | answers)


# --------------------------------------------------------------------------------------- the oracle
_answers: dict[str, dict[bytes, Text]] = {}


def _known(sm: str) -> dict[bytes, Text]:
    """This process's answers; where there is no tool they start as the record."""
    if sm not in _answers:
        _answers[sm] = {} if available() else read_record(record_path(sm))
    return _answers[sm]


def disassemble(words: Bytes | Sequence[bytes], sm: str = "SM86", base: int = 0) -> list[str | None]:
    """nvdisasm's text of each 16-byte word, the first of them at address `base`; None where it refuses.

    `words` is anything bytes-like whose length divides by 16 (an array too), or a sequence of words.
    """
    raw = b"".join(words) if isinstance(words, list | tuple) else bytes(words)
    assert len(raw) % WORD == 0, f"{len(raw)} bytes are no whole number of words"
    split = [raw[at : at + WORD] for at in range(0, len(raw), WORD)]
    known = _known(sm)
    new = list(dict.fromkeys(word for word in split if word not in known))
    Counts.judged += len(split)
    if new:
        if not available():
            raise NotRecorded(
                f"{len(new)} words are not among the recorded answers for {sm}, the first of them {new[0].hex()}: "
                f"pip install nvidia-cuda-nvdisasm=={PINNED}, and record with COPPELIUS_RECORD=1 pytest"
            )
        Counts.asked += len(new)
        known.update(_ask_all(new, sm))
    texts: list[str | None] = []
    for index, word in enumerate(split):
        text = known[word]
        if isinstance(text, tuple):
            before, move, after = text
            target = base + WORD * index + move
            text = f"{before}{'-' if target < 0 else ''}{abs(target):#x}{after}"
        texts.append(text)
    return texts


def disassemble_kernel(code: Bytes, sm: str = "SM86") -> list[str | None]:
    """A kernel's texts at address 0: branch targets are byte offsets into the kernel, relocations unapplied."""
    return disassemble(code, sm)
