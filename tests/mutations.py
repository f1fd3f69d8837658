"""Single loosenings of a schedule, each judged by the checkers and by the twin that knows nothing of them.

A loosening is harmful if the twin then finds something that it did not find before; it is missed if the checkers do
not name each of those: rule, instruction, register.  What the checkers name and the twin does not is counted as
cautious: where paths meet they keep only the covers that both have.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda_launches import Launch
from schedule_twin import Loosening, loosenings, twin_of

from coppelius.check.facts import facts_of
from coppelius.check.flow import graph_of
from coppelius.check.verdict import schedule_hazards
from coppelius.container.cubin import Cubin
from coppelius.emulator.faults import Fault
from coppelius.isa.word import from_bytes
from coppelius.program.listing import listing_text
from coppelius.program.program import Program

# programs longer than this are sampled
WHOLE, SAMPLE = 1_500, 2_000
_STEP_FIELDS = {"stall": "stall", "wait": "wait", "write_barrier": "write", "read_barrier": "read"}
STRICT_RULES = ("stale read", "early overwrite", "overwritten before read", "stale reuse")


@dataclass
class Tally:
    """Counts over programs.  For other judges to try, of the last: `unnamed` by both, `named` by both."""

    programs: int = 0
    instructions: int = 0
    possible: int = 0
    tried: int = 0
    harmful: int = 0
    missed: list[str] = field(default_factory=list)
    cautious: int = 0
    stalls: int = 0
    stalls_named: int = 0
    alarms: list[str] = field(default_factory=list)
    given_up: int = 0
    unnamed: list[Loosening] = field(default_factory=list)
    named: list[Loosening] = field(default_factory=list)

    def line(self) -> str:
        """The figures with their denominators."""
        share = self.stalls_named / max(1, self.stalls)
        return (
            f"{self.programs} programs, {self.instructions} instructions: "
            f"tried {self.tried} of {self.possible} loosenings, "
            f"harmful {self.harmful}, missed {len(self.missed)}, named though the twin sees no harm {self.cautious}; "
            f"stalls above 1 lowered by one: {self.stalls_named} of {self.stalls} named ({share:.1%}); "
            f"twin's own alarms {len(self.alarms)}, walks given up {self.given_up}"
        )

    def add(
        self,
        name: str,
        program: Program,
        dice: random.Random,
        *,
        most: int | None = None,
        targets: Mapping[int, Sequence[int]] | None = None,
        whole: bool = False,
    ) -> None:
        """One program; `most` loosenings of it (None: all, or a sample where the program is long and not `whole`)."""
        twin = twin_of(program, targets)
        if twin.named:
            self.alarms.append(f"{name}: {sorted(twin.named)[:3]}")
        facts = facts_of(program.decoded, from_bytes(program.encode()))
        graph = graph_of(facts, targets)
        all_of_them = loosenings(program)
        limit = most if most is not None else len(all_of_them) if whole or len(program) <= WHOLE else SAMPLE
        chosen = sorted(dice.sample(all_of_them, min(limit, len(all_of_them))))
        self.programs += 1
        self.instructions += len(program)
        self.possible += len(all_of_them)
        self.unnamed, self.named = [], []
        for i, what, value in chosen:
            harm = twin.changed(i, **{_STEP_FIELDS[what]: value})
            change: dict[str, Any] = {what: value}
            loose = [*facts[:i], facts[i]._replace(**change), *facts[i + 1 :]]
            named = {(h.rule, h.ordinal, h.register) for h in schedule_hazards(loose, graph)}
            self.tried += 1
            self.harmful += bool(harm)
            self.cautious += bool(named and not harm)
            if harm - named:
                self.missed.append(f"{name}: {what} of {i} to {value}: {sorted(harm - named)[:3]}")
            if what == "stall":
                self.stalls += 1
                self.stalls_named += bool(named)
            if not named and not harm:
                self.unnamed.append((i, what, value))
            elif named and harm:
                self.named.append((i, what, value))
        self.given_up += twin.given_up


def loosened(program: Program, loosening: Loosening) -> bytes:
    """The program's words with one loosening."""
    i, what, value = loosening
    rows = list(program)
    changes = {what: value}
    if what == "stall":
        # only stalls of 1 to 11 may keep the warp
        changes["keep"] = rows[i]["keep"] if rows[i]["stall"] <= 11 else 0
    rows[i] = rows[i].with_fields(changes)
    return Program.of(rows, program.table).encode()


@dataclass
class Strict:
    """Strict runs of loosenings of compiled kernels, by the launches that tests/emulator makes of them.

    What checkers and twin let pass may find nothing and leave no other memory.  Of what they name a run shows what
    its own path meets: a loop left early, a guard that never holds or a load that is never late hides the rest.
    """

    kernels: int = 0
    passed: int = 0
    clean: int = 0
    named: int = 0
    shown: int = 0
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The figures with their denominators."""
        return (
            f"strict runs of {self.kernels} kernels: let pass {self.passed}, clean {self.clean}; "
            f"named {self.named}, shown by the run {self.shown}"
        )

    def add(
        self,
        launch: Launch,
        cubin: Cubin,
        program: Program,
        passing: Sequence[Loosening],
        named: Sequence[Loosening],
    ) -> None:
        """One kernel's loosenings."""
        self.kernels += 1
        before = launch.after(cubin)
        clocks = "SR_CLOCK" in listing_text(program)
        for loosening in passing:
            what = self._found(launch, cubin, loosened(program, loosening), [] if clocks else before)
            self.passed += 1
            self.clean += not what
            if what:
                self.wrong.append(f"{cubin.origin} {launch.kernel}: {loosening}: {what}")
        for loosening in named:
            self.named += 1
            self.shown += bool(self._found(launch, cubin, loosened(program, loosening), before))

    @staticmethod
    def _found(launch: Launch, cubin: Cubin, code: bytes, before: Sequence[Any]) -> str:
        try:
            after = launch.after(cubin, code)
        except Fault as fault:
            return str(fault)
        same = all(a.tobytes() == b.tobytes() for a, b in zip(before, after, strict=False))
        return "" if same else "other memory"
