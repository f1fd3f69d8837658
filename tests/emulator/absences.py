"""The rows without a meaning, each with its reason; running one is a refusal that names it."""

from coppelius.isa.form import Encoding
from coppelius.isa.values import BindlessConstant

_TEXTURE = "textures and surfaces are descriptors that only a driver makes"
_SPARSE = "which lanes hold the metadata of a sparse product, and in which order, has no witness here"
_GRAPHICS = "of the graphics pipeline"
_STATE = "state of a warp that no compiled kernel reads: what its bits mean is not known"

# first or first two parts of a mnemonic, or all of it -> why it has no meaning
ABSENT = {
    **dict.fromkeys(
        ("TEX", "TLD", "TLD4", "TXD", "TXQ", "TMML", "SULD", "SUST", "SURED", "SUATOM", "SUQUERY"), _TEXTURE
    ),
    **dict.fromkeys(("HMMA.SP", "IMMA.SP"), _SPARSE),
    **dict.fromkeys(("PIXLD", "IPA", "AL2P", "ALD", "AST", "OUT", "ISBERD"), _GRAPHICS),
    **dict.fromkeys(("BMOV.64", "RPCMOV.32", "RPCMOV.64", "SETCTAID"), _STATE),
    "ARRIVES": "arrival barriers in shared memory: the layout of their 64 bits has no witness here",
    "ATOMS.ARRIVE": "arrival barriers in shared memory: the layout of their 64 bits has no witness here",
    "LEPC": "gives an address of code; whether of itself or of the next instruction has no witness here",
    "GETLMEMBASE": "the base of local memory as the driver sees it",
    "SETLMEMBASE": "the base of local memory as the driver sees it",
    "FSWZADD": "its per-lane table of signs has no witness here",
    "R2UR.OR": "how lanes are joined has no witness here",
}
# forms of mnemonics that have a meaning otherwise -> why these are refused by name
REFUSED_FORMS = {
    "JMP:mask": "jumps by a mask of lanes are unknown in compiled code",
    "JMP:constant-mask": "jumps by a mask of lanes are unknown in compiled code",
    "B2R": "reads the state of a barrier, which no compiled kernel does",
    "B2R:warp": "reads the state of a barrier, which no compiled kernel does",
}
# beginnings of row names -> why they are refused when they are met; a bindless constant is, in any row
REFUSED_ROWS = {
    "F2FP:merge": "into which half of C the result goes has no witness here",
    "I2IP:2.": "the order of two-bit fields has no witness here",
    "I2IP:4.": "the order of four-bit fields has no witness here",
}
BINDLESS = "bindless constants (cx[UR][...]) lie where a descriptor says that only a driver makes"


def reason(encoding: Encoding) -> str:
    """Why this row has no meaning; empty where it has one."""
    parts = encoding.mnemonic.split(".")
    for name in (encoding.mnemonic, ".".join(parts[:2]), parts[0]):
        if name in ABSENT:
            return ABSENT[name]
    return REFUSED_FORMS.get(encoding.name, "")


def refusal(encoding: Encoding) -> str:
    """Why every instruction of this row is refused, though its mnemonic has a meaning; empty where none is."""
    if any(isinstance(slot, BindlessConstant) for slot in encoding.operands) or "bindless" in encoding.name:
        return BINDLESS
    return next((why for start, why in REFUSED_ROWS.items() if encoding.name.startswith(start)), "")
