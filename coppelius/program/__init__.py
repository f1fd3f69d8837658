"""Programs: typed instructions with their control words.

program      Instruction, Program: rows of (encoding, field values, control)
blocks       basic blocks and the control-flow graph, loops and calls included
listing      Program <-> text, exact both ways; a line is `[control] text ; {hidden=value}`
half_format  with_half_format(program, "bf16" | "f16")
"""
