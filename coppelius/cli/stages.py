"""What a build left of an image at one stage: its listing, and the source line of each instruction.

The native target's stages have the names of its steps.  Of another target `sm121` is what came out, its
machine words, and `lower_sm121` the listing that they were encoded from.  Words are decoded by the target's
own table.

Guarding moves no instruction; halving and lowering may, and their tables say which instruction before them
each one came from.
"""

from pathlib import Path
from typing import Any, NamedTuple

from coppelius.cli.built import read_json, unreadable
from coppelius.isa.refusal import Refusal
from coppelius.isa.targets.layout import LAYOUTS

NATIVE = "sm86"


class Stage(NamedTuple):
    step: str  # of the build, without the image's name
    target: str
    file: str

    @property
    def of_words(self) -> bool:
        return self.file.endswith(".bin")


_others = [target for target in LAYOUTS if target != NATIVE]
STAGES = {
    "emit": Stage("emit", NATIVE, "emit.sass"),
    "halve": Stage("halve", NATIVE, "halve.sass"),
    "guard": Stage("guard", NATIVE, "guard.sass"),
    "encode": Stage("encode", NATIVE, "material.bin"),
    **{target: Stage(f"encode_{target}", target, "material.bin") for target in _others},
    **{f"lower_{target}": Stage(f"lower_{target}", target, "lower.sass") for target in _others},
}


def words_of(target: str) -> str:
    """The stage that gives a target's machine words."""
    if target != NATIVE and target not in STAGES:
        raise Refusal(f"target {target!r}: not one we build; known: {', '.join(LAYOUTS)}")
    return "encode" if target == NATIVE else target


def stage_file(root: Path, identity: str, name: str) -> Path:
    """What a stage left; refuses where it has not run."""
    stage = STAGES[name]
    path = root / "build" / stage.target / identity / stage.file
    if not path.is_file():
        plan = "" if stage.target == NATIVE else f"targets={stage.target} "
        raise Refusal(f"{identity}: not built as far as {name}; run doit {plan}{stage.step}:{identity}")
    return path


def listing_of(root: Path, identity: str, name: str) -> list[str]:
    """The instructions' lines after a stage, without the listing's header."""
    path, stage = stage_file(root, identity, name), STAGES[name]
    if stage.of_words:
        from coppelius.program.listing import listing_lines
        from coppelius.program.program import Program

        return listing_lines(Program.decode(path.read_bytes(), _table(stage.target)))
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("[")]


def _table(target: str) -> Any:
    if target == NATIVE:
        return None  # the decoder's own
    from coppelius.isa.table import table_of

    return table_of(target)


def source_lines(root: Path, identity: str, name: str, count: int) -> list[str]:
    """`file:line` for each instruction, or nothing where it is not known."""
    native = root / "build" / NATIVE / identity
    path = native / "lines.json"
    if not path.is_file():
        return [""] * count
    table = read_json(path)
    emitted = [f"{table['files'][file]}:{line}" for file, line, _region in table["lines"]]
    origin = list(range(len(emitted))) if name == "emit" else read_json(native / "origin.json")
    stage = STAGES[name]
    if stage.target != NATIVE:
        lowered = read_json(root / "build" / stage.target / identity / "lower.json")
        origin = [None if ordinal is None else origin[ordinal] for ordinal in lowered]
    if len(origin) != count:
        raise unreadable(path, f"{len(origin)} lines for {count} instructions")
    return [emitted[ordinal] if ordinal is not None else "" for ordinal in origin]
