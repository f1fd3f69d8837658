"""Instructions without halves."""


def plain(count):
    return ["plain"] * count
