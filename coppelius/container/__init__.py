"""Reading cubins and fatbins, writing cubins and launch descriptors.

`reader.read_kernels(path)` reads any file; `cubin.read_cubin(bytes)` one cubin; `fatbin.cubins_in(path)` finds them.
`image.images_of(manifest, arena)` gives the images of a release; `writer.write_cubin(images)` makes them a cubin,
`qmd.pack(Descriptor.of(image, grid, ...))` the launch descriptor of one; `launches` is the list of what is launched.
Left out: host code, PTX and debug sections are never interpreted, relocations never applied.
"""
