"""The verdict on one image's material: every check, every hazard, JSON-ready; and its words for a reader.

Nothing but the bytes and the launch's declaration is looked at.  A word that does not decode refuses the image
before any other check, because flow and registers are then unknown.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from coppelius.check import fixed_latency, resources, scoreboard, shared_use
from coppelius.check.facts import Facts, facts_of
from coppelius.check.flow import Graph, graph_of
from coppelius.check.hazard import ALONE, Hazard
from coppelius.check.notes import notes_of
from coppelius.check.resources import Demand
from coppelius.isa import codec
from coppelius.isa.codec import Decoded, decode
from coppelius.isa.printer import texts
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table, table_of
from coppelius.isa.targets.layout import layout_of
from coppelius.isa.word import WORD_BYTES, Words, from_bytes

CHECKS = ("scoreboard", "fixed_latency", "resources", "words")
# notes are advice: a reader wants the first ones
MOST_NOTES = 100


def judge(
    material: bytes,
    declaration: Mapping[str, Any],
    *,
    table: Table | None = None,
    targets: Mapping[int, Sequence[int]] | None = None,
) -> dict[str, Any]:
    """The verdict.  `declaration`: registers (None: the demand), shared_bytes, block_x, half, target, each optional.

    `targets`: where each jump through a register may go, by byte offset, where known.
    """
    with _no_collection():
        table = table or table_of(declaration.get("target", "sm86"))
        return _judge(material, _with_reserve(declaration, table), table, targets or {})


def _with_reserve(declaration: Mapping[str, Any], table: Table) -> Mapping[str, Any]:
    """The declaration with its shared bytes counted from address 0, where the target reserves the first ones."""
    shared, reserved = declaration.get("shared_bytes"), layout_of(table.target).reserved
    return {**declaration, "shared_bytes": shared + reserved} if shared and reserved else declaration


@contextmanager
def _no_collection() -> Iterator[None]:
    """Facts are many tuples without a cycle; walking them for garbage took a quarter of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _judge(
    material: bytes, declaration: Mapping[str, Any], table: Table, targets: Mapping[int, Sequence[int]]
) -> dict[str, Any]:
    words = _words(material)
    decoded = decode(table, words)
    undecoded = np.flatnonzero(decoded.uids < 0).tolist()
    if undecoded or not len(words):
        return _verdict(_undecodable(table, words, undecoded), [], decoded, resources.register_demand(decoded), 0)
    facts = facts_of(decoded, words)
    graph = graph_of(facts, _ordinals(targets))
    demand = resources.register_demand(decoded)
    shared = shared_use.shared_use(facts, graph, declaration)
    hazards = [
        *schedule_hazards(facts, graph),
        *resources.resource_hazards(facts, graph, demand, declaration),
        *shared.hazards,
    ]
    notes = [*notes_of(facts, graph), *shared.notes]
    return _verdict(hazards, [note.as_json() for note in notes[:MOST_NOTES]], decoded, demand, shared.proved_bytes)


def schedule_hazards(facts: Sequence[Facts], graph: Graph) -> list[Hazard]:
    """Both schedule checks."""
    return [*scoreboard.scoreboard_hazards(facts, graph), *fixed_latency.fixed_latency_hazards(facts, graph)]


def _ordinals(targets: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    return {at // WORD_BYTES: [t // WORD_BYTES for t in known] for at, known in targets.items()}


def _words(material: bytes) -> Words:
    whole = len(material) // WORD_BYTES * WORD_BYTES
    if whole != len(material):
        raise Refusal(f"material of {len(material)} bytes is not whole {WORD_BYTES}-byte instructions")
    return from_bytes(material)


def _undecodable(table: Table, words: Words, ordinals: Sequence[int]) -> list[Hazard]:
    if not len(words):
        return [Hazard(0, ALONE, "words", "empty", "", 0, 0, "emit at least EXIT", "the material holds no instruction")]
    remedy = "encode it with this target's table"
    return [
        Hazard(i, ALONE, "words", "undecodable", "", 0, 0, remedy, codec.refusal_of(table, words, i)) for i in ordinals
    ]


def _verdict(
    hazards: Sequence[Hazard], notes: list[dict[str, object]], decoded: Decoded, demand: Demand, shared: int
) -> dict[str, Any]:
    refused = {hazard.check for hazard in hazards}
    # nothing can be said of the schedule of words that do not decode
    checks = {name: "refused" if {name, "words"} & refused else "accepted" for name in CHECKS}
    return {
        "accepted": not hazards,
        "checks": checks,
        "hazards": _with_texts(sorted(hazards), decoded),
        "notes": notes,
        "registers": demand.general,
        "demand": vars(demand),
        "instructions": len(decoded.uids),
        "shared_bytes": shared,
    }


def _with_texts(hazards: Sequence[Hazard], decoded: Decoded) -> list[dict[str, object]]:
    """The hazards with the text of both instructions."""
    if not hazards:
        return []
    names = texts(decoded)
    return [
        hazard.as_json()
        | {
            "instruction": names[hazard.ordinal] if hazard.ordinal < len(names) else "",
            "cause_instruction": names[hazard.cause] if hazard.cause != ALONE else None,
        }
        for hazard in hazards
    ]


def describe(
    identity: str, verdict: Mapping[str, Any], origin: Sequence[int] | None = None, lines: str | None = None
) -> list[str]:
    """Three lines a hazard: place (image, offset, instruction, source line), fact, remedy.

    origin: the emitted instruction of each of the material's; lines: the line table's JSON text.
    """
    source = json.loads(lines) if lines else None

    def place(ordinal: int, text: str) -> str:
        emitted = origin[ordinal] if origin is not None and ordinal < len(origin) else ordinal
        line = ""
        if source is not None and 0 <= emitted < len(source["lines"]):
            file, number, region = source["lines"][emitted]
            line = f" ({source['files'][file]}:{number}{f', {region}' if region else ''})"
        return f"{ordinal * WORD_BYTES:#06x} {text}{line}"

    out = []
    for entry in verdict["hazards"]:
        where = place(entry["ordinal"], entry["instruction"])
        after = "" if entry["cause"] == ALONE else f" after {place(entry['cause'], entry['cause_instruction'])}"
        out += [f"{identity}: {where}{after}", f"  {entry['rule']}: {entry['fact']}", f"  remedy: {entry['remedy']}"]
    return out
