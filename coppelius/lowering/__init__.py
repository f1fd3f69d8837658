"""A program brought to another half format, or to another target.

    half_format   f16 -> bf16, instruction for instruction
    lower         an SM86 program -> a target's program, scheduled anew;  the lower step
    rewrite       one instruction by the target's row of the same name, or of the name that `rules` gives
    expand        what the target's compiler writes otherwise: another row, two instructions for one
    rules         what is renamed, and what a target's compiler avoids, as data
    constants     constant operands -> uniform registers loaded once;  offsets in constant bank 0

Left out: indirect branches and calls (their targets are addresses in registers), generic addresses of shared memory,
constant banks named by registers; each is refused by name.
"""
