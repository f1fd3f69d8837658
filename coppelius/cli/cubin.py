"""Cubins of a release: every image as a kernel of one file, or one file an image; of the images that launches name.

The files lie in build/<target>/: `coppelius.cubin`, `<identity>/<identity>.cubin`; with a launch list the pruned
release lies in `pruned/`, beside the whole one.
"""

from pathlib import Path

import click

from coppelius.arena.pruning import prune
from coppelius.cli.built import read_manifest
from coppelius.cli.checkout import find_checkout
from coppelius.cli.identities import complete_identity
from coppelius.cli.output import print_json
from coppelius.container.image import find_image, images_of
from coppelius.container.launches import launched, parse_launches
from coppelius.container.writer import write_cubin
from coppelius.isa.refusal import Refusal


@click.command("cubin")
@click.argument("identities", nargs=-1, shell_complete=complete_identity)
@click.option("--target", default="sm86", show_default=True, help="Whose release to read.")
@click.option("--each", is_flag=True, help="One file for each image as well.")
@click.option(
    "--launches",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Leave out what none of these names.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cubin_command(identities: tuple[str, ...], target: str, each: bool, launches: Path | None, as_json: bool) -> None:
    """Write the release as a cubin that the CUDA driver loads; with IDENTITIES, one file for each of these."""
    root = find_checkout()
    folder = root / "build" / target
    manifest = read_manifest(root, target)
    arena = (folder / "arena.bin").read_bytes()
    written = {}
    if launches is not None:
        if identities:
            raise Refusal("a launch list names the images already; give it alone")
        named = launched(parse_launches(launches.read_text()), [image["identity"] for image in manifest["images"]])
        if not named:
            raise Refusal(f"{launches}: no launch, so that nothing would be left")
        release = prune(manifest, arena, named)
        folder /= "pruned"
        written = {folder / "arena.bin": release.arena, folder / "manifest.json": release.manifest_bytes}
        manifest, arena = release.manifest, release.arena
    images = images_of(manifest, arena)
    chosen = [find_image(images, identity) for identity in identities]
    if not chosen:
        written[folder / "coppelius.cubin"] = write_cubin(images)
    for image in images if each else chosen:
        written[folder / image.identity / f"{image.identity}.cubin"] = write_cubin([image])
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    names = [str(path.relative_to(root)) for path in written]
    if as_json:
        print_json(target=target, files=names)
    else:
        click.echo("\n".join(names))
