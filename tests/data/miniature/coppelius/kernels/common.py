"""What kernels share."""


def repeated(word, count):
    return [word] * count
