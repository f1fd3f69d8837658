"""Launch descriptors (QMD): what the hardware reads to start a grid; V03_00 for Ampere, V05_00 for Blackwell.

A descriptor is bit fields at fixed places of 256 or 384 bytes.  Code address, registers, barriers, block and shared
bytes come from one released image, the grid from the launch; nothing is said twice.  Places are published: the open
headers of the classes AMPERE_COMPUTE_A and BLACKWELL_COMPUTE_B, whose names tests/container/test_qmd.py has.

Left out: release semaphores, dependent launches, prefetching of code, local memory beyond its size of zero, clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coppelius.container.code_facts import facts_of
from coppelius.container.image import ReleasedImage, find_image
from coppelius.container.launches import Launch, refuse_bad_grid
from coppelius.isa.refusal import Refusal
from coppelius.isa.targets.layout import layout_of

_CARVE_OUTS = (8, 16, 32, 64, 100)  # KiB an SM can give to shared memory (published, 86 and 120)
_GROUP = 0x3F  # published: in open drivers for both classes, and in a descriptor captured from CUDA on SM120
_CODE, _BANK = 16, 64  # published: what addresses are multiples of, in open drivers for both classes
_SYSTEM_BARRIER = 1  # published: after the launch, what was written is seen by all
# published: open drivers give the first three, and a descriptor captured from CUDA the one of SM120, whose
# own number is 10.4; assumed: SM121's words are SM120's
_SASS_VERSIONS = {"sm80": 0x80, "sm86": 0x86, "sm89": 0x89, "sm120": 0xA4, "sm121": 0xA4}


@dataclass(frozen=True)
class ConstantBank0:
    """Where the launch's constant bank 0 lies, and how long it is, parameters included."""

    address: int
    size: int


@dataclass(frozen=True)
class Descriptor:
    """Everything a descriptor says, by meaning; `of` is the only way to make one."""

    target: str
    address: int
    registers: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes: int
    barriers: int
    bank: ConstantBank0

    @staticmethod
    def of(image: ReleasedImage, grid: tuple[int, int, int], bank_address: int, *, moved: int = 0) -> Descriptor:
        """The descriptor of a launch; `moved` is how far from the release's base the program lies."""
        refuse_bad_grid(grid, image.identity)
        size = layout_of(image.target).parameters + image.parameter_bytes
        block = (image.block_x, 1, 1)
        bank = ConstantBank0(bank_address, size)
        (facts,) = facts_of(image.target, [image.code], [image.identity])
        address = image.address + moved
        return Descriptor(image.target, address, image.registers, block, grid, image.shared_bytes, facts.barriers, bank)


def descriptors(
    launches: Sequence[Launch], images: Sequence[ReleasedImage], banks: Sequence[int], *, moved: int = 0
) -> list[bytes]:
    """The descriptor of each launch, in order; `banks` is where the constant bank 0 of each lies."""
    if len(banks) != len(launches):
        raise Refusal(f"{len(launches)} launches need as many constant banks; {len(banks)} are given")
    return [
        pack(Descriptor.of(find_image(list(images), launch.identity), launch.grid, bank, moved=moved))
        for launch, bank in zip(launches, banks, strict=True)
    ]


Place = tuple[int, int]  # highest and lowest bit
_V03: Mapping[str, Place] = {
    "version": (583, 576), "group": (133, 128), "sm_global_caching": (134, 134), "call_limit": (378, 378),
    "sampler_index": (382, 382), "grid.x": (415, 384), "grid.y": (431, 416), "grid.z": (463, 448),
    "block.x": (607, 592), "block.y": (623, 608), "block.z": (639, 624), "program.low": (1567, 1536),
    "program.high": (1584, 1568), "registers": (656, 648), "barriers": (767, 763), "shared": (561, 544),
    "config.min": (567, 562), "config.max": (574, 569), "config.target": (662, 657),
    "bank0.valid": (640, 640), "bank0.low": (1055, 1024), "bank0.high": (1072, 1056), "bank0.size": (1087, 1075),
    "bank0.invalidate": (1074, 1074), "sass": (1663, 1656), "invalidate": (189, 186), "membar": (369, 368),
}  # fmt: skip
_V05: Mapping[str, Place] = {
    "version": (471, 464), "type": (153, 151), "group": (149, 144), "call_limit": (456, 456),
    "sampler_index": (457, 457),
    "grid.x": (1279, 1248), "grid.y": (1295, 1280), "grid.z": (1327, 1312), "block.x": (1103, 1088),
    "block.y": (1119, 1104), "block.z": (1127, 1120), "program.low": (1055, 1024), "program.high": (1076, 1056),
    "registers": (1136, 1128), "barriers": (1141, 1137), "shared": (1162, 1152), "config.min": (1168, 1163),
    "config.max": (1174, 1169), "config.target": (1180, 1175), "bank0.valid": (1856, 1856),
    "bank0.low": (1375, 1344), "bank0.high": (1394, 1376), "bank0.size": (1407, 1395), "bank0.invalidate": (1859, 1859),
    "sass": (455, 448), "invalidate": (475, 472), "membar": (625, 624),
}  # fmt: skip
_BYTES = {3: 256, 5: 384}
_PLACES = {3: _V03, 5: _V05}


def version_of(target: str) -> int:
    """3 (V03_00) or 5 (V05_00); refuses a target whose class has neither."""
    number = int(target.removeprefix("sm"))
    if number == 90:
        raise Refusal("sm90: its descriptor is V04_00, which is not written")
    return 5 if number >= 100 else 3


def pack(descriptor: Descriptor) -> bytes:
    """The descriptor's bytes; refuses a value that its field cannot hold."""
    version = version_of(descriptor.target)
    word = 0
    for name, value in values_of(descriptor, version).items():
        high, low = _PLACES[version][name]
        if not 0 <= value < 1 << (high - low + 1):
            raise Refusal(f"{descriptor.target}: a descriptor's {name} cannot hold {value:#x}")
        word |= value << low
    return word.to_bytes(_BYTES[version], "little")


def values_of(descriptor: Descriptor, version: int) -> dict[str, int]:
    """Each field's value, by name."""
    units = _Units(_CODE, _BANK, 128) if version == 5 else _Units(1, 1, 1)
    program = _exact(descriptor.address, _CODE, "code address") // units.program
    bank = _exact(descriptor.bank.address, _BANK, "address of constant bank 0") // units.bank
    granule = 128 if version == 5 else 256
    shared = -(-descriptor.shared_bytes // granule) * granule
    low, most = carve_out(shared), carve_out(_CARVE_OUTS[-1] << 10)
    values = {
        "version": version << 4, "group": _GROUP, "call_limit": 1, "sampler_index": 1,
        "program.low": program & 0xFFFFFFFF, "program.high": program >> 32,
        "registers": descriptor.registers, "barriers": descriptor.barriers, "shared": shared // units.shared,
        "config.min": low, "config.max": most, "config.target": low,
        "bank0.valid": 1, "bank0.low": bank & 0xFFFFFFFF, "bank0.high": bank >> 32,
        "bank0.size": -(-descriptor.bank.size // 16), "bank0.invalidate": 1,
        "sass": _SASS_VERSIONS[descriptor.target], "membar": _SYSTEM_BARRIER,
        "invalidate": 0b1111,  # what caches of textures (headers, samplers, data) and of data hold
    }  # fmt: skip
    for name, sizes in (("grid", descriptor.grid), ("block", descriptor.block)):
        values |= {f"{name}.{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
    # a grid of blocks; Ampere has no such field, and caches global loads by a bit instead
    return values | ({"type": 2} if version == 5 else {"sm_global_caching": 1})


@dataclass(frozen=True)
class _Units:
    program: int
    bank: int
    shared: int


def _exact(value: int, unit: int, what: str) -> int:
    """The value; refuses what is no multiple."""
    if value % unit:
        raise Refusal(f"{what} {value:#x} is no multiple of {unit}")
    return value


def carve_out(shared_bytes: int) -> int:
    """The configuration of the least carve-out that holds so many bytes: KiB * 1024 / 4096 + 1."""
    for kib in _CARVE_OUTS:
        if shared_bytes <= kib << 10:
            return (kib << 10) // 4096 + 1
    raise Refusal(f"{shared_bytes} shared bytes; an SM gives at most {_CARVE_OUTS[-1]} KiB")
