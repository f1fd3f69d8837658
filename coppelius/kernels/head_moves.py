"""head-to-token: out[s, head, d] = heads[head, s, d], 16-bit elements moved as they are.

token-to-head: out[head, s, d] = half(tokens[s, head, d]).

Every access of a warp is whole lines on both sides.  A half moves 128 bits at a time; where f32 becomes
half, 128-bit loads stand against 64-bit stores, so that lanes lie side by side on both.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.refusal import Refusal
from coppelius.kernels.head_place import HeadPlace, head_place

THREADS = 256
POSITIONS = 8


def head_to_token(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Eight positions a block; a thread moves eight halves of two neighbouring heads."""
    place = _place(k, sequence, heads, lanes=depth // 8)
    size = k.size("size", 16)
    source = k.element("source", "heads", place.in_heads(), size)
    out = k.element("out.pointer", "out", place.in_tokens(heads * depth // 8), size)
    pieces = [k.LDG_E_128(f"piece{h}", k.at(source, 2 * sequence * depth * h)) for h in range(place.heads)]
    for h, piece in enumerate(pieces):
        k.STG_E_128(k.at(out, 2 * depth * h), piece)
    k.finish()


def token_to_head(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Eight positions a block; a thread rounds four columns of four neighbouring heads."""
    place = _place(k, sequence, heads, lanes=depth // 4)
    source = k.element("source", "tokens", place.in_tokens(heads * depth // 4), 16)
    out = k.element("out.pointer", "out", place.in_heads(), 8)
    pieces = [k.LDG_E_128(f"piece{h}", k.at(source, 4 * depth * h)) for h in range(place.heads)]
    for piece in pieces:
        for pair in range(2):
            k.F2FP_PACK_AB(piece[pair], piece[2 * pair + 1], piece[2 * pair])
    for h, piece in enumerate(pieces):
        k.STG_E_64(k.at(out, 2 * sequence * depth * h), piece.pair(0))
    k.finish()


def _place(k: Kernel, sequence: int, heads: int, *, lanes: int) -> HeadPlace:
    pieces = POSITIONS * lanes
    groups = THREADS // pieces
    if heads % groups:
        raise Refusal(f"head moves: {heads} heads are not {groups} equal groups")
    return head_place(k, sequence=sequence, lanes=lanes, heads=heads // groups, pieces=pieces, threads=THREADS)
