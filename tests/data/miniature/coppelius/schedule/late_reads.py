"""Nothing here needs a guard."""


def guard(listing: str) -> str:
    return listing
