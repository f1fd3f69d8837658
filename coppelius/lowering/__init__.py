"""A program brought to another half format, or to another target.

    half_format   f16 -> bf16, instruction for instruction
    lower         an SM86 program -> a target's program, scheduled anew;  the lower step
    rewrite       one instruction by the target's row of the same name, or of the name that `rules` gives
    rules         what is renamed, and what has no counterpart, as data
    constants     constant operands -> uniform registers loaded once;  offsets in constant bank 0

Left out: indirect branches and calls (their targets are addresses in registers), generic addresses of shared memory,
constant banks named by registers; each is refused by name.
"""
