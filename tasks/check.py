"""Material -> verdict, always: a refused image hides no other.

In a whole build the arena refuses.  A check asked for by name (`doit check:gather`) fails on a refused
verdict, each time it is asked; its lines name the kernel's source, looked up now, so that a moved comment
changes no verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.graph import NATIVE, Step
from tasks.outputs import json_text, read_json
from tasks.step import OBJECTIONS, steps_of


def check(inputs: Sequence[Path], parameters: Mapping[str, Any]) -> tuple[str]:
    from coppelius.check import resources, verdict

    (material,) = inputs
    # a kernel's budget holds for its own words; another target's may need more, and say so
    declared = parameters["registers"] if parameters["target"] == NATIVE else None
    judged = verdict.judge(material.read_bytes(), {**parameters, "registers": declared})
    # what the launch descriptor will carry: as declared, or what the words demand
    demanded = resources.launch_registers(resources.Demand(**judged["demand"]))
    carried = demanded if declared is None else declared
    return (json_text({**judged, "launch_registers": max(carried, parameters["registers"] or 0)}),)


def hazard_lines(folder: Path, verdict: Mapping[str, Any], native_folder: Path) -> list[str]:
    """The hazards of one image for the user; the line tables lie with the native target's listing."""
    from coppelius.check.verdict import describe

    origin = read_json(native_folder / "origin.json")
    if folder != native_folder:
        origin = [origin[i] for i in read_json(folder / "lower.json")]
    lines = (native_folder / "lines.json").read_text(encoding="utf-8")
    return describe(folder.name, dict(verdict), origin, lines)


def objection(root: Path, step: Step) -> list[str]:
    """What a refused verdict says, if it is one."""
    path = root / step.outputs[0]
    verdict = read_json(path)
    if verdict["accepted"]:
        return []
    refused = [name for name, judged in verdict["checks"].items() if judged != "accepted"]
    native = path.parent.parent.with_name(NATIVE) / path.parent.name
    return [f"{step.identity}: refused ({', '.join(refused)})", *hazard_lines(path.parent, verdict, native)]


OBJECTIONS["check"] = objection


def task_check() -> Iterator[dict[str, Any]]:
    """verdict on the machine words"""
    yield from steps_of("check", check)
