"""The release's cubins: one step over all images, which touches only the files that change."""

import shutil

import pytest

from coppelius.isa.refusal import Refusal
from tasks.graph import TAKEN, build_graph
from tasks.plan import Plan

FILES = ["coppelius.cubin", *(f"cubins/{image}.cubin" for image in ("fifth", "first", "fourth", "second", "third"))]


def times(mini):
    folder = mini.root / "build/sm86"
    return {file: (folder / file).stat().st_mtime_ns for file in FILES}


def test_there_is_one_of_all_images_and_one_of_each(built):
    folder = built.root / "build/sm86"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.cubin")) == sorted(FILES)
    whole = b"".join((folder / f"cubins/{image}.cubin").read_bytes() for image in
                     ("first", "second", "third", "fourth", "fifth"))  # fmt: skip
    assert (folder / "coppelius.cubin").read_bytes() == whole


def test_an_edit_writes_the_cubin_of_its_image_and_that_of_all(built):
    before = times(built)
    built.edit("coppelius/kernels/halves.py", "* count", "* (count + 16)")  # offsets move after it
    assert "cubin" in built.build().ran
    assert [file for file, time in times(built).items() if time != before[file]] == ["coppelius.cubin", FILES[-1]]


def test_a_damaged_one_alone_is_made_again(built):
    path = built.root / "build/sm86/cubins/third.cubin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    outcome = built.build()
    assert (outcome.ran, outcome.restored) == ([], ["cubin"])
    assert path.read_bytes() == whole


def test_a_refused_release_leaves_the_cubins_of_the_last(built):
    before = {file: (built.root / "build/sm86" / file).read_bytes() for file in FILES}
    built.edit("coppelius/kernels/halves.py", "move half", "hazard")
    outcome = built.build()
    assert (outcome.status, "cubin" in outcome.ran) == (1, False)
    assert {file: (built.root / "build/sm86" / file).read_bytes() for file in FILES} == before


def test_a_release_pruned_by_hand_is_spared(built):
    folder = built.root / "build/sm86"
    shutil.copytree(folder / "cubins", folder / "pruned")
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    built.build()
    assert len(list((folder / "pruned").iterdir())) == 5


@pytest.mark.parametrize("identity", sorted(TAKEN))
def test_no_image_takes_a_folder_that_a_release_has(identity):
    row = {"identity": identity, "kernel": "coppelius.kernels.k:k", "options": {}, "arguments": [], "registers": 24,
           "block_x": 32, "shared_bytes": 0, "declaration": {}}  # fmt: skip
    with pytest.raises(Refusal, match=f"image '{identity}': its identity cannot name a folder and a step"):
        build_graph([row], Plan())
