"""A release as cubins, as `doit` writes them: one of all images, one of each; or of the images that launches name.

The files lie in build/<target>/: `coppelius.cubin`, `cubins/<identity>.cubin`.  With a launch list the pruned release
lies in `pruned/` there, beside the whole one, and an earlier pruned one makes room for it.  `--out` names another
folder.  Files that hold the same bytes already are left alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from coppelius.arena.pruning import prune
from coppelius.cli.built import read_manifest
from coppelius.cli.checkout import find_checkout
from coppelius.cli.identities import complete_identity
from coppelius.cli.output import print_json, suggestion, unknown
from coppelius.container.launches import launched, parse_launches
from coppelius.container.release import cubins_of
from coppelius.isa.refusal import Refusal

Manifest = Mapping[str, Any]


@click.command("cubin")
@click.argument("identities", nargs=-1, shell_complete=complete_identity)
@click.option("--target", default="sm86", show_default=True, help="Whose release to read.")
@click.option(
    "--launches",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Leave out what none of these names.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write here, not into build/<target>.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cubin_command(
    identities: tuple[str, ...], target: str, launches: Path | None, out: Path | None, as_json: bool
) -> None:
    """Write the release as cubins that the CUDA driver loads; with IDENTITIES those of these images alone."""
    root = find_checkout()
    manifest, arena = _release(root, target)
    folder = out or root / "build" / target
    written: dict[str, bytes] = {}
    if launches is not None:
        if identities:
            raise click.UsageError("a launch list names the images already; give it alone")
        pruned = prune(manifest, arena, _named(launches, manifest))
        manifest, arena = pruned.manifest, pruned.arena
        folder = out or folder / "pruned"
        written = {"arena.bin": arena, "manifest.json": pruned.manifest_bytes}
    known = [image["identity"] for image in manifest["images"]]
    for identity in identities:
        if identity not in known:
            unknown("image", identity, known)
    whole, *each = cubins_of(manifest, arena)
    if not identities:
        written["coppelius.cubin"] = whole
    for identity, content in zip(known, each, strict=True):
        if not identities or identity in identities:
            written[f"cubins/{identity}.cubin"] = content
    _write(folder, written, alone=launches is not None and out is None)
    names = [_shown(folder / name, root) for name in written]
    if as_json:
        print_json(target=target, files=names)
    else:
        click.echo("\n".join(names))


def _release(root: Path, target: str) -> tuple[Manifest, bytes]:
    manifest = read_manifest(root, target)
    path = root / "build" / target / "arena.bin"
    if not path.is_file():
        raise Refusal(f"{_shown(path, root)} is missing, run doit targets={target}")
    return manifest, path.read_bytes()


def _named(path: Path, manifest: Manifest) -> list[str]:
    """The images that the list names, in the release's order."""
    known = {image["identity"]: [p["name"] for p in image["parameters"]] for image in manifest["images"]}
    try:
        listed = parse_launches(path.read_text(encoding="utf-8"))
        for number, launch in enumerate(listed):
            if launch.identity not in known:
                near = suggestion(launch.identity, list(known))
                raise Refusal(f"launch {number}: no image {launch.identity!r} in the release{near}")
        if not listed:
            raise Refusal("no launch, so that nothing would be left")
        return launched(listed, known)
    except Refusal as error:
        raise Refusal(f"{path}: {error}") from None


def _write(folder: Path, contents: Mapping[str, bytes], *, alone: bool) -> None:
    """Writes what differs; `alone`: cubins that are not among these go."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
    for path in (folder / "cubins").glob("*.cubin") if alone else ():
        if f"cubins/{path.name}" not in contents:
            path.unlink()


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
