"""The control-flow graph of decoded material, as a checker needs it: no path of the machine is missing.

A block is a run of instructions entered at its first and left at its last.  A node is a block in a call
context (the return site of the innermost call), so that a return goes back to the caller that called.
Guarded branches, branches with a second predicate and `.DIV` also fall through.  A call whose callee never
returns is a jump.  A jump through a register may go to the targets given for it, else to the start of every block.
`BSSY` names the place where threads meet again and transfers nothing; nor do BSYNC, BREAK, WARPSYNC, YIELD.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coppelius.check.facts import Facts
from coppelius.check.shape import BRANCH, CALL, EXIT, INDIRECT, PLAIN, RETURN, TRAP

# a node of no call
OUTSIDE = -1


@dataclass
class Graph:
    """Nodes are ordinals into `blocks` and `contexts`; `entries` start with nothing in flight.

    spans: (first, end) of each block.  blocks: the block of each node.  falls_off: nodes whose path runs past the
    last instruction.
    """

    spans: list[tuple[int, int]]
    blocks: list[int] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    falls_off: list[int] = field(default_factory=list)
    reachable: int = 0

    def predecessors(self) -> list[list[int]]:
        """The inverse of `successors`."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for node, targets in enumerate(self.successors):
            for target in targets:
                found[target].append(node)
        return found


def graph_of(facts: Sequence[Facts], targets: Mapping[int, Sequence[int]] | None = None) -> Graph:
    """The graph of a program; `targets`: where each jump through a register may go, by ordinal, where known."""
    return _Builder(facts, targets).build()


def leaders_of(facts: Sequence[Facts], targets: Sequence[int] = ()) -> list[int]:
    """Ordinals at which a block starts, in order; `targets`: of jumps through registers."""
    count = len(facts)
    starts = {0, *targets} if count else set()
    for i, f in enumerate(facts):
        if f.flow != PLAIN:
            starts.add(i + 1)
            if f.distance is not None:
                starts.add(i + 1 + f.distance)
    return sorted(s for s in starts if 0 <= s < count)


class _Builder:
    def __init__(self, facts: Sequence[Facts], targets: Mapping[int, Sequence[int]] | None) -> None:
        self.facts = facts
        self.targets = targets or {}
        starts = leaders_of(facts, [t for known in self.targets.values() for t in known])
        self.block_at = {start: i for i, start in enumerate(starts)}
        ends = [*starts[1:], len(facts)][: len(starts)]
        self.graph = Graph(list(zip(starts, ends, strict=True)))
        self.returns = self._returning()
        self.node_of: dict[tuple[int, int], int] = {}
        self.callers: dict[int, set[int]] = {}
        self.returning: dict[int, list[int]] = {}
        self.pending: list[int] = []

    def build(self) -> Graph:
        graph = self.graph
        if not graph.spans:
            return graph
        graph.entries.append(self._node(0, OUTSIDE))
        self._close()
        graph.reachable = len(graph.blocks)
        # code that nothing reaches may be reached by means we can't see (a function's address): it starts afresh
        seen = set(graph.blocks)
        for block in range(len(graph.spans)):
            if block not in seen:
                known = len(graph.blocks)
                graph.entries.append(self._node(block, OUTSIDE))
                self._close()
                seen.update(graph.blocks[known:])
        return graph

    def _node(self, block: int, context: int) -> int:
        found = self.node_of.get((block, context))
        if found is None:
            found = self.node_of[block, context] = len(self.graph.blocks)
            self.graph.blocks.append(block)
            self.graph.contexts.append(context)
            self.graph.successors.append([])
            self.pending.append(found)
        return found

    def _edge(self, node: int, block: int | None, context: int) -> None:
        if block is None:
            self.graph.falls_off.append(node)
            return
        target = self._node(block, context)
        if target not in self.graph.successors[node]:
            self.graph.successors[node].append(target)

    def _close(self) -> None:
        while self.pending:
            self._expand(self.pending.pop())

    def _expand(self, node: int) -> None:
        graph = self.graph
        context = graph.contexts[node]
        end = graph.spans[graph.blocks[node]][1]
        last = self.facts[end - 1]
        following = self.block_at.get(end)
        flow = last.flow
        if flow == PLAIN or last.guarded:
            self._edge(node, following, context)
        target = None if last.distance is None else self.block_at.get(end + last.distance)
        if flow == BRANCH:
            self._edge(node, target, context)
        elif flow == INDIRECT:
            known = self.targets.get(end - 1)
            blocks = range(len(graph.spans)) if known is None else [self.block_at.get(t) for t in known]
            for block in blocks:
                self._edge(node, block, context)
        elif flow == CALL:
            self._call(node, target, following, last.distance is not None)
        elif flow == RETURN:
            self._return(node)
        elif flow not in (PLAIN, EXIT, TRAP):
            graph.falls_off.append(node)

    def _call(self, node: int, target: int | None, following: int | None, known: bool) -> None:
        context = self.graph.contexts[node]
        if not known:
            # a call out of sight comes back with everything still in flight
            self._edge(node, following, context)
            return
        if target is None or not self.returns[target] or following is None:
            self._edge(node, target, context)
            return
        self._edge(node, target, following)
        known_callers = self.callers.setdefault(following, set())
        if context not in known_callers:
            known_callers.add(context)
            for back in self.returning.get(following, []):
                self._edge(back, following, context)

    def _return(self, node: int) -> None:
        site = self.graph.contexts[node]
        if site == OUTSIDE:
            return
        self.returning.setdefault(site, []).append(node)
        for context in list(self.callers.get(site, ())):
            self._edge(node, site, context)

    def _returning(self) -> list[bool]:
        """Whether each block may reach a RET without leaving its function (calls are stepped over)."""
        graph = self.graph
        into: list[list[int]] = [[] for _ in graph.spans]
        found = [False] * len(graph.spans)
        for block, (_, end) in enumerate(graph.spans):
            last = self.facts[end - 1]
            if last.flow == RETURN:
                found[block] = True
            following = self.block_at.get(end)
            if following is not None and (last.flow in (PLAIN, CALL) or last.guarded):
                into[following].append(block)
            target = None if last.distance is None else self.block_at.get(end + last.distance)
            if target is not None and last.flow == BRANCH:
                into[target].append(block)
        pending = [b for b, yes in enumerate(found) if yes]
        while pending:
            for block in into[pending.pop()]:
                if not found[block]:
                    found[block] = True
                    pending.append(block)
        return found
