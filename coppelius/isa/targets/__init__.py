"""Other targets as differences from SM86's rows, each target from the one before it.

    difference  what a target changes: rows gone, changed, added;  adapt: the operands of a changed row
    chips       SM89, SM80, SM90, SM120 and SM121 as such differences
    layout      where each target keeps parameters, descriptor and shared memory
    latencies   classes of the latency grid that other targets need

Left out: what only other chips have, where no SM86 instruction becomes it (64-bit integer sums, uniform
floating point, clusters, bulk copies).
"""
