"""A release is the arena and its manifest, made together from placed images or not at all.

The arena holds each material at its offset, zero bytes between.  The manifest says what a launch needs to
use it, in one fixed spelling and key order, so that equal inputs give equal bytes wherever and whenever
they are built.  Every defect is refused by the image's name before a byte is made: an empty material, a
duplicate identity, an offset that placement would not give, a verdict that is not acceptance.

Left out: writing files; the caller publishes both or neither.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coppelius.arena.placement import ADDRESS_BITS, check_plan, place
from coppelius.isa.refusal import Refusal
from coppelius.isa.targets.layout import layout_of

INSTRUCTION_BYTES = 16
# published: above this a kernel must ask for its shared bytes at launch (dynamic shared memory)
STATIC_SHARED_BYTES = 49_152
ACCEPTED = "accepted"


@dataclass(frozen=True)
class Plan:
    """The plan settings that a manifest names."""

    target: str
    half_format: str
    base: int
    alignment: int


@dataclass(frozen=True)
class Record:
    """One placed image.  `registers` is what the launch descriptor carries, demand already resolved."""

    identity: str
    material: bytes
    offset: int
    registers: int
    declaration: Mapping[str, Any]  # block_x, shared_bytes, grid, parameters, as the catalogue declares them
    checks: Mapping[str, str]  # check -> "accepted", or why not in a word


@dataclass(frozen=True)
class Release:
    """Both files' bytes."""

    arena: bytes
    manifest: dict[str, Any]

    @property
    def manifest_bytes(self) -> bytes:
        return (json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n").encode()


def make_release(plan: Plan, records: Sequence[Record]) -> Release:
    """The release of these images, in this order; refuses by name."""
    check_plan(plan.base, plan.alignment)
    _check_verdicts(records)
    _check_identities(records)
    arena = bytearray()
    for record in records:
        offset = _offset(record, len(arena), plan.alignment)
        arena.extend(bytes(offset - len(arena)))
        arena.extend(record.material)
    if (plan.base + len(arena)) >> ADDRESS_BITS:
        raise Refusal(f"base {plan.base:#x}: the arena would end past {ADDRESS_BITS} bits of address; lower the base")
    return Release(bytes(arena), _manifest(plan, records, bytes(arena)))


def _check_verdicts(records: Sequence[Record]) -> None:
    refused = [r for r in records if not r.checks or any(v != ACCEPTED for v in r.checks.values())]
    if not refused:
        return
    first = refused[0]
    checks = [name for name, verdict in first.checks.items() if verdict != ACCEPTED] or ["no check has judged it"]
    names = ", ".join(r.identity for r in refused)
    raise Refusal(
        f"{first.identity}: refused ({', '.join(checks)}); nothing is released\n"
        f"{len(refused)} of {len(records)} images refused: {names}"
    )


def _check_identities(records: Sequence[Record]) -> None:
    seen: set[str] = set()
    for record in records:
        if record.identity in seen:
            raise Refusal(f"{record.identity}: two images have this identity; nothing is released")
        seen.add(record.identity)


def _offset(record: Record, end: int, alignment: int) -> int:
    """The image's offset, which placement after `end` must confirm."""
    size = len(record.material)
    if not size:
        raise Refusal(f"{record.identity}: its material is empty; nothing is released")
    if size % INSTRUCTION_BYTES:
        raise Refusal(f"{record.identity}: {size} bytes are not whole instructions of {INSTRUCTION_BYTES}")
    offset = place(end, size, alignment)
    if offset != record.offset:
        raise Refusal(
            f"{record.identity}: placed at {record.offset:#x}, but the images before it end at {end:#x}, "
            f"which gives {offset:#x}; place it again"
        )
    return offset


def _manifest(plan: Plan, records: Sequence[Record], arena: bytes) -> dict[str, Any]:
    return {
        "target": plan.target,
        "half_format": plan.half_format,
        "base": plan.base,
        "alignment": plan.alignment,
        "bytes": len(arena),
        "sha256": hashlib.sha256(arena).hexdigest(),
        "admitted": True,
        "images": [_entry(index, record, plan.base, plan.target) for index, record in enumerate(records)],
    }


def on_target(declaration: Mapping[str, Any], target: str) -> dict[str, Any]:
    """What a launch declares, by the target's layout: parameter offsets, and shared bytes with the reserved ones."""
    native, layout = layout_of("sm86"), layout_of(target)
    moved = layout.parameters - native.parameters
    shared = declaration["shared_bytes"]
    return {
        **declaration,
        "parameters": [{**p, "offset": p["offset"] + moved} for p in declaration["parameters"]],
        "shared_bytes": shared + layout.reserved if shared else 0,
    }


def _entry(index: int, record: Record, base: int, target: str) -> dict[str, Any]:
    declared = on_target(record.declaration, target)
    parameters = [{key: p[key] for key in ("name", "kind", "type", "offset")} for p in declared["parameters"]]
    return {
        "identity": record.identity,
        "index": index,
        "offset": record.offset,
        "address": base + record.offset,
        "bytes": len(record.material),
        "instructions": len(record.material) // INSTRUCTION_BYTES,
        "registers": record.registers,
        "block_x": declared["block_x"],
        "shared_bytes": declared["shared_bytes"],
        "dynamic_shared": record.declaration["shared_bytes"] > STATIC_SHARED_BYTES,
        "grid": list(declared["grid"]),
        "parameters": parameters,
        "sha256": hashlib.sha256(record.material).hexdigest(),
        "checks": dict(sorted(record.checks.items())),
    }
