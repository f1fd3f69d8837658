"""An image twice: at two stages, at two git revisions, or in two releases.

A revision is taken out of git into a folder of its own and built there as far as the image's words, with
this checkout's store, so that what was once built is not built again.  `.` is the working tree, as last
built.  A manifest is named by its file.  Exit status 0: equal; 1: different, as `diff` has it.
"""

import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from coppelius.cli.built import read_json, unreadable
from coppelius.cli.checkout import find_checkout
from coppelius.cli.identities import complete_identity
from coppelius.cli.output import print_json, unknown
from coppelius.cli.stages import NATIVE, STAGES, listing_of, words_of
from coppelius.isa.refusal import Refusal

DIFFERENT = 1
HERE = "."


@click.command("diff")
@click.argument("identity", shell_complete=complete_identity)
@click.argument("a")
@click.argument("b")
@click.option("--target", default=NATIVE, show_default=True, help="Whose words of a revision are compared.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff_command(identity: str, a: str, b: str, target: str, as_json: bool) -> int:
    """IDENTITY at A and at B: two stages, two git revisions (`.` is the working tree) or two manifest files."""
    root = find_checkout()
    stage = words_of(target)
    first, second = (_lines(root, identity, name, {a, b}, stage) for name in (a, b))
    lines = list(difflib.unified_diff(first, second, a, b, lineterm=""))
    if as_json:
        print_json(identity=identity, target=target, a=a, b=b, equal=first == second, diff=lines)
    else:
        for line in lines:
            click.echo(line)
        if not lines:
            click.echo(f"{identity}: {a} and {b} are equal ({len(first)} lines)")
    return DIFFERENT if lines else 0


def _lines(root: Path, identity: str, name: str, both: set[str], stage: str) -> list[str]:
    """What is compared of one side; of a revision, what `stage` gives."""
    if both <= set(STAGES):
        return listing_of(root, _known(identity), name)
    if both & set(STAGES):
        raise click.UsageError(
            f"{' and '.join(sorted(both))}: a stage is compared with a stage; known: {', '.join(STAGES)}"
        )
    if name != HERE and Path(name).is_file():
        return _released(Path(name), identity)
    if name == HERE:
        return listing_of(root, _known(identity), stage)
    return _at_revision(root, identity, name, stage)


def _known(identity: str) -> str:
    from coppelius.catalog import IMAGES

    known = [image.identity for image in IMAGES]
    if identity not in known:
        unknown("image", identity, known)
    return identity


def _released(path: Path, identity: str) -> list[str]:
    """An image's entry of a manifest, a line a fact."""
    manifest = read_json(path)
    if not isinstance(manifest, dict) or "images" not in manifest:
        raise unreadable(path, "not a manifest")
    images = {image["identity"]: image for image in manifest["images"]}
    if identity not in images:
        unknown("image", identity, images)
    return [f"{key}: {value}" for key, value in _flat("", images[identity])]


def _flat(prefix: str, value: Any) -> Sequence[tuple[str, Any]]:
    if isinstance(value, dict):
        return [pair for key, part in value.items() for pair in _flat(f"{prefix}.{key}".lstrip("."), part)]
    if isinstance(value, list):
        return [pair for n, part in enumerate(value) for pair in _flat(f"{prefix}[{n}]", part)]
    return [(prefix, value)]


def _at_revision(root: Path, identity: str, revision: str, stage: str) -> list[str]:
    """The image's listing, built from a revision's own sources."""
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        raise click.UsageError(f"{revision!r}: neither a stage ({', '.join(STAGES)}), a revision, nor a manifest file")
    with tempfile.TemporaryDirectory(prefix="coppelius-diff-") as folder:
        archive = subprocess.run(["git", "archive", found.stdout.strip()], cwd=root, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        store = os.environ.get("COPPELIUS_STORE", str(root / "cache" / "objects"))
        environment = {**os.environ, "COPPELIUS_STORE": store, "PYTHONPATH": folder}
        step, target = f"{STAGES[stage].step}:{identity}", STAGES[stage].target
        built = subprocess.run(
            [sys.executable, "-m", "doit", *([] if target == NATIVE else [f"targets={target}"]), step],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if built.returncode:
            said = (built.stdout + built.stderr).strip().replace(f"{folder}/", "")
            raise Refusal(f"{revision}: {step} does not build there\n{said}")
        return listing_of(Path(folder), identity, stage)
