"""`coppelius run FILE --kernel NAME`: a kernel of any cubin, executed by the emulator.

Parameters are given in order: a path to a .npy file is a pointer to that array, which is written back unless `--out`
names another folder; `zeros:f32[300]` is a pointer to fresh zeros, `undefined:f32[300]` the same with contents that
nobody set; `u32:5` and `f32:1.5` are scalars; `bytes:0a0b` a structure.  Arrays are little-endian, as they lie.

Exit status 0 where nothing was found, 1 where something was, 2 where the request makes no launch.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coppelius.cli.commands import REFUSED, UNUSABLE
from coppelius.cli.output import is_plain, print_json, unknown
from coppelius.isa.refusal import Refusal

if TYPE_CHECKING:
    import numpy as np

    from coppelius.emulator.launch import Report

# the names of types here and in numpy; bf16 has none there and comes and goes as its 16 bits
_TYPES = {
    **{f"{sign}{bits}": f"{sign.replace('s', 'i')}{bits // 8}" for sign in "us" for bits in (8, 16, 32, 64)},
    **{"f16": "f2", "f32": "f4", "f64": "f8", "bf16": "u2"},
}
_FRESH = re.compile(r"(zeros|undefined):(\w+)\[(\d+(?:,\d+)*)\]")
_SCALAR = re.compile(r"(\w+):(.+)")
_AFTER, _EVERY = 2.0, 0.2  # seconds until progress shows, and between its lines
_SANITIZERS = ("memcheck", "initcheck", "racecheck", "synccheck")


class Unusable(click.ClickException):
    """A request that makes no launch."""

    exit_code = UNUSABLE


@dataclass
class Argument:
    """One parameter: its value, and for arrays the file it came from or goes to."""

    text: str
    value: Any
    file: Path | None = None
    undefined: bool = False


def _size(_context: click.Context, _option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise click.BadParameter(f"{text!r}: write one to three positive numbers, 16 or 16,4")
    return sizes


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--kernel", "name", metavar="NAME", help="The kernel; may be left out where there is one.")
@click.option("--grid", default="1", show_default=True, callback=_size, help="Blocks: x or x,y or x,y,z.")
@click.option("--block", default="32", show_default=True, callback=_size, help="Threads of a block, likewise.")
@click.option("--shared", default=0, show_default=True, help="Bytes of dynamic shared memory.")
@click.option(
    "--param",
    "texts",
    multiple=True,
    metavar="VALUE",
    help="The next parameter: FILE.npy, zeros:f32[300], u32:5, f32:1.5, bytes:0a0b.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write arrays here, not back.")
@click.option(
    "--mode",
    type=click.Choice(("fast", "strict")),
    default="fast",
    show_default=True,
    help="strict honours the schedule.",
)
@click.option(
    "--mma",
    type=click.Choice(("exact", "fast")),
    default="exact",
    show_default=True,
    help="exact accumulates as Ampere does.",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    type=click.Choice((*_SANITIZERS, "all", "none")),
    help="Sanitizers beside memcheck; all if not said.",
)
@click.option("--steps", default=2_000_000, show_default=True, help="Steps a batch of blocks may take.")
@click.option("--seconds", type=float, help="Seconds the launch may take.")
@click.option("--collect", is_flag=True, help="Go on after a finding.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def run_command(
    file: Path,
    name: str | None,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    texts: Sequence[str],
    out: Path | None,
    mode: str,
    mma: str,
    checks: Sequence[str],
    steps: int,
    seconds: float | None,
    collect: bool,
    as_json: bool,
) -> int:
    """Run a kernel of a cubin in the emulator; no GPU is needed.

    \b
    coppelius run saxpy.cubin --kernel saxpy --grid 3 --block 128 \\
        --param y.npy --param x.npy --param f32:2 --param u32:300
    """
    from coppelius.emulator.faults import Fault
    from coppelius.emulator.module import Module

    arguments = [_argument(text) for text in texts]
    module = Module(_cubin(file, name))
    name = _name(module, name)
    for argument in arguments:
        if hasattr(argument.value, "shape"):
            module.memory.place(argument.value, argument.text, undefined=argument.undefined)
    options: dict[str, Any] = {"mode": mode, "mma": mma, "limit": steps, "seconds": seconds, "collect": collect}
    try:
        report = module.launch(
            name,
            grid,
            block,
            *(argument.value for argument in arguments),
            shared=shared,
            checks=_checks(checks),
            progress=_progress(as_json),
            **options,
        )
    except Fault as fault:
        if as_json:
            print_json(kernel=name, mode=mode, mma=mma, findings=[asdict(fault.finding)])
        else:
            click.echo(str(fault), err=True)
        return REFUSED
    except Refusal as refusal:
        raise Unusable(str(refusal)) from None
    written = _write(arguments, out)
    _print(report, written, as_json)
    return REFUSED if report.findings else 0


def _cubin(file: Path, name: str | None) -> Any:
    """The cubin of a file that holds the kernel: the file itself, or the first that has it."""
    from coppelius.container.cubin import read_cubin
    from coppelius.container.fatbin import cubins_in

    try:
        found = [read_cubin(image, origin) for image, origin in cubins_in(file, relocatable=True)]
    except Refusal as refusal:
        raise Unusable(str(refusal)) from None
    if not found:
        raise Unusable(f"{file.name}: holds no cubin for sm_86")
    other = next((cubin.architecture for cubin in found if cubin.architecture != 86), None)
    if other is not None:
        raise Unusable(f"{file.name}: is for sm_{other}; the emulator runs sm_86")
    having = (cubin for cubin in found if any(k.name == name and k.is_entry for k in cubin.kernels))
    return next(having, found[0])


def _name(module: Any, name: str | None) -> str:
    known = list(module.kernels)
    if name is None and len(known) == 1:
        return str(known[0])
    if name is None:
        raise click.UsageError(f"say which --kernel; the file holds {', '.join(known) or 'none'}")
    if name not in module.kernels:
        unknown("kernel", name, known)
    return name


def _argument(text: str) -> Argument:
    """One parameter by its text."""
    import numpy as np

    fresh = _FRESH.fullmatch(text)
    if fresh is not None:
        kind, shape = _type(fresh[2], text), tuple(map(int, fresh[3].split(",")))
        return Argument(text, np.zeros(shape, kind), undefined=fresh[1] == "undefined")
    if text.endswith(".npy"):
        return Argument(text, _array(Path(text)), Path(text))
    scalar = _SCALAR.fullmatch(text)
    if scalar is None:
        raise click.UsageError(f"--param {text}: write FILE.npy, zeros:f32[300], u32:5, f32:1.5 or bytes:0a0b")
    try:
        if scalar[1] == "bytes":
            return Argument(text, bytes.fromhex(scalar[2]))
        kind = _type(scalar[1], text)
        if kind.kind == "f":
            return Argument(text, kind.type(float(scalar[2])))
        return Argument(text, np.array([int(scalar[2], 0)]).astype(object).astype(kind)[0])
    except (ValueError, OverflowError):
        raise click.UsageError(f"--param {text}: {scalar[2]} is no {scalar[1]}") from None


def _type(name: str, text: str) -> np.dtype[Any]:
    import numpy as np

    if name not in _TYPES:
        raise click.UsageError(f"--param {text}: no type {name}; known: {', '.join(_TYPES)}")
    return np.dtype(f"<{_TYPES[name]}")


def _array(path: Path) -> Any:
    import numpy as np

    try:
        return np.ascontiguousarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise Unusable(f"{path}: {error}") from None


def _checks(names: Sequence[str]) -> tuple[str, ...]:
    if not names or "all" in names:
        return _SANITIZERS[1:]
    return tuple(name for name in names if name in _SANITIZERS[1:])


def _write(arguments: Sequence[Argument], out: Path | None) -> list[str]:
    """Writes the arrays: back to their files, or as files of the folder (fresh ones only there, as N.npy)."""
    import numpy as np

    written = []
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    for number, argument in enumerate(arguments):
        if not hasattr(argument.value, "shape") or not argument.value.shape:
            continue
        target = argument.file
        if out is not None:
            target = out / (f"{number}.npy" if argument.file is None else argument.file.name)
        if target is not None:
            np.save(target, argument.value)
            written.append(str(target))
    return written


def _progress(quiet: bool) -> Callable[[int, int, int], None] | None:
    """Tells on a terminal how many blocks are done, once a launch takes long."""
    if quiet or is_plain() or not sys.stderr.isatty():
        return None
    started = told = time.monotonic()

    def tell(done: int, total: int, steps: int) -> None:
        nonlocal told
        now = time.monotonic()
        over = done == total
        if now - started < _AFTER or (now - told < _EVERY and not over):
            return
        told = now
        left = f", {(now - started) / done * (total - done):.0f} s left" if done else ""
        click.echo(f"\r{done} of {total} blocks, {steps} steps of the next{left}\033[K", nl=over, err=True)

    return tell


def _print(report: Report, written: Sequence[str], as_json: bool) -> None:
    data = asdict(report)
    if as_json:
        print_json(**data, wrote=list(written))
        return
    for finding in report.findings:
        click.echo(str(finding), err=True)
    click.echo(
        f"{report.kernel}: {report.blocks} blocks of {report.threads} threads, {report.issued} warp instructions, "
        f"{report.seconds:.2f} s ({report.mode}, MMA {report.mma}), {len(report.findings)} findings"
    )
    for path in written:
        click.echo(f"wrote {path}")
