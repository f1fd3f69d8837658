"""The rows of the opcode table, a file a family."""
