"""Sixteen bytes an instruction."""

FILL = b"."


def encode_listing(listing: str) -> bytes:
    return b"".join(line.encode().ljust(16, FILL)[:16] for line in listing.splitlines())
