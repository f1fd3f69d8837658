"""Control words from the dependence graph: barriers, stalls, ordering; guard; compaction.

    schedule     schedule(program, pins, reorder=False) -> the program under its control words, and origins
    barriers     which of the six scoreboards each producer raises, who waits; `sharing`, `estimate`
    stalls       distances on every path, paced by the pipes
    reuse        operands that the next reader of a slot wants again
    reorder      order within blocks, of placed or virtual registers; `pressure` bounds the live ones
    pipeline     stages of a loop's body, by modulo scheduling; `builder.loops` lays them out, `emit` chooses
    late_reads   guard_late_reads(program): covers for late reads that the check refuses, and nothing else
    compaction   compact_stalls(program): every stall as low as the checks allow
    operation    what the passes need of one instruction

Shares the opcode table and the latency grid with `check`, and no code.  `late_reads` (guard) and
`compaction` may call `check`.

Left out: programs with calls and indirect branches are refused (compaction and guard take them).
"""
