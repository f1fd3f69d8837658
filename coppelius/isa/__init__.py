"""SM86 as data.  A machine word is 128 bits: `uint64[n, 2]`, column 0 the low half.

    word      words as arrays; bit ranges over both halves
    control   the control word: stall, yield, write and read barrier, wait mask
    slots     fields (every bit position once) and operands made of fields
    form      one row of the opcode table, expanded to its encodings
    forms/    the rows, a file a family
    table     all rows: look-up by opcode and by mnemonic, checked whole
    codec     words <-> fields, vectorised; refuses by name
    printer   fields -> nvdisasm's text;  parser: text -> fields
    latency   producer class x consumer class -> cycles, with witnesses

A row is the only place that knows a bit; encoder, decoder, printer, parser, def-use sets,
checkers and emulator read it.
"""
