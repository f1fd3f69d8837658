"""Reading cubins and fatbins, writing cubins and launch descriptors.

`reader.read_kernels(path)` reads any file; `cubin.read_cubin(bytes)` one cubin; `fatbin.cubins_in(path)` finds them.
Left out: host code, PTX and debug sections are never interpreted, relocations never applied.
"""
