"""An image's device address, from the last good release.

The Python function answers 0 for an unknown image; asked by a person, an unknown image is an error.
"""

import click

from coppelius.arena.addresses import address
from coppelius.cli.built import read_manifest
from coppelius.cli.checkout import find_checkout
from coppelius.cli.identities import complete_identity
from coppelius.cli.output import print_json, unknown


@click.command("address")
@click.argument("identity", shell_complete=complete_identity)
@click.option("--target", default="sm86", show_default=True, help="Whose release to read.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def address_command(identity: str, target: str, as_json: bool) -> None:
    """Where IDENTITY lies in device memory: program base + offset."""
    manifest = read_manifest(find_checkout(), target)
    where = address(manifest, identity)
    if where == 0:
        unknown("image", identity, [image["identity"] for image in manifest["images"]])
    if as_json:
        print_json(identity=identity, target=target, address=where)
    else:
        click.echo(f"{where:#x}")
