"""Uses what another module of kernels gives."""

from coppelius.kernels.common import repeated


def shares(count):
    return repeated("shared", count)
