"""Programs: typed instructions with their control words.

program      Instruction, Program: rows of (encoding, field values, control)
listing      Program <-> text, exact both ways; a line is `[control] text {hidden=value}`
encoding     the encode step: listing -> material
flow         basic blocks of programs that are to be changed
edit         instructions inserted or replaced, branches following their targets
stages       a pipelined loop as data: the stage and the rank of each instruction of its body
unroll       a loop's body several times and no branch
cycles       modelled_cycles(program, trace, memory=32, warps=1), resident_warps(registers): the one cycle model
trace        traces for it: every reachable instruction, or one path through the loops
"""
