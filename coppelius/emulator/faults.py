"""What went wrong, where: a finding names rule, kernel, offset, instruction, source line, block, thread and address.

`Fault` is raised for a finding that ends the launch; a launch that collects findings goes on, the
faulting lanes reading zero and storing nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from coppelius.isa.refusal import Refusal

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Finding:
    """One thing a sanitizer or the engine objects to; `lanes` counts the threads it concerns, the first is named."""

    rule: str
    detail: str
    kernel: str
    offset: int
    instruction: str
    line: str = ""
    block: Triple | None = None
    thread: Triple | None = None
    address: int | None = None
    lanes: int = 1

    def __str__(self) -> str:
        place = f"{self.kernel}+{self.offset:#06x} {self.instruction}"
        if self.line:
            place += f" ({self.line})"
        where = "" if self.block is None else f" block {self.block} thread {self.thread}"
        more = f" and {self.lanes - 1} more" if self.lanes > 1 else ""
        address = "" if self.address is None else f" address {self.address:#x}"
        return f"{place}: {self.rule}:{address}{where}{more}: {self.detail}"


class Fault(Refusal):
    """A finding that ended the launch."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding
