"""The table of images: the catalogue's declarations, and where the last release put them."""

from collections.abc import Mapping
from typing import Any

import click

from coppelius.catalog import IMAGES, Image, declaration
from coppelius.cli.checkout import find_checkout
from coppelius.cli.output import print_json, print_table
from coppelius.isa.refusal import Refusal

COLUMNS = ("#", "image", "regs", "block", "shared", "grid", "bytes", "address")
RIGHT = ("#", "regs", "block", "shared", "bytes")


@click.command("images")
@click.option("--target", default="sm86", show_default=True, help="Whose release to read bytes and addresses from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def images_command(target: str, as_json: bool) -> None:
    """The device images in placement order.

    Bytes and addresses are those of the last good release, if there is one.
    """
    placed = _placed(target)
    if as_json:
        print_json(target=target, images=[_entry(n, i, placed.get(i.identity, {})) for n, i in enumerate(IMAGES)])
        return
    rows = [_row(number, image, placed.get(image.identity, {})) for number, image in enumerate(IMAGES)]
    print_table(COLUMNS, rows, right=RIGHT, fold=("grid",))


def _placed(target: str) -> Mapping[str, Mapping[str, Any]]:
    """The released images by identity; none before the first release."""
    from coppelius.cli.built import read_manifest

    root = find_checkout()
    try:
        manifest = read_manifest(root, target)
    except Refusal:
        return {}
    return {image["identity"]: image for image in manifest["images"]}


def _row(number: int, image: Image, placed: Mapping[str, Any]) -> list[object]:
    registers = image.registers or placed.get("registers", "demand")
    address = f"{placed['address']:#x}" if placed else "-"
    grid = " x ".join(str(entry) for entry in image.grid if entry != 1) or "1"
    return [
        number, image.identity, registers, image.block_x, image.shared_bytes, grid, placed.get("bytes", "-"), address,
    ]  # fmt: skip


def _entry(number: int, image: Image, placed: Mapping[str, Any]) -> dict[str, Any]:
    released = {key: placed[key] for key in ("offset", "address", "bytes", "registers", "sha256")} if placed else None
    return {
        "identity": image.identity, "index": number, "kernel": image.kernel, "options": dict(image.options),
        **declaration(image), "released": released,
    }  # fmt: skip
