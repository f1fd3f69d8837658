"""doit tasks, one file a stage; the only place that knows doit and paths.

The graph is one declaration (`tasks.graph`): plain data at load time, a `networkx.DiGraph` for questions.

Step         entry modules                     inputs                             under build/<target>/<identity>/
emit         the kernel's, coppelius.emit      kernel, options, budget, arguments emit.sass, lines.json
halve        coppelius.lowering.half_format     emit.sass, half                    halve.sass, origin.json
guard        coppelius.schedule.late_reads     halve.sass                         guard.sass
encode       coppelius.program.encoding        guard.sass                         material.bin
check        coppelius.check.verdict           material.bin, half, row            verdict.json
place        coppelius.arena.placement         length of material.bin, alignment, place.json
                                               previous place.json
arena (one)  coppelius.arena.release           every material, place and verdict, arena.bin, manifest.json
                                               plan, rows                         (in build/<target>/)
cubin (one)  coppelius.container.release       arena.bin, manifest.json           coppelius.cubin, cubins/*.cubin
                                                                                  (in build/<target>/)

For another target `lower` (coppelius.lowering.lower; native guard.sass -> lower.sass, lower.json) comes before its own
encode, check, place, arena and cubin; the steps are named `lower_sm121:gather` and so on.

A step's code is its entry modules, all that they import of coppelius, and its stage's file here.

    graph     the declaration            ledger    is a step up to date, and why not
    plan      plan settings              project   one checkout opened: plan, graph, ledger
    step      a stage as doit tasks      manager   doit decides by the ledger
    outputs   how stages spell files     reporter  what a build prints
    restore   keys, and outputs from     spans     a build as a trace
              the store                  gc        bounds the store
    questions affected, standings        loading   errors before a build can start
    TRAPS.md  what doit does otherwise

`origin.json` maps each instruction of the halved program to its ordinal in the emitted one, so that a
hazard's source line is looked up when it is reported: a moved comment re-runs `emit` alone.
"""
