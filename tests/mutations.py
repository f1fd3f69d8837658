"""Single loosenings of a schedule, each judged by the checkers and by the twin that knows nothing of them.

A loosening is harmful if the twin then finds something that it did not find before; it is missed if the checkers do
not name each of those: rule, instruction, register.  What the checkers name and the twin does not is counted as
cautious: where paths meet they keep only the covers that both have, and they watch the reuse cache.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schedule_twin import Loosening, loosenings, twin_of

from coppelius.check.facts import facts_of
from coppelius.check.flow import graph_of
from coppelius.check.verdict import schedule_hazards
from coppelius.isa.word import from_bytes
from coppelius.program.program import Program

# programs longer than this are sampled
WHOLE, SAMPLE = 1_500, 2_000
_STEP_FIELDS = {"stall": "stall", "wait": "wait", "write_barrier": "write", "read_barrier": "read"}
STRICT_RULES = ("stale read", "early overwrite", "overwritten before read")


@dataclass
class Tally:
    """Counts over programs; `unnamed`: loosenings that both call harmless, for other judges to try."""

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
    ) -> None:
        """One program; `most` loosenings of it (None: all, or a sample where the program is long)."""
        twin = twin_of(program, targets)
        if twin.named:
            self.alarms.append(f"{name}: {sorted(twin.named)[:3]}")
        facts = facts_of(program.decoded, from_bytes(program.encode()))
        graph = graph_of(facts, targets)
        all_of_them = loosenings(program)
        limit = most if most is not None else len(all_of_them) if len(program) <= WHOLE else SAMPLE
        chosen = sorted(dice.sample(all_of_them, min(limit, len(all_of_them))))
        self.programs += 1
        self.instructions += len(program)
        self.possible += len(all_of_them)
        self.unnamed = []
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
