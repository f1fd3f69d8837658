"""`coppelius emulate IDENTITY`: an image of the checkout in the emulator, its outputs beside the reference.

The image is made from the checkout's sources as they are, in either half format, through the build's own steps.
Its inputs are seeded; its blocks are a seeded sample at the real grid, all of them with `--blocks 0`.
Memory is always watched: an access outside of its buffer, or a byte that nobody wrote, is a finding.

Exit status 0 where every output is within its bound and nothing was found, 1 where not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from coppelius.cli.commands import REFUSED
from coppelius.cli.identities import complete_identity
from coppelius.cli.output import print_json, print_table, unknown

if TYPE_CHECKING:
    from coppelius.catalog import Image
    from coppelius.cli.judges import Outcome
    from coppelius.cli.trials import Trial
    from coppelius.emulator.launch import Report
    from coppelius.emulator.memory import Memory

_NUMPY = {"f32": "float32", "u32": "uint32", "half": "uint16"}


@click.command("emulate")
@click.argument("identity", shell_complete=complete_identity)
@click.option("--half", type=click.Choice(("bf16", "f16")), default="bf16", show_default=True)
@click.option("--mode", type=click.Choice(("fast", "strict")), default="fast", show_default=True,
              help="strict honours the schedule.")  # fmt: skip
@click.option("--mma", type=click.Choice(("exact", "fast")), default="exact", show_default=True,
              help="exact accumulates as Ampere does.")  # fmt: skip
@click.option("--blocks", type=click.IntRange(0), default=16, show_default=True, help="How many; 0 for all.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the inputs and the sample.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def emulate_command(identity: str, half: str, mode: str, mma: str, blocks: int, seed: int, as_json: bool) -> int:
    """Run the image IDENTITY in the emulator and compare it with its reference."""
    from coppelius.catalog import IMAGES
    from coppelius.cli.trials import trial_of
    from coppelius.emulator.faults import Fault

    image = next((i for i in IMAGES if i.identity == identity), None)
    if image is None:
        unknown("image", identity, [i.identity for i in IMAGES])
    trial = trial_of(identity)
    try:
        outcome, report = _launch(image, trial, half, blocks, seed, mode=mode, mma=mma)
    except Fault as fault:
        if as_json:
            print_json(image=identity, half=half, mode=mode, mma=mma, findings=[asdict(fault.finding)], outputs=[])
        else:
            click.echo(str(fault), err=True)
        return REFUSED
    rows = [(name, int(outcome.written[name].sum()), measured) for name, measured in trial.judge(outcome)]
    good = all(measured for *_, measured in rows)
    if as_json:
        outputs = [{"name": n, "written": w, "good": bool(m), **asdict(m)} for n, w, m in rows]
        print_json(image=identity, half=half, seed=seed, good=good, outputs=outputs, **asdict(report))
    else:
        _print(report, half, rows)
    return 0 if good else REFUSED


def image_material(image: Image, half: str) -> tuple[bytes, list[str]]:
    """The encoded words, and the source line of each."""
    import json

    from coppelius.catalog import declaration
    from coppelius.emit import emit
    from coppelius.lowering.half_format import halve
    from coppelius.program.encoding import encode_listing
    from coppelius.schedule.late_reads import guard

    parameters = declaration(image)["parameters"]
    emitted = emit(image.kernel, image.options, parameters=parameters, registers=image.registers, block_x=image.block_x)
    listing, origin = halve(emitted.listing, half)
    table = json.loads(emitted.lines)
    lines = [f"{table['files'][file]}:{line}" for file, line, _ in (table["lines"][at] for at in origin)]
    return encode_listing(guard(listing)), lines


@dataclass
class _Buffers:
    """A launch's memory: values in the parameters' order, what it may write, and names that the grid uses."""

    memory: Memory
    given: dict[str, Any]
    values: list[Any] = field(default_factory=list)
    out: dict[str, Any] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)


def _launch(image: Image, trial: Trial, half: str, count: int, seed: int, **modes: Any) -> tuple[Outcome, Report]:
    """What some of the image's blocks did with the trial's inputs."""
    import numpy as np

    from coppelius.arena import grid as grids
    from coppelius.catalog import declaration
    from coppelius.cli.judges import Outcome
    from coppelius.emulator.launch import launch
    from coppelius.emulator.parameters import pack_parameters

    random = np.random.default_rng(seed)
    buffers = _place(image, trial, trial.inputs(random, half))
    x, y, z = (grids.evaluate(entry, buffers.names) for entry in image.grid)
    total = x * y * z
    blocks = None if not 0 < count < total else sorted(random.choice(total, count, replace=False).tolist())
    material, lines = image_material(image, half)
    rows = [(p["kind"], p["type"], p["offset"]) for p in declaration(image)["parameters"]]
    report = launch(
        material,
        grid=(x, y, z),
        block=(image.block_x, 1, 1),
        parameters=pack_parameters(rows, buffers.values, buffers.memory),
        memory=buffers.memory,
        shared_bytes=image.shared_bytes,
        blocks=blocks,
        checks=("initcheck", "racecheck", "synccheck"),
        kernel=image.identity,
        lines=lines,
        **modes,
    )
    written = {name: _written(buffers, name, whole=blocks is None) for name in buffers.out}
    return Outcome(buffers.given, buffers.out, written, half), report


def _place(image: Image, trial: Trial, given: dict[str, Any]) -> _Buffers:
    """Inputs read-only, outputs undefined, both at once where the image works in place."""
    import numpy as np

    from coppelius.emulator.memory import Memory

    b = _Buffers(Memory(), given)
    b.names |= {p.name: int(given[p.name]) for p in image.parameters if p.kind == "scalar" and p.type == "u32"}
    for p in image.parameters:
        array = given.get(p.name)
        for name, size in zip(p.dimensions, getattr(array, "shape", ()), strict=False):
            if isinstance(name, str):
                b.names.setdefault(name, size)
    for p in image.parameters:
        if p.kind == "scalar":
            b.values.append(given[p.name])
            continue
        if p.name in given:
            array = np.ascontiguousarray(given[p.name])
            if p.name in trial.in_place:
                b.out[p.name], given[f"{p.name} before"] = array, array.copy()
        else:
            shape = [d if isinstance(d, int) else b.names[d] for d in p.dimensions]
            array = b.out[p.name] = np.zeros(shape, _NUMPY[p.type])
        fresh = p.name in b.out and p.name not in trial.in_place
        b.values.append(b.memory.place(array, p.name, writable=p.name in b.out, undefined=fresh))
    return b


def _written(b: _Buffers, name: str, *, whole: bool) -> Any:
    """Which elements of an output count: what was written or changed; after a whole launch, all."""
    import numpy as np

    array = b.out[name]
    if whole:
        return np.ones(array.shape, bool)
    before = b.given.get(f"{name} before")
    if before is not None:
        word = f"u{array.itemsize}"
        return array.view(word) != before.view(word)
    buffer = next(buffer for buffer in b.memory.buffers if buffer.name == name)
    assert buffer.defined is not None
    return buffer.defined.reshape(*array.shape, array.itemsize).all(axis=-1)


def _print(report: Report, half: str, rows: Sequence[tuple[str, int, Any]]) -> None:
    for finding in report.findings:
        click.echo(str(finding), err=True)
    click.echo(
        f"{report.kernel} ({half}): {report.blocks} blocks of {report.threads} threads, {report.issued} warp "
        f"instructions, {report.seconds:.2f} s ({report.mode}, MMA {report.mma}), {len(report.findings)} findings"
    )
    cells = [
        (name, written, m.rule, f"{m.worst:.3g}", m.failures, "within" if m else f"over, worst at {list(m.index)}")
        for name, written, m in rows
    ]
    print_table(
        ("output", "written", "bound", "share of it", "over", ""), cells, right=("written", "share of it", "over")
    )
