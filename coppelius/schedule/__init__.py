"""Control words from the dependence graph: barriers, stalls, ordering; guard; compaction.

Shares the opcode table and the latency grid with `check`, and no code.  `late_reads` (guard) and
`compaction` may call `check`.
"""
