"""Reading cubins and fatbins, writing cubins and launch descriptors.

`reader.read_kernels(path)` reads any file; `cubin.read_cubin(bytes)` one cubin; `fatbin.cubins_in(path)` finds them.
`image.images_of(manifest, arena)` gives the images of a release; `writer.write_cubin(images)` makes them a cubin,
`release.cubins_of(manifest, arena)` what a build writes; `launches` is the list of what is launched, and
`qmd.descriptors(launches, images, banks)` the launch descriptor of each.
Left out: host code, PTX and debug sections are never interpreted, relocations never applied.
"""
