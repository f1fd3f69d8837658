"""Executes encoded words on numpy, all warps of a launch side by side; needs no GPU."""
