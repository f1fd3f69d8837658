"""The table of images: the catalogue's declarations, and what the last release of a target made of them."""

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
@click.option("--target", default="sm86", show_default=True, help="Whose release to read.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def images_command(target: str, as_json: bool) -> None:
    """The device images in placement order.

    Registers, shared bytes, bytes and addresses are those of the target's last good release, if there is one.
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
    registers = placed.get("registers", image.registers) or "demand"
    shared = placed.get("shared_bytes", image.shared_bytes)
    address = f"{placed['address']:#x}" if placed else "-"
    grid = " x ".join(str(entry) for entry in image.grid if entry != 1) or "1"
    return [
        number, image.identity, registers, image.block_x, shared, grid, placed.get("bytes", "-"), address,
    ]  # fmt: skip


def _entry(number: int, image: Image, placed: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("offset", "address", "bytes", "registers", "shared_bytes", "sha256")
    released = {key: placed[key] for key in keys} if placed else None
    return {
        "identity": image.identity, "index": number, "kernel": image.kernel, "options": dict(image.options),
        **declaration(image), "released": released,
    }  # fmt: skip
