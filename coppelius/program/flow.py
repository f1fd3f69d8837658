"""Basic blocks of a program and who follows whom, for passes that change programs.

A branch goes to its target, and on where it is guarded or has a predicate operand that may be false.
BSSY only notes where BSYNC joins; BSYNC goes on to the next instruction, where its target stands.
Calls and indirect branches are refused: nothing here can say where they come back.
"""

from __future__ import annotations

from dataclasses import dataclass

from coppelius.isa.refusal import Refusal
from coppelius.isa.word import WORD_BYTES
from coppelius.program.program import Instruction, Program, branch_target

_UNKNOWN = ("CALL", "RET", "BRX", "BRXU", "JMX", "JMXU", "JMP", "KILL", "RPCMOV")
_ENDS = ("BRA", "EXIT")
_TURNS = frozenset((*_UNKNOWN, *_ENDS))


@dataclass(frozen=True)
class Block:
    """Instructions `start` to `end - 1`; `following` are the first ordinals of blocks that may come next."""

    start: int
    end: int
    following: tuple[int, ...]


def stem(instruction: Instruction) -> str:
    """The mnemonic's first part."""
    return instruction.encoding.stem


def may_fall_through(instruction: Instruction) -> bool:
    """Whether a BRA or EXIT can go on to the next instruction."""
    for access in instruction.encoding.accesses:
        if access.mode == "read" and access.space in ("P", "UP"):
            state = (instruction[access.field], instruction.get(f"{access.field}.not"))
            if state != (7, 0):
                return True
    return ".DIV" in instruction.encoding.mnemonic or bool(instruction.get("DIV"))


def following(instruction: Instruction, ordinal: int, count: int) -> tuple[int, ...]:
    """Ordinals that may be executed after it."""
    name = stem(instruction)
    if name not in _TURNS:
        return (ordinal + 1,) if ordinal + 1 < count else ()
    if name in _UNKNOWN:
        raise Refusal(
            f"instruction {ordinal} at {ordinal * WORD_BYTES:#x}: {name} goes where only the whole module knows, "
            "and is not rescheduled; write what it leads to in its place, and branch by BRA"
        )
    out: list[int] = []
    if name == "BRA":
        target = branch_target(instruction, ordinal)
        if target is None or not 0 <= target < count:
            raise Refusal(f"instruction {ordinal}: BRA leaves the program")
        out.append(target)
    if (name not in _ENDS or may_fall_through(instruction)) and ordinal + 1 < count:
        out.append(ordinal + 1)
    return tuple(dict.fromkeys(out))


def blocks(program: Program) -> list[Block]:
    """The basic blocks in program order."""
    if "blocks" not in program.memo:
        program.memo["blocks"] = _blocks(program)
    return list(program.memo["blocks"])


def _blocks(program: Program) -> list[Block]:
    rows = program.rows
    after = [following(row, i, len(rows)) for i, row in enumerate(rows)]
    leaders = {0}
    for i, row in enumerate(rows):
        if stem(row) in _ENDS:
            leaders.update(t for t in after[i])
            leaders.add(i + 1)
        if stem(row) == "BSSY":
            target = branch_target(row, i)
            leaders.update(() if target is None else (target,))
    starts = sorted(s for s in leaders if 0 <= s < len(rows))
    return [Block(s, e, after[e - 1]) for s, e in zip(starts, [*starts[1:], len(rows)], strict=True)]
