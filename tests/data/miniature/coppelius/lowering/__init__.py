"""Part of the miniature checkout."""
