"""The device images in placement order: one literal row an image.

A row says which kernel makes the image (named by string, so that loading this module imports none), the
options that specialise it, and what a launch must provide: registers, threads of a block, shared bytes,
grid and parameters.  Parameters lie in constant bank 0 from 0x160 in the order of the row; pointers and
u64 are 8-byte aligned, other scalars take 4 bytes.

`registers` is what the launch descriptor carries; None means the program's own demand.  A bad row cannot
be constructed: it is refused by the name of its image.

Left out: what a row costs when it runs; measured figures belong to reports, not here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coppelius.arena import grid as grids
from coppelius.isa.refusal import Refusal
from coppelius.model import PARAMETERS
from coppelius.products.admission import recorded, registers
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import Tile

PARAMETER_BASE = 0x160  # published: where SM86 code finds its parameters in constant bank 0
PARAMETER_BYTES = 4096  # published: the most that a launch passes in that bank
TYPE_BYTES = {"f32": 4, "u32": 4, "u64": 8, "half": 2}

MOST_THREADS = 1024  # published: of a block
MOST_REGISTERS = 255  # published: R0..R254 are encodable
REGISTER_UNIT = 8  # published: registers of a thread are handed out eight at a time
REGISTER_FILE = 65536  # published: 32-bit registers of one SM, which a block must fit
MOST_SHARED_BYTES = 101_376  # published: the opt-in maximum of a block on sm_86, sm_89 and sm_120

_IDENTITY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KERNEL = re.compile(r"[a-z_]\w*(\.[a-z_]\w*)*:[a-z_]\w*")
_PARAMETER = re.compile(r"(?P<name>[a-z]\w*) (?P<type>\w+)(\[(?P<shape>[^\]]+)\])?")


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: a pointer to a buffer of `shape` elements, or a scalar."""

    name: str
    kind: str  # pointer, scalar
    type: str  # f32, u32, u64, half: the scalar's, or the buffer's element
    shape: str = ""  # "rows, 512": dimensions of a pointer's buffer

    def __post_init__(self) -> None:
        if self.kind not in ("pointer", "scalar"):
            raise Refusal(f"parameter {self.name}: unknown kind {self.kind!r}; known: pointer, scalar")
        if self.type not in TYPE_BYTES:
            raise Refusal(f"parameter {self.name}: unknown type {self.type!r}; known: {', '.join(TYPE_BYTES)}")
        if self.kind == "scalar" and (self.type == "half" or self.shape):
            raise Refusal(f"parameter {self.name}: a scalar is f32, u32 or u64, and has no shape")

    @property
    def bytes(self) -> int:
        """Bytes it takes in the constant bank, which is also its alignment there."""
        return 8 if self.kind == "pointer" else TYPE_BYTES[self.type]

    @property
    def dimensions(self) -> tuple[int | str, ...]:
        """The buffer's dimensions, each an integer or a name."""
        parts = [part.strip() for part in self.shape.split(",") if part.strip()]
        return tuple(int(part) if part.isdecimal() else part for part in parts)


@dataclass(frozen=True)
class Image:
    """One device image's declaration."""

    identity: str
    kernel: str  # "module:function"
    options: Mapping[str, int] = field(hash=False)
    registers: int | None
    block_x: int
    shared_bytes: int
    grid: tuple[int | str, int | str, int | str]
    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        problem = _row_problem(self)
        if problem:
            raise Refusal(f"image {self.identity!r}: {problem}")

    @property
    def names(self) -> frozenset[str]:
        """What a launch gives values for: u32 scalars, and named dimensions."""
        counts = {p.name for p in self.parameters if p.kind == "scalar" and p.type == "u32"}
        return frozenset(counts.union(d for p in self.parameters for d in p.dimensions if isinstance(d, str)))


def _row_problem(image: Image) -> str:
    """What is wrong with a row, or nothing."""
    if not _IDENTITY.fullmatch(image.identity):
        return "an identity is lower-case letters and digits in groups joined by '-'"
    if not _KERNEL.fullmatch(image.kernel):
        return f"kernel {image.kernel!r} is not spelled package.module:function"
    if not 0 < image.block_x <= MOST_THREADS:
        return f"block of {image.block_x} threads; a block has 1 to {MOST_THREADS}"
    if not 0 <= image.shared_bytes <= MOST_SHARED_BYTES:
        return f"{image.shared_bytes} shared bytes; a block has 0 to {MOST_SHARED_BYTES} on every target"
    return _registers_problem(image) or _parameters_problem(image) or _grid_problem(image)


def _registers_problem(image: Image) -> str:
    if image.registers is None:
        return ""
    if not REGISTER_UNIT <= image.registers <= MOST_REGISTERS:
        return f"{image.registers} registers; a thread has {REGISTER_UNIT} to {MOST_REGISTERS}"
    warps = -(-image.block_x // 32)
    taken = warps * 32 * -(-image.registers // REGISTER_UNIT) * REGISTER_UNIT
    if taken > REGISTER_FILE:
        return f"a block takes {taken} registers; an SM has {REGISTER_FILE}"
    return ""


def _parameters_problem(image: Image) -> str:
    seen: set[str] = set()
    for parameter in image.parameters:
        if parameter.name in seen:
            return f"parameter {parameter.name} is named twice"
        seen.add(parameter.name)
    taken = parameter_bytes(image.parameters)
    return f"{taken} parameter bytes; a launch passes {PARAMETER_BYTES}" if taken > PARAMETER_BYTES else ""


def _grid_problem(image: Image) -> str:
    if len(image.grid) != 3:
        return f"grid has {len(image.grid)} entries; it has 3"
    for entry in image.grid:
        if isinstance(entry, int):
            if entry < 1:
                return f"grid {entry}; a fixed entry is at least 1"
            continue
        unknown = grids.names(entry) - image.names
        if unknown:
            known = ", ".join(sorted(image.names)) or "no name"
            return f"grid {entry!r} names {min(unknown)}; the parameters give {known}"
        # evaluating once finds an expression that cannot be read
        grids.evaluate(entry, dict.fromkeys(image.names, 1))
    return ""


def parameter_offsets(parameters: Sequence[Parameter]) -> tuple[int, ...]:
    """Each parameter's byte offset in constant bank 0."""
    offsets, cursor = [], PARAMETER_BASE
    for parameter in parameters:
        cursor = -(-cursor // parameter.bytes) * parameter.bytes
        offsets.append(cursor)
        cursor += parameter.bytes
    return tuple(offsets)


def parameter_bytes(parameters: Sequence[Parameter]) -> int:
    """Bytes of the parameter block, from its base to the end of the last parameter."""
    if not parameters:
        return 0
    return parameter_offsets(parameters)[-1] + parameters[-1].bytes - PARAMETER_BASE


def declaration(image: Image) -> dict[str, Any]:
    """What a launch must provide, as JSON-ready data in the manifest's spelling; registers None is demand."""
    return {
        "registers": image.registers,
        "block_x": image.block_x,
        "shared_bytes": image.shared_bytes,
        "grid": list(image.grid),
        "parameters": [
            {"name": p.name, "kind": p.kind, "type": p.type, "offset": offset}
            for p, offset in zip(image.parameters, parameter_offsets(image.parameters), strict=True)
        ],
    }


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    """Parameters as the rows below spell them: `out f32[rows, 512]; count u32`."""
    parameters = []
    for part in text.split(";"):
        match = _PARAMETER.fullmatch(part.strip())
        if match is None:
            raise Refusal(f"parameter {part.strip()!r}: write `name type` or `name type[dimensions]`")
        kind = "pointer" if match["shape"] else "scalar"
        parameters.append(Parameter(match["name"], kind, match["type"], match["shape"] or ""))
    return tuple(parameters)


def admit(images: Iterable[Image]) -> tuple[Image, ...]:
    """The images, in order; refuses a duplicate identity by name."""
    admitted: dict[str, Image] = {}
    for image in images:
        if image.identity in admitted:
            raise Refusal(f"image {image.identity!r}: the identity is taken; give each image its own")
        admitted[image.identity] = image
    return tuple(admitted.values())


_Grid = tuple[int | str, int | str, int | str]


def _row(identity: str, kernel: str, options: Mapping[str, int], registers: int | None,
         block_x: int, shared_bytes: int, grid: _Grid, parameters: str) -> Image:  # fmt: skip
    module, _, function = kernel.partition(":")
    kernel = f"coppelius.kernels.{module}:{function or module}"
    return Image(identity, kernel, options, registers, block_x, shared_bytes, grid, parse_parameters(parameters))


def _product_row(product: Product) -> Image:
    """A tiled product with its recorded tile."""
    return product_image(product, recorded(product))


def product_image(product: Product, tile: Tile) -> Image:
    """A tiled product with a tile, which gives registers, block and shared bytes."""
    a = (product.k, product.m) if product.a_columns else (product.m, product.k)
    b = (product.k, product.n) if product.b_columns else (product.n, product.k)
    options = {
        "m": product.m, "n": product.n, "depth": product.k, "a_columns": int(product.a_columns),
        "b_columns": int(product.b_columns), "residual": int(product.residual), **vars(tile),
    }  # fmt: skip
    c = f"f32[{product.m}, {product.n}]"
    parameters = f"c {c}; a half[{a[0]}, {a[1]}]; b half[{b[0]}, {b[1]}]" + (f"; r {c}" if product.residual else "")
    grid = (product.n // tile.columns, product.m // tile.rows, 1)
    return _row(
        product.identity, "tiled.product:tiled_product", options, registers(tile), tile.threads, tile.shared_bytes,
        grid, parameters,
    )  # fmt: skip


_BY_COUNT = ("ceil_div(count, 1024)", 1, 1)
_HEADS = {"sequence": 1024, "heads": 8, "depth": 64}

# fmt: off
IMAGES = admit((
    # Made from nothing but scalars: Philox's four words a thread, and a warp a position.
    _row("random-normal", "random_normal", {},                                 24, 256,   0, _BY_COUNT,
         "out f32[count]; count u32; std f32; seed u64; stream u32"),
    _row("rotary-table", "rotary_table", {"pairs": 32},
         None, 256, 0, ("ceil_div(positions * 32, 256)", 1, 1),
         "out f32[positions, 32, 2]; frequencies f32[32]; positions u32"),

    # Elementwise: 256 threads, four elements a thread, so a warp's access is 512 consecutive bytes; the
    # last block handles what is left of any count, hence no shape of its own.
    #    identity     kernel           options regs block shared grid
    _row("fill",      "fill",            {},   16,  256,  0, _BY_COUNT,
         "out u32[count]; count u32; value u32"),
    _row("copy",      "copy",            {},   24,  256,  0, _BY_COUNT,
         "out u32[count]; source u32[count]; count u32"),
    _row("cast-down", "cast:cast_down",  {},   24,  256,  0, _BY_COUNT,
         "out half[count]; source f32[count]; count u32"),
    _row("cast-up",   "cast:cast_up",    {},   24,  256,  0, _BY_COUNT,
         "out f32[count]; source half[count]; count u32"),
    _row("add",       "add",             {},   24,  256,  0, _BY_COUNT,
         "out f32[count]; a f32[count]; b f32[count]; count u32"),
    _row("scale",     "scale",           {},   24,  256,  0, _BY_COUNT,
         "out f32[count]; a f32[count]; factor f32; count u32"),

    # A row of the vocabulary: one block a row, 48 elements a thread, all of them in registers.
    _row("argmax", "argmax", {"vocabulary": 12288},                            64, 256,  96, ("rows", 1, 1),
         "out u32[rows]; logits f32[rows, 12288]"),

    # Rows of the model's width: one block a row, 128 threads of four columns each, so that a row is one
    # vector load and its reduction stays inside the block.
    _row("gather", "gather", {"width": 512},                                   40, 128,   0, ("rows", 1, 1),
         "out f32[rows, 512]; table f32[vocabulary, 512]; tokens u32[rows]; vocabulary u32"),
    _row("layernorm-forward", "layernorm:layernorm_forward", {"width": 512},   40, 128, 128, ("rows", 1, 1),
         "out half[rows, 512]; mean f32[rows]; rstd f32[rows]; "
         "x f32[rows, 512]; gain f32[512]; bias f32[512]; epsilon f32"),

    # Between tokens' rows and heads' matrices, no shared memory: lanes lie side by side on both sides, so
    # every access is whole lines, and each thread has all its loads in flight.  Rope: 128 threads are eight
    # positions of 16 pieces, grid y the halves of the heads (8 or 12 quads a thread, within 64 registers).
    # The value's transpose: 512 threads turn 128 positions of one head.  The moves: 256 threads take all
    # heads of eight positions.
    _row("qk-rope", "rope:qk_rope", _HEADS,                                    64, 128,   0, (128, 2, 1),
         "q half[8, 1024, 64]; k half[8, 1024, 64]; qkv f32[1024, 1536]; table f32[1024, 32, 2]"),
    _row("value-transpose", "value_transpose", _HEADS,                         24, 512,   0, (8, 8, 1),
         "vt half[8, 64, 1024]; qkv f32[1024, 1536]"),
    _row("head-to-token", "head_moves:head_to_token", _HEADS,                 32, 256,   0, (128, 1, 1),
         "out half[1024, 512]; heads half[8, 1024, 64]"),
    _row("token-to-head", "head_moves:token_to_head", _HEADS,                 32, 256,   0, (128, 1, 1),
         "out half[8, 1024, 64]; tokens f32[1024, 512]"),
    _row("inverse-rope-qkv", "rope:inverse_rope_qkv", _HEADS,                  64, 128,   0, (128, 2, 1),
         "dqkv half[1024, 1536]; dq f32[8, 1024, 64]; dk f32[8, 1024, 64]; dv f32[8, 1024, 64]; "
         "table f32[1024, 32, 2]"),

    # Rows of the sequence: one block a row of a group, 256 threads of four columns each.
    _row("softmax-forward", "softmax:softmax_forward", {"size": 1024},         32, 256, 128, (1024, "groups", 1),
         "probs half[groups, 1024, 1024]; scores f32[groups, 1024, 1024]; scale f32"),
    _row("softmax-backward", "softmax:softmax_backward", {"size": 1024},       32, 256, 128, (1024, "groups", 1),
         "dscores half[groups, 1024, 1024]; dprobs f32[groups, 1024, 1024]; "
         "probs half[groups, 1024, 1024]; scale f32"),

    # The norm's gradients.  Of its input: a block a row again.  Of its parameters: sums down the columns, a
    # block every eight columns (one sector of each row, so no byte is fetched twice), hence 64 blocks; 512
    # threads, because 256 rows at a time and two such steps in flight keep memory busy from 64 SMs, and
    # sixteen warps are all that 128 shared bytes can add up in a short chain.  No rows launch nothing, hence
    # the factor that is 0 for them and 1 for any other number.
    _row("layernorm-backward", "layernorm:layernorm_backward", {"width": 512}, 48, 128, 128, ("rows", 1, 1),
         "dx f32[rows, 512]; dy f32[rows, 512]; x f32[rows, 512]; mean f32[rows]; rstd f32[rows]; gain f32[512]"),
    _row("layernorm-parameters", "layernorm_parameters", {"width": 512},
         40, 512, 128, ("64 * ceil_div(rows, rows + 1)", 1, 1),
         "dgain f32[512]; dbias f32[512]; dy f32[rows, 512]; x f32[rows, 512]; "
         "mean f32[rows]; rstd f32[rows]; rows u32"),

    # Rows of the vocabulary again, in batches of quads: two in flight while one is added up.
    _row("cross-entropy", "cross_entropy", {"vocabulary": 12288},              48, 256, 128, ("rows", 1, 1),
         "loss f32[rows]; lse f32[rows]; logits f32[rows, 12288]; targets u32[rows]"),
    _row("cross-entropy-backward", "cross_entropy:cross_entropy_backward", {"vocabulary": 12288},
         40, 256, 0, ("rows", 1, 1),
         "dlogits half[rows, 12288]; logits f32[rows, 12288]; lse f32[rows]; targets u32[rows]; scale f32"),

    # Rows added to the table in the order of their positions: a block a position, of which the first with
    # its token works.
    _row("embedding-scatter", "embedding_scatter", {"vocabulary": 12288, "width": 512, "rows": 1024},
         40, 512, 0, (1024, 1, 1),
         "dtable f32[12288, 512]; drows f32[1024, 512]; tokens u32[1024]"),

    # The parameter bank: 1,024 blocks walk its quads.  40 registers let 1,536 threads stay on an SM.
    _row("adamw", "adamw", {"elements": PARAMETERS, "blocks": 1024},             40, 256,   0, (1024, 1, 1),
         f"p f32[{PARAMETERS}]; m f32[{PARAMETERS}]; v f32[{PARAMETERS}]; g f32[{PARAMETERS}]; "
         f"half_copy half[{PARAMETERS}]; "
         "rate f32; beta1 f32; beta2 f32; epsilon f32; decay f32; "
         "correction1 f32; correction2 f32; gradient_scale f32"),

    # Elementwise with more arithmetic: as above, the budgets what the vector path needs.
    _row("gated-gelu-forward", "gated_gelu:gated_gelu_forward", {},            24, 256,   0, _BY_COUNT,
         "out half[count]; gate f32[count]; up f32[count]; count u32"),
    _row("gated-gelu-backward", "gated_gelu:gated_gelu_backward", {},          40, 256,   0, _BY_COUNT,
         "dgate half[count]; dup half[count]; dout f32[count]; gate f32[count]; up f32[count]; count u32"),

    # Head tiles: one block a 64 x 64 tile of halves, no shared memory.  128 threads because each then
    # turns an 8 x 4 piece in registers: sixteen in and four out at a time, which with addresses fits 40;
    # 256 would halve the piece and its sectors, 64 would need more registers than 40.  Grid: the tiles of
    # a group (1024 / 64), groups.
    _row("transpose-g8-r1024-c64", "transpose", {"groups": 8, "rows": 1024, "columns": 64},
         40, 128, 0, (16, 8, 1),
         "out half[8, 64, 1024]; source half[8, 1024, 64]"),
    _row("transpose-g8-r64-c1024", "transpose", {"groups": 8, "rows": 64, "columns": 1024},
         40, 128, 0, (16, 8, 1),
         "out half[8, 1024, 64]; source half[8, 64, 1024]"),

    # One value a row: a thread a row, too little work for a block of its own.
    _row("loss-target-gather", "loss_target_gather", {"vocabulary": 12288},
         None, 256, 0, ("ceil_div(rows, 256)", 1, 1),
         "correct f32[rows]; logits f32[rows, 12288]; targets u32[rows]; rows u32"),

    # Attention without shared memory: four warps of 16 rows a block, which meet in the first cache level on the
    # same tiles; grid x the heads, y blocks of 64 rows, the longest first.  16 rows a warp, because 32 would leave
    # fewer warps than the sub-cores of a large card.  Its 128 blocks are at most two on an SM of one, so registers
    # up to the limit cost nothing, and tiles are as large as they allow.
    _row("attention-forward", "streaming_attention_forward:attention_forward", _HEADS,
         255, 128, 0, (8, 16, 1),
         "out half[8, 1024, 64]; lse f32[8, 1024]; "
         "q half[8, 1024, 64]; k half[8, 1024, 64]; vt half[8, 64, 1024]; scale f32"),
    _row("attention-query", "streaming_attention_query:attention_query", _HEADS,
         255, 128, 0, (8, 16, 1),
         "dq f32[8, 1024, 64]; delta f32[8, 1024]; q half[8, 1024, 64]; k half[8, 1024, 64]; kt half[8, 64, 1024]; "
         "v half[8, 1024, 64]; out half[8, 1024, 64]; dout half[8, 1024, 64]; lse f32[8, 1024]; scale f32"),
    _row("attention-key", "streaming_attention_key:attention_key", _HEADS,
         255, 128, 0, (8, 16, 1),
         "dk f32[8, 1024, 64]; dv f32[8, 1024, 64]; q half[8, 1024, 64]; qt half[8, 64, 1024]; k half[8, 1024, 64]; "
         "v half[8, 1024, 64]; dout half[8, 1024, 64]; doutt half[8, 64, 1024]; lse f32[8, 1024]; delta f32[8, 1024]; "
         "scale f32"),

    # The products on tensor cores, a block a tile of C: shapes in `products.shape`, tiles in `products.record`.
    *map(_product_row, PRODUCTS),
))
# fmt: on
