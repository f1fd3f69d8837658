"""The kernels of any file: a cubin, a fat binary, an executable or library that holds some, or raw words."""

from pathlib import Path

from coppelius.container.cubin import WORD_BYTES, Kernel, read_cubin
from coppelius.container.fatbin import Entry, cubins_in, entries, is_cubin, mapped
from coppelius.isa.refusal import Refusal


def read_kernels(
    path: Path | str, arch: int = 86, raw: bool = False, relocatable: bool = False, *, data_only: bool = False
) -> list[Kernel]:
    """Every kernel of an architecture (86 for sm_86) in a file, in order.

    Refuses a file without any, unless `data_only` allows cubins that hold no kernel.
    `raw` takes the whole file for the words of one kernel, named like the file.
    """
    path = Path(path)
    if raw:
        return [_read_raw(path, arch)]
    found = [read_cubin(image, origin) for image, origin in cubins_in(path, arch, relocatable)]
    if not found:
        raise Refusal(f"{path.name}: holds no cubin for sm_{arch}{_contents(path)}")
    for cubin in found:
        if cubin.architecture != arch:
            raise Refusal(f"{cubin.origin}: is for sm_{cubin.architecture}, not for sm_{arch}")
    kernels = [kernel for cubin in found for kernel in cubin.kernels]
    if not kernels and not data_only:
        raise Refusal(f"{path.name}: holds cubins for sm_{arch}, but no kernel in them")
    return kernels


def _read_raw(path: Path, arch: int) -> Kernel:
    words = path.read_bytes()
    if not words or len(words) % WORD_BYTES:
        raise Refusal(f"{path.name}: {len(words)} bytes are no whole number of {WORD_BYTES}-byte instructions")
    return Kernel(name=path.stem, architecture=arch, is_entry=True, code=words, origin=path.name)


def _contents(path: Path) -> str:
    """What there is instead: `; it holds cubin sm_80, ptx sm_90`."""
    with mapped(path) as buffer:
        if is_cubin(buffer):
            return ""
        rows: list[Entry] = list(entries(buffer, path.name))
        held = dict.fromkeys(f"{row.kind_name} sm_{row.architecture}" for row in rows)
        if held:
            return f"; it holds {', '.join(held)}"
        return "; it is empty" if not len(buffer) else "; it is no cubin and no fat binary lies in it"
