"""The kernel language: one UPPER-CASE call emits one instruction, a lower-case call is a macro.

Registers are names, allocated by lifetime; control words are assigned by `schedule` unless pinned;
each instruction keeps its generator's file and line in a side table.  `lanes.Together` writes several
lanes side by side; `loops` lays a counted loop out, its iterations one after another or overlapped.
"""
