"""doit tasks, one file a stage; the only place that knows doit and paths.

The graph is one declaration (`tasks.graph`): plain data at load time, a `networkx.DiGraph` for questions.

Step            entry module (its import closure is the step's code)   inputs                    outputs under build/sm86/<identity>/
emit            the kernel's module, coppelius.emit                    catalogue row (kernel)    emit.sass, lines.json
halve           coppelius.program.half_format                          emit.sass, plan.half      halve.sass, origin.json
guard           coppelius.schedule.late_reads                          halve.sass                guard.sass
encode          coppelius.program.listing, coppelius.isa.codec         guard.sass                material.bin
check           coppelius.check.verdict                                material.bin, declaration verdict.json
place           coppelius.arena.placement                              material.bin (its length), previous place.json, plan   place.json
arena (one)     coppelius.arena.release                                all materials, places, verdicts   build/sm86/arena.bin, manifest.json

`origin.json` maps each instruction of the halved program to its ordinal in the emitted one, so that a
hazard's source line is looked up when it is reported: a moved comment re-runs `emit` alone.
"""
