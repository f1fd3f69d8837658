"""Executes encoded words on numpy, all warps of a launch side by side; needs no GPU.

    launch      launch(material, ...) -> Report: decode, batches of blocks, findings
    parameters  values by (kind, type, offset) -> the parameter bytes of constant bank 0
    memory      Memory: buffers at addresses with known bounds, numpy arrays in place
    machine     the state: registers, predicates, shared and local memory, special registers
    group       which warps and lanes stand at one place of the program
    engine      runs the groups: lowest place first, branches, step limit;  barriers: who may go on
    operation   one decoded instruction: its operands by the row's slots;  access: rows of the register files
    registry    @executes("FADD"): the meaning of each mnemonic
    semantics/  those meanings, file for file with isa/forms
    numerics/   the arithmetic itself, on arrays of bit patterns
    spaces      loads and stores of each space, memcheck
    strict      the schedule honoured: when a result lands, when a source is read;  flight: what is under way;
                reuse: operands kept beside the pipes
    module      cubins as the driver loads them: code addresses, globals, banks;  launch by a kernel's name
    initcheck   undefined values followed to where they decide something or get out;  undefined: through one
                instruction;  shadow: beside memory
    racecheck   accesses to shared memory that nothing orders;  synccheck: barriers no program may count on
    traffic     sectors and bank conflicts of each access to memory
    faults      Finding, Fault

Limits: batches of blocks run one after another, so blocks that wait for each other in both directions
never finish; textures, surfaces, sparse products and bindless constants are absent (a test prints every row
without a meaning, and why).
"""
