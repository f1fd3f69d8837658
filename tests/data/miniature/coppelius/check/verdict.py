"""An instruction named `hazard` is one."""

from collections.abc import Mapping
from typing import Any


def judge(material: bytes, declaration: Mapping[str, Any]) -> dict[str, Any]:
    words = [material[n : n + 16].rstrip(b".").decode() for n in range(0, len(material), 16)]
    hazards = [n for n, word in enumerate(words) if word == "hazard"]
    schedule = "refused" if hazards else "accepted"
    return {
        "accepted": not hazards,
        "checks": {"schedule": schedule},
        "hazards": hazards,
        "registers": 7,
        "demand": {"general": 7},
        "instructions": len(words),
        "half": declaration["half"],
    }


def describe(identity: str, verdict: dict[str, Any], origin: list[int], lines: str) -> list[str]:
    return [f"{identity}: instruction {origin[n]} is a hazard, {lines.strip()}" for n in verdict["hazards"]]
