"""The arithmetic of SM86 on arrays of bit patterns, bit-exact, without a loop over elements.

Functions take and give unsigned arrays (uint16, uint32, uint64) that broadcast; they know nothing of
instructions, registers or lanes. Modules by family:

    rounding   the four roundings, the formats, one rounding of a 64-bit significand to any format
    float32    FADD, FMUL, FFMA, FCHK              float64   DADD, DMUL, DFMA
    half       HADD2, HMUL2, HFMA2 (f16 and bf16), swizzles
    compare    ordered and unordered comparisons, minimum and maximum, of every format
    convert    F2F, F2FP, F2I, I2F, I2I, FRND
    integer    IMAD, IADD3, LEA, IDP, minima    bitwise   SHF, PRMT, LOP3, POPC, FLO, BREV, SGXT, BMSK
    mufu       the MUFU functions, correctly rounded, with the bounds within which the machine may differ
    fragment   which lane and register holds which matrix element
    matrix     HMMA (exact or fast), IMMA, DMMA

Limits: MUFU is not bit-exact (its tables are not published); sparse and 4-bit MMA are absent.
"""
