"""A lowered listing is the same one."""


def lower_listing(listing: str, target: str) -> tuple[str, list[int]]:  # noqa: ARG001 - as the real one
    return listing, list(range(len(listing.splitlines())))
