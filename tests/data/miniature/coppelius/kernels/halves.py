"""Instructions with halves."""


def halves(count):
    return ["move half"] * count
