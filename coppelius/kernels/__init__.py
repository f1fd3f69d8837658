"""One algorithm a file, written in the kernel language."""
