"""One build at a time in a checkout; the second waits and then finds everything up to date.

The lock is the kernel's (`flock`), so it ends with the process that holds it, however that ends.  Worker
processes share their parent's lock; they end with their parent (`die_with_parent`), or an orphan would
hold it for ever.
"""

import fcntl
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1  # published: linux/prctl.h


class BuildLock:
    """Held from `hold` until the process ends or `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def hold(self) -> None:
        if self._descriptor is not None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # past whoever captures what this process prints: doit does, around a task's actions
            os.write(2, b"another build is running in this checkout; waiting for it\n")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def die_with_parent(parent: int) -> None:
    """Ends this worker when its parent, process `parent`, ends; where the system cannot, does nothing."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)
