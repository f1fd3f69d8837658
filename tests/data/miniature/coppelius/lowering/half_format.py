"""`half` becomes the plan's half format."""


def halve(listing: str, half: str) -> tuple[str, list[int]]:
    return listing.replace("half", half), list(range(len(listing.splitlines())))
