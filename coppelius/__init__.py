"""Typed NVIDIA machine code: programs, schedules, checks, images.

Layers, innermost first (a test reads the imports and holds who may import whom):

    isa        SM86 as data: word, control word, slots, forms, latency grid, codec, text
    program    Instruction, Program, basic blocks, listing, half format
    builder    the kernel language (named registers, regions, macros, source lines)
    schedule   barriers, stalls, late reads, compaction, list scheduling
    check      scoreboard, fixed latency, resources; never imports `schedule`
    lowering   target differences as rows
    emulator   executes encoded words on numpy; never imports `schedule`, `check`, `reference`
    reference  plain numpy: what each kernel must compute; imports only numpy
    products   the tiled products' tiles, record of choices and model of time
    kernels    one algorithm a file; imports only `builder` (and `isa.operands`)
    container  cubin, fatbin, launch descriptors
    device     a card that times what is launched, through an optional package
    arena      placement, manifest
    catalog    the images, kernels named by string
    cli        outermost; nothing imports it
"""
