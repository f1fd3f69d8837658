"""The control-flow graph, as exact edges between instructions: every way control may go, and no other."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from coppelius.check.facts import Facts
from coppelius.check.flow import graph_of

FactsFrom = Callable[[str], list[Facts]]


def edges(facts: list[Facts], targets: Mapping[int, Sequence[int]] | None = None) -> dict[int, list[int]]:
    """Block start -> starts of the blocks after it, over all contexts; reachable code only."""
    graph = graph_of(facts, targets)
    found: dict[int, set[int]] = {}
    for node in range(graph.reachable):
        start = graph.spans[graph.blocks[node]][0]
        after = {graph.spans[graph.blocks[target]][0] for target in graph.successors[node]}
        found.setdefault(start, set()).update(after)
    return {start: sorted(after) for start, after in found.items()}


def program(*texts: str) -> str:
    return "\n".join(f"[B------:R-:W-:Y:S05] {text}" for text in texts)


# fmt: off
SHAPES = {
    "straight":               (("NOP", "EXIT"), {0: []}),
    "guarded branch":         (("@P0 BRA 0x20", "NOP", "EXIT"), {0: [1, 2], 1: [2], 2: []}),
    "branch":                 (("BRA 0x20", "NOP", "EXIT"), {0: [2], 2: []}),
    "second predicate":       (("BRA P1, 0x20", "NOP", "EXIT"), {0: [1, 2], 1: [2], 2: []}),
    "never taken":            (("@!PT BRA 0x20", "NOP", "EXIT"), {0: []}),
    "divergent":              (("BRA.DIV ~URZ, 0x20", "NOP", "EXIT"), {0: [1, 2], 1: [2], 2: []}),
    "converged":              (("BRA.CONV ~URZ, 0x20", "NOP", "EXIT"), {0: [1, 2], 1: [2], 2: []}),
    "loop":                   (("NOP", "@P0 BRA 0x0", "EXIT"), {0: [0, 2], 2: []}),
    "guarded exit":           (("@P0 EXIT", "EXIT"), {0: [1], 1: []}),
    "exit with predicate":    (("EXIT P0", "EXIT"), {0: [1], 1: []}),
    "convergence":            (("BSSY B0, 0x30", "@P0 BRA 0x20", "BSYNC B0", "EXIT"), {0: [2], 2: []}),
    "break and warpsync":     (("@P0 BREAK B0", "WARPSYNC 0xffffffff", "YIELD", "EXIT"), {0: []}),
    "trap":                   (("BPT.TRAP 0x1", "NOP", "EXIT"), {0: []}),
    "jump by register":       (("BRX R2 -0x10", "NOP", "@P0 BRA 0x10", "EXIT"), {0: [0, 1, 3], 1: [1, 3], 3: []}),
    "call that never returns": (("@P0 CALL.REL.NOINC 0x20", "EXIT", "BRA 0x10"), {0: [1, 2], 1: [], 2: [1]}),
    "two calls":              (("CALL.REL.NOINC 0x30", "CALL.REL.NOINC 0x30", "EXIT", "NOP", "RET.REL.NODEC R2 0x0"),
                               {0: [3], 1: [3], 2: [], 3: [1, 2]}),
    "call in a call":         (("CALL.REL.NOINC 0x20", "EXIT", "CALL.REL.NOINC 0x40", "RET.REL.NODEC R2 0x0",
                                "RET.REL.NODEC R4 0x0"),
                               {0: [2], 1: [], 2: [4], 3: [1], 4: [3]}),
}
# fmt: on


@pytest.mark.parametrize("shape", SHAPES)
def test_shape(shape: str, facts_from: FactsFrom) -> None:
    texts, expected = SHAPES[shape]
    assert edges(facts_from(program(*texts))) == expected


def test_given_targets_bound_a_jump_by_register(facts_from: FactsFrom) -> None:
    facts = facts_from(program("BRX R2 -0x10", "NOP", "@P0 BRA 0x10", "EXIT"))
    assert edges(facts, {0: [3]}) == {0: [3], 3: []}


def test_a_return_goes_to_its_own_caller(facts_from: FactsFrom) -> None:
    """Two calls of one function: the context of the first never reaches the return site of the second."""
    graph = graph_of(facts_from(program(*SHAPES["two calls"][0])))
    returns = [n for n, block in enumerate(graph.blocks) if graph.spans[block][0] == 3]
    after = [[graph.spans[graph.blocks[t]][0] for t in graph.successors[n]] for n in returns]
    assert sorted(after) == [[1], [2]]


def test_code_that_nothing_reaches_starts_afresh(facts_from: FactsFrom) -> None:
    graph = graph_of(facts_from(program("EXIT", "NOP", "EXIT")))
    assert [graph.spans[graph.blocks[n]] for n in graph.entries] == [(0, 1), (1, 3)]
    assert graph.reachable == 1


@pytest.mark.parametrize("texts", [("NOP",), ("@P0 EXIT",), ("@P0 BRA 0x0",)])
def test_a_path_off_the_end_is_known(texts: tuple[str, ...], facts_from: FactsFrom) -> None:
    graph = graph_of(facts_from(program(*texts)))
    assert [node for node in graph.falls_off if node < graph.reachable] == [0]


def test_a_branch_out_of_the_program_is_known(facts_from: FactsFrom) -> None:
    facts = facts_from(program("BRA 0x10", "EXIT"))
    assert graph_of([facts[0]._replace(distance=7), facts[1]]).falls_off == [0]
    assert graph_of(facts).falls_off == []
