"""The tiled products as data: tiles, the shapes that are launched, the recorded choices, and what they cost by a model.

`tile` and `shape` are geometry, `record` is the reviewed literal, `record_text` its text, `admission` says which tile
serves which product, `cost` models the time on a card.  Nothing here builds a kernel; `coppelius.kernels.tiled` does.
"""
