"""The tiled product C = A B (+ R) on tensor cores: `product` is the kernel, the rest its parts.

`layout` says where a stage's halves lie in shared memory, `copies` brings them there, `fragments` takes them to
registers, `mainloop` weaves both between the products, `epilogue` writes C.

Left out: tiles that do not divide C, and K that is not whole rings of stages; `coppelius.products.admission` refuses
both.
"""
