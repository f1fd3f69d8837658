"""The images beside their plain CUDA versions by nvcc: the same results of one block, and both costs in the model."""

import compiled
import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import catalog
from coppelius.program.cycles import MEMORY_CYCLES
from coppelius.program.program import Program

IMAGES = catalog.IMAGES[:29]
# goal: modelled cycles an element, ours over nvcc's, of one warp with loads of 32 and of 400 cycles
MOST = 1.05
# two of each shape of code; `tests/bench/bench_kernels.py` has them all
SOME = ("scale", "gated-gelu-backward", "layernorm-backward", "transpose-g8-r1024-c64", "head-to-token")
TOLERANCE = 2.0**-7  # a bf16 step: where nvcc contracts other products than ours


def test_every_image_of_the_list_has_a_compiled_version() -> None:
    assert set(compiled.kernels()) == {image.identity for image in IMAGES}
    for image in IMAGES:
        kernel = compiled.kernels()[image.identity]
        assert len(Program.decode(kernel.code)) > 10
        assert kernel.max_threads is None or kernel.max_threads[0] == image.block_x, image.identity
        wanted = [(p["offset"], 8 if p["kind"] == "pointer" or p["type"] == "u64" else 4) for p in _parameters(image)]
        there = [(kernel.parameter_base + p.offset, p.size) for p in kernel.parameters]
        assert there == wanted, image.identity


def _parameters(image: catalog.Image) -> list[dict[str, object]]:
    found: list[dict[str, object]] = catalog.declaration(image)["parameters"]
    return found


def numbers(array: NDArray[np.generic]) -> NDArray[np.float64]:
    """f32 as it is, halves widened, words as numbers."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


@pytest.mark.parametrize("image", compiled.SMALL, ids=[i.identity for i in compiled.SMALL])
def test_both_compute_the_same(image: catalog.Image) -> None:
    kernel = compiled.kernels()[image.identity]
    ours = compiled.run(image, harness.material(image.identity, compiled.HALF), image.shared_bytes)
    theirs = compiled.run(image, kernel.code, kernel.shared)
    before = compiled.buffers(image)
    assert any((ours.arrays[name] != before[name]).any() for name in before)
    for name, array in ours.arrays.items():
        np.testing.assert_allclose(
            numbers(array), numbers(theirs.arrays[name]), rtol=TOLERANCE, atol=1e-6, err_msg=name
        )
    assert len(ours.path) < 2 * len(theirs.path)


@pytest.mark.parametrize("identity", SOME)
def test_ours_takes_no_longer(identity: str) -> None:
    image = harness.image(identity)
    ours, theirs = compiled.costs(image)
    assert min(ours.cycles.values()) > 10
    for memory in MEMORY_CYCLES:
        assert ours.cycles[memory, False] <= MOST * theirs.cycles[memory, False], f"loads of {memory} cycles"


def test_a_path_is_what_one_warp_issued() -> None:
    image = harness.image("scale")
    material = harness.material("scale", compiled.HALF)
    path = compiled.run(image, material, 0).path
    program = Program.decode(material)
    # the quad's code once, in order, and not the tail's
    assert path == sorted(set(path))
    assert [program[i].encoding.mnemonic.split(".")[0] for i in path].count("STG") == 1
    assert len(path) < len(program)
