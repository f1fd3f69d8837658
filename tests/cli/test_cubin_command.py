"""`coppelius cubin`: the release as files for the driver, whole, of some images, or pruned to what launches name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coppelius.arena.release import Plan, Record, make_release
from coppelius.catalog import IMAGES, declaration
from coppelius.cli import commands
from coppelius.container.cubin import read_cubin
from coppelius.container.release import cubins_of
from coppelius.program.listing import parse_listing

CODE = parse_listing(
    ".target sm86\n[B------:R-:W-:-:S05] FADD R0, R1, R2\n[B------:R-:W-:-:S05] EXIT\n"
).encode()  # fmt: skip
CHOSEN = [image for image in IMAGES if image.identity in ("fill", "gather", "layernorm-forward")]
NAMES = [image.identity for image in CHOSEN]


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def outcome(*arguments: object) -> Outcome:
        status = commands.run(["cubin", *map(str, arguments)])
        return Outcome(status, *capsys.readouterr())

    return outcome


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a release of three images for sm86, another for sm80."""
    (tmp_path / "coppelius").mkdir()
    for file in ("dodo.py", "coppelius/catalog.py"):
        (tmp_path / file).touch()
    monkeypatch.chdir(tmp_path)
    for target in ("sm86", "sm80"):
        records = [
            Record(i.identity, CODE, 256 * n, 12, declaration(i), {"all": "accepted"}) for n, i in enumerate(CHOSEN)
        ]
        made = make_release(Plan(target, "bf16", 0x100000000, 256), records)
        folder = tmp_path / "build" / target
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_bytes(made.manifest_bytes)
        (folder / "arena.bin").write_bytes(made.arena)
    return tmp_path


def launches(root: Path, *identities: str) -> Path:
    path = root / "launches.json"
    rows = [{"identity": identity, "grid": [1, 1, 1], "parameters": {}} for identity in identities]
    path.write_text(json.dumps({"version": 1, "launches": rows}))
    return path


def kernels(path: Path) -> list[str]:
    return [kernel.name for kernel in read_cubin(path.read_bytes()).kernels]


def test_the_whole_release(root: Path, call: Callable[..., Outcome]) -> None:
    made = call()
    files = ["coppelius.cubin", *(f"cubins/{name}.cubin" for name in NAMES)]
    assert (made.status, made.err) == (0, "")
    assert made.out.splitlines() == [f"build/sm86/{file}" for file in files]
    assert kernels(root / "build/sm86/coppelius.cubin") == ["fill", "gather", "layernorm_forward"]
    assert kernels(root / "build/sm86/cubins/layernorm-forward.cubin") == ["layernorm_forward"]
    manifest: dict[str, Any] = json.loads((root / "build/sm86/manifest.json").read_text())
    expected = cubins_of(manifest, (root / "build/sm86/arena.bin").read_bytes())
    assert [(root / "build/sm86" / file).read_bytes() for file in files] == expected


def test_files_that_are_right_are_left_alone(root: Path, call: Callable[..., Outcome]) -> None:
    call()
    path = root / "build/sm86/cubins/fill.cubin"
    before = path.stat().st_mtime_ns
    path.with_name("gather.cubin").write_bytes(b"")
    assert call().status == 0
    assert path.stat().st_mtime_ns == before
    assert kernels(path.with_name("gather.cubin")) == ["gather"]


def test_some_images_of_another_target(root: Path, call: Callable[..., Outcome]) -> None:
    made = call("--target", "sm80", "gather", "--json")
    assert json.loads(made.out) == {"version": 1, "target": "sm80", "files": ["build/sm80/cubins/gather.cubin"]}
    assert read_cubin((root / "build/sm80/cubins/gather.cubin").read_bytes()).architecture == 80
    assert not (root / "build/sm80/coppelius.cubin").exists()
    assert not (root / "build/sm86/cubins").exists()


def test_a_pruned_release_lies_beside_the_whole_one(root: Path, call: Callable[..., Outcome]) -> None:
    call()
    folder = root / "build/sm86"
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    call("--launches", launches(root, "fill"))
    made = call("--launches", launches(root, "layernorm-forward", "gather", "gather"))
    files = ["arena.bin", "manifest.json", "coppelius.cubin", "cubins/gather.cubin", "cubins/layernorm-forward.cubin"]
    assert made.out.splitlines() == [f"build/sm86/pruned/{file}" for file in files]
    assert {path: path.read_bytes() for path in whole} == whole
    pruned = json.loads((folder / "pruned/manifest.json").read_text())
    assert [(i["identity"], i["address"]) for i in pruned["images"]] == [
        ("gather", 0x100000000), ("layernorm-forward", 0x100000100)
    ]  # fmt: skip
    assert (folder / "pruned/arena.bin").stat().st_size == 256 + len(CODE)
    assert kernels(folder / "pruned/coppelius.cubin") == ["gather", "layernorm_forward"]
    assert not (folder / "pruned/cubins/fill.cubin").exists()  # of the list before


def test_another_folder_is_made(root: Path, call: Callable[..., Outcome]) -> None:
    made = call("--out", root / "new" / "folder", "fill")
    assert (made.status, made.out) == (0, "new/folder/cubins/fill.cubin\n")
    assert kernels(root / "new/folder/cubins/fill.cubin") == ["fill"]
    assert not (root / "build/sm86/cubins").exists()


REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    (("gathr",), 2, "coppelius cubin: no image 'gathr'; nearest: gather\n"),
    (("--target", "sm121"), 1, "coppelius: no release for sm121 yet, run doit targets=sm121; built: sm80, sm86\n"),
    (("fill", "--launches", "launches.json"), 2,
     "coppelius cubin: a launch list names the images already; give it alone\n"),
    (("--launches", "launches.json"), 1,
     "coppelius: launches.json: launch 1: no image 'gathr' in the release; nearest: gather\n"),
    (("--launches", "none.json"), 1, "coppelius: none.json: no launch, so that nothing would be left\n"),
    (("--launches", "dodo.py"), 1, "coppelius: dodo.py: launch list: Expecting value: line 1 column 1 (char 0)\n"),
    (("--out", "dodo.py/below"), 2, "coppelius: dodo.py/below: Not a directory\n"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "status", "said"), REFUSED)
def test_refusals(root: Path, call: Callable[..., Outcome], arguments: tuple[str, ...], status: int, said: str) -> None:
    launches(root).rename(root / "none.json")
    launches(root, "fill", "gathr")
    made = call(*arguments)
    assert (made.status, made.out, made.err) == (status, "", said)
    assert [
        path.name for path in (root / "build/sm86").iterdir() if path.name not in ("arena.bin", "manifest.json")
    ] == []


def test_an_arena_that_is_gone_is_named(root: Path, call: Callable[..., Outcome]) -> None:
    (root / "build/sm86/arena.bin").unlink()
    made = call()
    assert (made.status, made.err) == (1, "coppelius: build/sm86/arena.bin is missing, run doit targets=sm86\n")
