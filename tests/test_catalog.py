"""The rows against the published table, and each defect of a row against its refusal."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from coppelius import catalog, model
from coppelius.arena import grid
from coppelius.catalog import (
    IMAGES,
    Image,
    Parameter,
    admit,
    declaration,
    parameter_offsets,
    parse_parameters,
)
from coppelius.isa.refusal import Refusal

# identity: registers, block, shared bytes, as the specification's table gives them (None: demand)
# fmt: off
PUBLISHED = {
    "random-normal":          (24, 256, 0),
    "rotary-table":           (None, 256, 0),
    "fill":                   (16, 256, 0),
    "copy":                   (24, 256, 0),
    "cast-down":              (24, 256, 0),
    "cast-up":                (24, 256, 0),
    "add":                    (24, 256, 0),
    "scale":                  (24, 256, 0),
    "argmax":                 (64, 256, 96),
    "gather":                 (40, 128, 0),
    "layernorm-forward":      (40, 128, 128),
    "qk-rope":                (64, 128, 0),
    "value-transpose":        (24, 512, 0),
    "head-to-token":          (32, 256, 0),
    "token-to-head":          (32, 256, 0),
    "inverse-rope-qkv":       (64, 128, 0),
    "softmax-forward":        (32, 256, 128),
    "softmax-backward":       (32, 256, 128),
    "layernorm-backward":     (48, 128, 128),
    "layernorm-parameters":   (40, 512, 128),  # the block is the kernel's own choice
    "cross-entropy":          (48, 256, 128),
    "cross-entropy-backward": (40, 256, 0),
    "embedding-scatter":      (40, 512, 0),
    "adamw":                  (40, 256, 0),  # registers and block are the kernel's own choice
    "gated-gelu-forward":     (24, 256, 0),  # the same
    "gated-gelu-backward":    (40, 256, 0),  # the same
    "transpose-g8-r1024-c64": (40, 128, 0),  # the block is the kernel's own choice
    "transpose-g8-r64-c1024": (40, 128, 0),  # the same
    "loss-target-gather":     (None, 256, 0),
    "attention-forward":      (255, 128, 0),  # registers and block are the kernel's own choice
    "attention-query":        (255, 128, 0),  # the same
    "attention-key":          (255, 128, 0),  # the same
    # of the tile that the record chooses
    "tiled-rr-m1024-n1536-k512":     (80, 128, 32768),
    "tiled-rr-m1024-n512-k512-add":  (80, 256, 49152),
    "tiled-rr-m1024-n1408-k512":     (80, 128, 32768),
    "tiled-rr-m1024-n512-k1408-add": (80, 256, 49152),
    "tiled-rr-m1024-n12288-k512":    (80, 256, 49152),
    "tiled-rc-m1024-n512-k1536":     (80, 256, 49152),
    "tiled-rc-m1024-n512-k512":      (80, 256, 49152),
    "tiled-rc-m1024-n512-k1408":     (80, 256, 49152),
    "tiled-rc-m1024-n512-k1408-add": (80, 256, 49152),
    "tiled-rc-m1024-n1408-k512":     (80, 128, 32768),
    "tiled-rc-m1024-n512-k12288":    (80, 256, 49152),
    "tiled-cc-m1536-n512-k1024":     (80, 128, 32768),
    "tiled-cc-m512-n512-k1024":      (80, 128, 32768),
    "tiled-cc-m1408-n512-k1024":     (80, 128, 32768),
    "tiled-cc-m512-n1408-k1024":     (80, 128, 32768),
    "tiled-cc-m12288-n512-k1024":    (80, 128, 32768),
}
# fmt: on
ROOT = Path(__file__).resolve().parents[1]
BY_NAME = {image.identity: image for image in IMAGES}
ADD = BY_NAME["add"]


def test_rows_are_the_published_ones_in_placement_order() -> None:
    assert {i.identity: (i.registers, i.block_x, i.shared_bytes) for i in IMAGES} == PUBLISHED
    assert [i.identity for i in IMAGES] == list(PUBLISHED)


def test_offsets_align_pointers_and_u64_to_eight_bytes() -> None:
    parameters = parse_parameters("out f32[n]; count u32; std f32; seed u64; stream u32; next f32[n]")
    assert [hex(offset) for offset in parameter_offsets(parameters)] == [
        "0x160", "0x168", "0x16c", "0x170", "0x178", "0x180",
    ]  # fmt: skip
    assert catalog.parameter_bytes(parameters) == 0x28
    assert catalog.parameter_bytes(()) == 0


def test_declaration_of_a_row_in_full() -> None:
    assert declaration(BY_NAME["scale"]) == {
        "registers": 24,
        "block_x": 256,
        "shared_bytes": 0,
        "grid": ["ceil_div(count, 1024)", 1, 1],
        "parameters": [
            {"name": "out", "kind": "pointer", "type": "f32", "offset": 0x160},
            {"name": "a", "kind": "pointer", "type": "f32", "offset": 0x168},
            {"name": "factor", "kind": "scalar", "type": "f32", "offset": 0x170},
            {"name": "count", "kind": "scalar", "type": "u32", "offset": 0x174},
        ],
    }


@pytest.mark.parametrize(("count", "blocks"), [(0, 0), (1, 1), (1023, 1), (1024, 1), (1025, 2), (6_291_456, 6144)])
def test_elementwise_grid_covers_any_count(count: int, blocks: int) -> None:
    assert [grid.evaluate(entry, {"count": count}) for entry in ADD.grid] == [blocks, 1, 1]


def test_every_grid_evaluates_from_the_names_its_row_gives() -> None:
    for image in IMAGES:
        blocks = [grid.evaluate(entry, dict.fromkeys(image.names, 1000)) for entry in image.grid]
        assert min(blocks) >= 1, image.identity


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("transpose-g8-r1024-c64", model.SEQUENCE, model.HEAD_WIDTH),
        ("transpose-g8-r64-c1024", model.HEAD_WIDTH, model.SEQUENCE),
    ],
)
def test_transpose_tiles_cover_its_matrices(name: str, rows: int, columns: int) -> None:
    image = BY_NAME[name]
    assert image.grid == (rows // 64 * (columns // 64), model.HEADS, 1)
    assert image.options == {"groups": model.HEADS, "rows": rows, "columns": columns}


# beside the rotary table's 32 pairs of cosine and sine
_SIZES = {
    model.WIDTH, model.SEQUENCE, model.HEADS, model.HEAD_WIDTH, model.QUERY_KEY_VALUE, model.VOCABULARY,
    model.FEED_FORWARD, model.PARAMETERS,
}  # fmt: skip
_HEADS = {"sequence": model.SEQUENCE, "heads": model.HEADS, "depth": model.HEAD_WIDTH}


def test_literal_dimensions_are_the_models() -> None:
    sizes = {d for image in IMAGES for p in image.parameters for d in p.dimensions if isinstance(d, int)}
    assert sizes <= {2, 32, *_SIZES}
    for name in ("gather", "layernorm-forward", "layernorm-backward", "layernorm-parameters"):
        assert BY_NAME[name].options == {"width": model.WIDTH}, name
    for name in ("qk-rope", "value-transpose", "head-to-token", "token-to-head", "inverse-rope-qkv"):
        assert BY_NAME[name].options == _HEADS, name
    assert BY_NAME["embedding-scatter"].options == {
        "vocabulary": model.VOCABULARY, "width": model.WIDTH, "rows": model.SEQUENCE,
    }  # fmt: skip
    assert BY_NAME["loss-target-gather"].options == {"vocabulary": model.VOCABULARY}


def test_parameter_bank_is_the_published_count() -> None:
    assert model.PARAMETERS == 31_998_976
    assert model.HEADS * model.HEAD_WIDTH == model.WIDTH


# fmt: off
BAD_ROWS = [
    ({"identity": "Add_1"},                  "identity is lower-case"),
    ({"identity": ""},                       "identity is lower-case"),
    ({"identity": "../add"},                 "identity is lower-case"),
    ({"kernel": "coppelius.kernels.add"},    "not spelled package.module:function"),
    ({"block_x": 0},                         "block of 0 threads"),
    ({"block_x": -256},                      "block of -256 threads"),
    ({"block_x": 1025},                      "block of 1025 threads"),
    ({"shared_bytes": 101_377},              "101377 shared bytes"),
    ({"shared_bytes": -1},                   "-1 shared bytes"),
    ({"registers": 256},                     "256 registers; a thread has 8 to 255"),
    ({"registers": 7},                       "7 registers; a thread has 8 to 255"),
    ({"registers": 128, "block_x": 1024},    "a block takes 131072 registers; an SM has 65536"),
    ({"registers": 65, "block_x": 1024},     "a block takes 73728 registers"),
    ({"grid": ("blocks", 1, 1)},             "names blocks; the parameters give count"),
    ({"grid": ("ceil_div(count", 1, 1)},     "ends too early"),
    ({"grid": (0, 1, 1)},                    "a fixed entry is at least 1"),
    ({"grid": ("count", 1)},                 "grid has 2 entries"),
    ({"parameters": ADD.parameters * 2},     "parameter out is named twice"),
]
# fmt: on


@pytest.mark.parametrize(("change", "says"), BAD_ROWS)
def test_a_bad_row_is_refused(change: dict[str, object], says: str) -> None:
    name = str(change.get("identity", "add"))
    with pytest.raises(Refusal, match=rf"^(image {name!r}|grid).*{re.escape(says)}"):
        replace(ADD, **change)  # type: ignore[arg-type]


def test_the_largest_legal_row_is_accepted() -> None:
    image = replace(ADD, registers=64, block_x=1024, shared_bytes=101_376)
    assert image.registers == 64


def test_too_many_parameters_are_refused() -> None:
    many = tuple(Parameter(f"p{i}", "pointer", "f32", "count") for i in range(513))
    with pytest.raises(Refusal, match=r"image 'add': 4104 parameter bytes; a launch passes 4096"):
        replace(ADD, grid=(1, 1, 1), parameters=many)


def test_a_duplicate_identity_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match=r"^image 'add': the identity is taken"):
        admit([*IMAGES, ADD])


# fmt: off
BAD_PARAMETERS = [
    ("out f64[n]",    "unknown type 'f64'; known: f32, u32, u64, half"),
    ("x half",        "a scalar is f32, u32 or u64"),
    ("out",           "write `name type`"),
    ("out f32[]",     "write `name type`"),
]
# fmt: on


@pytest.mark.parametrize(("text", "says"), BAD_PARAMETERS)
def test_a_bad_parameter_is_refused(text: str, says: str) -> None:
    with pytest.raises(Refusal, match=re.escape(says)):
        parse_parameters(text)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(Refusal, match=r"^parameter out: unknown kind 'array'"):
        Parameter("out", "array", "f32")


def test_loading_imports_nothing_heavy_and_no_kernel() -> None:
    code = "import sys, coppelius.catalog; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split())
    assert not loaded & {"numpy", "networkx", "click", "rich", "doit", "json"}
    ours = {name for name in loaded if name.startswith("coppelius")}
    assert ours == {
        "coppelius", "coppelius.arena", "coppelius.arena.grid", "coppelius.catalog",
        "coppelius.isa", "coppelius.isa.refusal", "coppelius.model", "coppelius.products",
        "coppelius.products.admission", "coppelius.products.record", "coppelius.products.shape",
        "coppelius.products.tile",
    }  # fmt: skip


def test_an_image_is_a_value() -> None:
    assert isinstance(ADD, Image)
    assert hash(ADD) == hash(replace(ADD))
    with pytest.raises(AttributeError):
        ADD.block_x = 1  # type: ignore[misc]
