"""Our cubins beside the vendor's of an equal kernel: each difference in structure is one that is explained here.

The kernel is equal to the word: ptxas compiles it, and its code, registers, parameters and shared bytes are given to
our writer.  What then differs is how the two describe it.  The archive holds what two toolkits made for each target
(tests/data/structure/build.py); ours follows 13.0, and what 13.5 adds is explained as well.
"""

from __future__ import annotations

import importlib.util
import io
import lzma
import re
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from elf_facts import facts_of_file
from oracle import find_tool, tool_version

from coppelius import catalog
from coppelius.container.cubin import Kernel, read_cubin
from coppelius.container.image import ImageParameter, ReleasedImage
from coppelius.container.writer import write_cubin
from coppelius.isa.targets.layout import layout_of

DATA = Path(__file__).resolve().parents[1] / "data"
ARCHIVE = DATA / "structure" / "cubins.tar.xz"
OLDER, NEWER = ("sm80", "sm86", "sm89"), ("sm90", "sm120", "sm121")
BLACKWELL = ("sm120", "sm121")
ALL, BOTH = OLDER + NEWER, ("13.0", "13.5")
DYNAMIC_BYTES = 65_536  # what the kernel of the archive that is named so would ask for at its launch


class Explained(NamedTuple):
    """A kind of difference: where it is found, what it is about (a whole match), and why it is right."""

    targets: tuple[str, ...]
    toolkits: tuple[str, ...]
    what: str
    why: str


# fmt: off
EXPLAINED = (
    Explained(ALL, BOTH, r"section \.note\.nv\.tkinfo: (bytes|contents)", "who wrote the file, and with which options"),
    Explained(ALL, BOTH, r"section \.debug_frame: (bytes|contents)",
              "ptxas says from where on R1 holds the stack's end; our kernels have no stack, the common frame holds"),
    Explained(ALL, BOTH, r"section \.rela?\.debug_frame: contents", "so frames lie elsewhere, and in its order"),
    Explained(ALL, BOTH, r"records \.nv\.info", "ptxas has an order of its own for kernels and records"),
    Explained(ALL, BOTH, r"record \.nv\.info\.divergent CRS_STACK_SIZE",
              "a compiler knows of divergence that needs no BSSY; the size it gives is zero"),
    Explained(ALL, BOTH, r"(records|section) \.nv\.info\.divergent(: bytes)?", "that record"),
    Explained(NEWER, BOTH, r"symbols", "ptxas puts local symbols behind global ones; ELF wants them before"),
    Explained(NEWER, BOTH, r"section \.symtab: info", "for that reason ptxas's number is all symbols"),
    Explained(NEWER, BOTH, r"sections", "the tables without rows, and the sections of Mercury, below"),
    Explained(NEWER, BOTH, r"section \.rela\.text\.\w+: (head|info|bytes|contents)",
              "a table without rows, left of the address of shared memory"),
    Explained(("sm90",), BOTH, r"symbol \(none\)", "a symbol without name and place, left likewise"),
    Explained(BLACKWELL, BOTH, r"(section|records?) \.nv\.(cap)?merc\..*",
              "Mercury: the program once more, for drivers that translate it to a later target; ours is for its own"),
    Explained(ALL, ("13.5",), r"section \.note\.nv\.cuinfo: contents", "13.5; ours is 13.0, which older drivers load"),
    Explained(ALL, ("13.5",), r"record \.nv\.info\.\w+ CUDA_API_VERSION", "likewise"),
    Explained(ALL, ("13.5",), r"record \.nv\.info\.\w+ LANGUAGE", "new in 13.5: which language the source was in"),
    Explained(NEWER, ("13.5",), r"record \.nv\.info\.\w+ (NVSAL_SW_WAR|PREEXIT_USED)", "new in 13.5"),
    Explained(ALL, ("13.5",), r"records \.nv\.info\.\w+", "those records"),
    Explained(ALL, ("13.5",), r"section \.nv\.info\.\w+: bytes", "those records"),
    Explained(NEWER, ("13.5",), r"section \.nv\.compat: contents", "13.5 spells more in it"),
    Explained(("sm120",), ("13.5",), r"section \.nv\.compat: bytes", "13.5 spells more in it"),
)
# fmt: on
CASES = {
    "add",
    "layernorm-forward",
    "argmax",
    "tiled-rc-m1024-n512-k512",
    "dynamic",
    "meetings",
    "divergent",
    "two",
}  # fmt: skip


@cache
def archive() -> dict[tuple[str, str, str], bytes]:
    """(case, target, toolkit) -> the vendor's cubin."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(ARCHIVE.read_bytes()))) as members:
        for member in members:
            name, target, toolkit = member.name.removesuffix(".cubin").split(".", 2)
            content = members.extractfile(member)
            assert content is not None
            found[name, target, toolkit] = content.read()
    return found


def image_of(kernel: Kernel) -> ReleasedImage:
    """The kernel as an image of ours."""
    target = f"sm{kernel.architecture}"
    words = {row.data[4]: row.data[8:] for row in kernel.attributes if row.name == "KPARAM_INFO"}
    parameters = tuple(
        ImageParameter(str(p.ordinal), p.offset, p.size, bool(words[p.ordinal][1] & 5), "u32")
        for p in kernel.parameters
    )
    dynamic = kernel.name == "dynamic"
    shared = layout_of(target).reserved + DYNAMIC_BYTES if dynamic else kernel.shared
    assert kernel.max_threads is not None
    threads = kernel.max_threads[0]
    return ReleasedImage(
        kernel.name, target, kernel.code, 1 << 32, kernel.registers, threads, shared, dynamic, (1, 1, 1), parameters
    )


def differences(case: str, target: str, toolkit: str) -> Iterator[tuple[str, str]]:
    """What differs, and how."""
    vendor = archive()[case, target, toolkit]
    theirs = facts_of_file(vendor)
    ours = facts_of_file(write_cubin([image_of(kernel) for kernel in read_cubin(vendor).kernels]))
    for what in {**theirs, **ours}:
        if theirs.get(what) != ours.get(what):
            yield what, f"ptxas {theirs.get(what)}; ours {ours.get(what)}"


@pytest.mark.parametrize("toolkit", BOTH)
@pytest.mark.parametrize("target", ALL)
def test_every_difference_is_explained_and_every_explanation_applies(target: str, toolkit: str) -> None:
    rows = [row for row in EXPLAINED if target in row.targets and toolkit in row.toolkits]
    used, unexplained = set(), []
    for case in sorted(CASES):
        for what, how in differences(case, target, toolkit):
            matching = [row for row in rows if re.fullmatch(row.what, what)]
            used.update(matching)
            if not matching:
                unexplained.append(f"{case}: {what}: {how}")
    assert unexplained == []
    assert [row.what for row in rows if row not in used] == []


def test_a_wrong_record_is_unexplained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison sees a barrier too many, a wrong flag and a section that is not there."""
    from coppelius.container import records, writer

    monkeypatch.setattr(records, "CALL_GRAPH", b"")
    monkeypatch.setattr(writer, "_KERNEL", 0)
    monkeypatch.setattr(records, "API_VERSION", 0x7F)
    found = dict(differences("argmax", "sm86", "13.0"))
    assert {"section .nv.callgraph: bytes", "symbol argmax", "record .nv.info.argmax CUDA_API_VERSION"} <= found.keys()


def test_the_archive_is_complete() -> None:
    assert set(archive()) == {(case, target, toolkit) for case in CASES for target in ALL for toolkit in BOTH}


@pytest.mark.parametrize("target", ["sm86", "sm121"])
@pytest.mark.parametrize("identity", ["add", "layernorm-forward", "argmax", "tiled-rc-m1024-n512-k512"])
def test_kernels_of_the_archive_have_the_declaration_of_their_images(identity: str, target: str) -> None:
    declared = catalog.declaration(next(image for image in catalog.IMAGES if image.identity == identity))
    (kernel,) = read_cubin(archive()[identity, target, "13.0"]).kernels
    image = image_of(kernel)
    reserved = layout_of(target).reserved if declared["shared_bytes"] else 0
    assert image.shared_bytes == declared["shared_bytes"] + reserved
    assert image.block_x == declared["block_x"]
    expected = [(p["offset"] - 0x160, p["kind"] == "pointer") for p in declared["parameters"]]
    assert [(p.offset, p.pointer) for p in image.parameters] == expected


@pytest.mark.skipif(find_tool("ptxas") is None, reason="compiles with ptxas itself")
@pytest.mark.parametrize("target", ["sm86", "sm121"])
def test_the_archive_is_what_ptxas_makes(target: str) -> None:
    """Whichever of the two toolkits is here."""
    toolkit = (tool_version("ptxas") or "").rpartition(".")[0]
    if toolkit not in BOTH:
        pytest.skip(f"ptxas {toolkit} made nothing of the archive")
    spec = importlib.util.spec_from_file_location("build_structure", ARCHIVE.with_name("build.py"))
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    for case, (outside, kernels) in build.modules().items():
        made = build.compiled(str(find_tool("ptxas")), target, outside, kernels)
        assert facts_of_file(made) == facts_of_file(archive()[case, target, toolkit]), case
