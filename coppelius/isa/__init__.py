"""SM86 as data.  A machine word is 128 bits: `uint64[n, 2]`, column 0 the low half.

    word      words as arrays; bit ranges over both halves
    control   the control word: stall, yield, write and read barrier, wait mask
    bits      bit ranges and fields
    slots     register and predicate operands made of fields; values, address, constants: the other operands
    operands  operand values, as kernels and passes hand them over;  literals: numbers as text
    form      one row of the opcode table, expanded to its encodings;  access: what one reads and writes
    forms/    the rows, a file a family
    targets/  other chips as differences from these rows
    table     all rows: look-up by opcode and by mnemonic, checked whole
    layout    one encoding's fields as arrays
    codec     words <-> fields, vectorised; refuses by name;  audit: a corpus through it, counted
    printer   fields -> nvdisasm's text;  parser: text -> fields
    latency   producer class x consumer class -> cycles, with witnesses

A row is the only place that knows a bit; encoder, decoder, printer, parser, def-use sets,
checkers and emulator read it.  Left out: what nvdisasm prints for SM86 and only other chips have
(UIADD3.64, CLMAD, UCLEA, UF2FP, stochastic rounding, matrix types that no compiler emits), graphics.
"""
