"""Keeps freed memory in the process: the emulator makes and drops arrays of 128 KiB and more all the time.

glibc gives such blocks back to the system when they are freed and gets zeroed pages again for the next, which
costs more than the arithmetic in between.  Only commands that emulate ask for this, never the library: how a
process allocates is its owner's matter.
"""

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # published: malloc.h
_KEPT = 1 << 30


def keep_freed_memory() -> bool:
    """Tells glibc; whether it listened (other systems have no mallopt)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _KEPT)) and bool(mallopt(_M_TRIM_THRESHOLD, _KEPT))
