"""What the build remembers between runs: digests, atomic files, saved state.  Its data lies in ignored files beside it."""
