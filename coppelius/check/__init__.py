"""Do this material's control bits cover its own dependences?  Judged from the bytes alone.

    hazard         Hazard: rule, both instructions, register, cycles needed and given, remedy
    scoreboard     variable-latency results, late reads, barriers, over the control-flow graph
    fixed_latency  producer to consumer distances on every path
    resources      registers, shared bytes, half format against the declaration
    verdict        all of them for one image, as JSON-ready data

Never imports `schedule`.
"""
