"""What each instruction computes, file for file with `isa/forms`."""
