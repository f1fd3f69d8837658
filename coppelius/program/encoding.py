"""The encode step: a listing to its material."""

from __future__ import annotations

from coppelius.program.listing import parse_listing


def encode_listing(listing: str) -> bytes:
    """Listing text -> encoded bytes, 16 an instruction; refuses by line or by instruction."""
    return parse_listing(listing).encode()
