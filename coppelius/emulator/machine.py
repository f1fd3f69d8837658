"""The state of a batch of blocks, as structure of arrays: `registers uint32[number, warps, 32]`.

A row of the register file is contiguous, so that one instruction over all warps is one numpy call on
whole rows.  A block takes whole warps; lanes past its last thread are never alive.  Uniform registers
are `[warps, 1]` and broadcast over the lanes.  Shared memory is `[blocks, bytes]`; local memory is
`[words, warps, 32]`, touched pages only, the stack growing down from the address in c[0x0][0x28].

Registers hold a pattern at the start that no program counts on (`UNDEFINED`); R1 too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.faults import Fault, Finding, Triple
from coppelius.emulator.group import LANES, Bools, Group, Words32
from coppelius.emulator.memory import Memory

if TYPE_CHECKING:
    from coppelius.emulator.operation import Operation
    from coppelius.emulator.racecheck import RaceCheck
    from coppelius.emulator.shadow import Shadow
    from coppelius.emulator.traffic import Traffic

Array = npt.NDArray[Any]
Write = Callable[[Group, Array], None]

UNDEFINED = 0xABADCAFE
PREDICATES = 7
CONVERGENCE_BARRIERS = 16
# published: tinygrad writes it, ptxas reads it into R1
STACK_TOP = 0xFFFDC0
# assumed: windows of generic addresses, each of 16 MiB, far from the buffers
SHARED_WINDOW = 0x7F_5500_0000
LOCAL_WINDOW = 0x7F_5600_0000
WINDOW_BYTES = 1 << 24


class Machine:
    """State of up to `capacity` blocks of a launch; `begin` puts blocks into it."""

    def __init__(
        self,
        *,
        kernel: str,
        grid: Triple,
        block: Triple,
        capacity: int,
        registers: int,
        memory: Memory,
        constants: Mapping[int, npt.NDArray[np.uint8]],
        shared_bytes: int,
        local_bytes: int,
        collect: bool = False,
        lines: Sequence[str] | None = None,
        mma: str = "exact",
        entry: int = 0,
        sections: Mapping[int, str] | None = None,
        shared_start: int = 0,
        uniform_registers: int = 63,
    ) -> None:
        self.kernel, self.grid, self.block = kernel, grid, block
        self.threads = block[0] * block[1] * block[2]
        self.warps_per_block = -(-self.threads // LANES)
        self.capacity = capacity
        self.warps = capacity * self.warps_per_block
        self.memory = memory
        self.constants = dict(constants)
        self.collect = collect
        self.lines = lines
        self.mma = mma
        # instructions before the kernel are those of device functions, named by their first byte
        self.entry = entry
        self.sections = dict(sections or {})
        self.findings: list[Finding] = []
        shape = (self.warps, LANES)
        self.registers: Words32 = np.empty((registers, *shape), dtype=np.uint32)
        self.predicates: Bools = np.zeros((PREDICATES, *shape), dtype=np.bool_)
        self.uniform: Words32 = np.zeros((uniform_registers, self.warps, 1), dtype=np.uint32)
        self.uniform_predicates: Bools = np.zeros((PREDICATES, self.warps, 1), dtype=np.bool_)
        self.convergence: Words32 = np.zeros((CONVERGENCE_BARRIERS, *shape), dtype=np.uint32)
        self.alive: Bools = np.zeros(shape, dtype=np.bool_)
        self.barrier_result: Words32 = np.zeros((self.warps, 1), dtype=np.uint32)
        # addresses of shared memory below it are reserved
        self.shared_start = shared_start
        self._set_shared(shared_bytes)
        self.local_bytes = -(-local_bytes // 16) * 16
        self.local: Words32 = np.zeros((self.local_bytes // 4, *shape), dtype=np.uint32)
        self.special: dict[str, Array] = {}
        # initcheck's undefined bytes of shared and local memory
        self.shadow: Shadow | None = None
        # racecheck's memory of who touched what
        self.races: RaceCheck | None = None
        # who counts sectors and bank conflicts
        self.traffic: Traffic | None = None
        self.clock: Callable[[], int] = lambda: 0
        # strict mode takes the stores of LDGSTS here, to do them when the copy has been waited for
        self.defer: Callable[[Callable[[], None]], None] | None = None
        self.sink: Callable[[str, int], Write] | None = None
        self._thread_specials()

    def _set_shared(self, size: int) -> None:
        self.shared_bytes = size
        self.shared_stride = -(-size // 16) * 16
        self.shared = np.zeros((self.capacity, self.shared_stride), dtype=np.uint8)
        flat = self.shared.reshape(-1)
        self.shared_views: dict[int, Array] = {w: flat.view(f"u{w}") for w in (1, 2, 4)}
        self.shared_views |= {w: flat.view(np.uint32).reshape(-1, w // 4) for w in (8, 16)}
        owner = np.repeat(np.arange(self.capacity, dtype=np.int64), self.warps_per_block)
        self.block_of_warp = owner
        self.shared_base = (owner * self.shared_stride).reshape(-1, 1)

    def begin(self, blocks: npt.NDArray[np.int64]) -> Group:
        """Fresh state for these blocks (linear indices in the grid); the group of all their threads."""
        self.blocks = blocks
        used = len(blocks) * self.warps_per_block
        self.registers.fill(UNDEFINED)
        self.predicates.fill(False)
        self.uniform.fill(UNDEFINED)
        self.uniform_predicates.fill(False)
        self.convergence.fill(0)
        self.shared.fill(0)
        lane_of_block = np.arange(self.warps_per_block * LANES).reshape(-1, LANES) < self.threads
        self.alive[:used] = np.tile(lane_of_block, (len(blocks), 1))
        self.alive[used:] = False
        self.alive_threads = len(blocks) * self.threads
        x, y, _ = self.grid
        index = np.zeros(self.capacity, dtype=np.int64)
        index[: len(blocks)] = blocks
        for name, part in (("X", index % x), ("Y", index // x % y), ("Z", index // (x * y))):
            self.special[f"SR_CTAID.{name}"] = part[self.block_of_warp].astype(np.uint32).reshape(-1, 1)
        whole = self.threads % LANES == 0
        return Group(slice(0, used), used, None if whole else self.alive[:used].copy())

    def _thread_specials(self) -> None:
        x, y, _ = self.block
        within = np.tile(np.arange(self.warps_per_block * LANES), self.capacity).reshape(-1, LANES)
        lane = np.broadcast_to(np.arange(LANES, dtype=np.uint32), (self.warps, LANES))
        parts = {"X": within % x, "Y": within // x % y, "Z": within // (x * y)}
        s = self.special
        for name, part in parts.items():
            s[f"SR_TID.{name}"] = part.astype(np.uint32)
        s["SR_TID"] = s["SR_TID.X"] | s["SR_TID.Y"] << np.uint32(16) | s["SR_TID.Z"] << np.uint32(26)
        s["SR_NTID"] = _same(x | y << 16 | self.block[2] << 26)
        s["SR_LANEID"] = lane
        one = np.uint32(1) << lane
        s["SR_EQMASK"], s["SR_LTMASK"] = one, one - np.uint32(1)
        s["SR_LEMASK"] = s["SR_LTMASK"] | one
        s["SR_GTMASK"], s["SR_GEMASK"] = ~s["SR_LEMASK"], ~s["SR_LTMASK"]
        warp = np.tile(np.arange(self.warps_per_block, dtype=np.uint32), self.capacity).reshape(-1, 1)
        s["SR_WARPID"] = s["SR_VIRTID"] = warp
        s["SR_LMEMHIOFF"] = _same(STACK_TOP - self.local_bytes)  # assumed: the least address the stack may reach
        for name in ("SR_VIRTUALSMID", "SR_SMID", "SRZ"):
            s[name] = _same(0)

    def report(
        self,
        operation: Operation,
        rule: str,
        detail: str,
        *,
        warps: npt.NDArray[np.intp] | None = None,
        lanes: Bools | None = None,
        address: int | None = None,
    ) -> None:
        """A finding at this instruction about the `lanes bool[n, 32]` of `warps`; raised unless collected."""
        block = thread = None
        count = 1
        if warps is not None and lanes is not None and lanes.any():
            w, lane = (int(v[0]) for v in np.nonzero(lanes))
            block, thread = self.place_of(int(warps[w]), lane)
            count = int(np.count_nonzero(lanes))
        name, offset = self.section_of(operation.ordinal)
        line = self.lines[operation.ordinal] if self.lines else ""
        found = Finding(rule, detail, name, offset, operation.text, line, block, thread, address, count)
        if not self.collect:
            raise Fault(found)
        self.findings.append(found)

    def section_of(self, ordinal: int) -> tuple[str, int]:
        """The function an instruction belongs to, and its byte there."""
        if ordinal >= self.entry or not self.sections:
            return self.kernel, (ordinal - self.entry) * 16
        start = max(at for at in self.sections if at <= ordinal * 16)
        return f"{self.kernel}/{self.sections[start]}", ordinal * 16 - start

    def place_of(self, warp: int, lane: int) -> tuple[Triple, Triple]:
        """(block, thread) coordinates of a lane."""
        x, y, _ = self.grid
        linear = int(self.blocks[warp // self.warps_per_block])
        bx, by, _ = self.block
        within = warp % self.warps_per_block * LANES + lane
        return (
            (linear % x, linear // x % y, linear // (x * y)),
            (within % bx, within // bx % by, within // (bx * by)),
        )


def _same(value: int) -> Array:
    return np.full((1, 1), value & 0xFFFFFFFF, dtype=np.uint32)
