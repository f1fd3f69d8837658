"""Do this material's control bits cover its own dependences?  Judged from the bytes alone.

    shape          an encoding and its modifiers: places in the latency grid, queue, meaning
    facts          one word as integers: registers read and written, control bits
    flow           the control-flow graph, calls matched to their returns
    scan           one block front to back: what is in flight, what covers it
    scoreboard     variable-latency results, late reads, barriers, over the control-flow graph
    fixed_latency  producer to consumer distances on every path, least stalls, the reuse cache
    resources      registers, half format and ends against the declaration
    shared_use     shared bytes, as far as addresses can be known
    notes          what is worth knowing and never wrong
    hazard         Hazard: rule, both instructions, register, cycles needed and given, remedy
    verdict        all of them for one image, as JSON-ready data and as text

Never imports `schedule`.  Left out: memory ordering and data races between threads (the emulator's), uniform
values under divergence, more than 63 producers on one scoreboard, functions that lie outside the material.
"""
