"""A step's code is its entry modules and all that they import, read from the source and never imported.

What counts of a module is its syntax tree: comments, blank lines, layout and docstrings do not.  Docstrings
do count where some module of the closure reads `__doc__`.  Of a package in `raw` the bytes count, since
positions in its source reach an output.  A module that reads files beside it (`__file__`,
`importlib.resources`) depends on all data files of its folder.  A module that does not parse counts by its
bytes; whoever runs it reports the error.

Imports under `if TYPE_CHECKING` never run and do not count; imports inside functions do.  An import by a
name computed at run time cannot be seen: whoever does that declares the module as an entry.
"""

import ast
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cache.database import Signature, State
from cache.files import Files
from cache.imports import loaded

# of what `read_facts` gives; the tree's shape depends on the interpreter
FACTS = f"3 {sys.version_info.major}.{sys.version_info.minor}"


class Sources:
    """The checkout's modules: where each lies, what it imports, what counts of it."""

    def __init__(self, root: Path, files: Files, state: State, followed: Sequence[str]) -> None:
        """`followed`: the packages and modules that count wherever they are imported."""
        self._root, self._files, self._state = root, files, state
        self._followed = tuple(f"{name}." for name in followed)
        self._signatures: dict[str, Signature] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._kept: dict[str, dict[str, Any]] | None = None
        self._new: dict[str, dict[str, Any]] = {}
        self.modules: dict[str, str] = {}
        self.data: dict[str, list[str]] = {}
        self._imports: dict[str, list[str]] = {}
        self._digests: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, list[str]]] = {}
        self.counted: dict[str, dict[str, str]] = {}  # of each digest given: what counted of each file
        for package in dict.fromkeys(name.partition(".")[0] for name in followed):
            self._scan(package)

    def _scan(self, folder: str) -> None:
        """Fills the tables from one package's folder and those below it."""
        try:
            entries = sorted(os.scandir(self._root / folder), key=lambda entry: entry.name)
        except OSError:
            return
        package = folder.replace("/", ".")
        for entry in entries:
            path = f"{folder}/{entry.name}"
            found = self._files.signature(path)
            if found is None:  # a link to nowhere, as editors leave for a lock, is no module
                continue
            if entry.is_dir():
                if entry.name != "__pycache__":
                    self._scan(path)
            elif entry.name == "__init__.py":
                self.modules[package] = path
            elif entry.name.endswith(".py"):
                self.modules.setdefault(f"{package}.{entry.name[:-3]}", path)
            else:
                self.data.setdefault(folder, []).append(path)
                continue
            if path.endswith(".py"):
                self._signatures[path] = found

    def unchanged(self, paths: Iterable[str]) -> bool:
        """Are these files what they were when they were first looked at?"""
        return all(self._files.signature(path) == self._signatures.get(path) for path in paths)

    def facts(self, module: str) -> dict[str, Any]:
        found = self._facts.get(module)
        if found is None:
            found = self._facts[module] = self._look_up(module)
        return found

    def _look_up(self, module: str) -> dict[str, Any]:
        if self._kept is None:
            self._kept = self._state.facts()
        path = self.modules[module]
        digest = self._files.digest(path, self._signatures[path])
        key = f"{FACTS} {module} {digest}"
        if key in self._kept:
            return self._kept[key]
        try:
            source = (self._root / path).read_bytes()
        except OSError:
            source = b""
        facts = read_facts(source, module, path.endswith("/__init__.py"))
        if facts["raw"] == digest:  # or it changed since it was looked at, and nothing will be recorded
            self._new[key] = facts
        return facts

    def save(self) -> None:
        if self._new and self._kept is not None:
            live = {f"{FACTS} {m} {self._files.digest(p, self._signatures[p])}" for m, p in self.modules.items()}
            self._state.save_facts(self._new, live)
            self._kept.update(self._new)
            self._new = {}

    def imports(self, module: str) -> list[str]:
        """The followed modules that importing this one runs."""
        found = self._imports.get(module)
        if found is None:
            named = [name for name in (module, *self.facts(module)["imports"]) if f"{name}.".startswith(self._followed)]
            reached = dict.fromkeys(name for whole in named for name in _with_parents(whole))
            found = [name for name in reached if name in self.modules and f"{name}.".startswith(self._followed)]
            self._imports[module] = found
        return found

    def closure(self, entries: Iterable[str]) -> list[str]:
        """These modules, and of all they import those that are followed, sorted."""
        waiting = [name for name in entries if name in self.modules]
        seen = set(waiting)
        while waiting:
            fresh = [name for name in self.imports(waiting.pop()) if name not in seen]
            seen.update(fresh)
            waiting.extend(fresh)
        return sorted(seen)

    def files_of(self, modules: Iterable[str]) -> list[str]:
        """The files that these modules are and read."""
        paths = []
        for module in modules:
            paths.append(self.modules[module])
            if self.facts(module)["reads_files"]:
                paths.extend(self.data.get(os.path.dirname(self.modules[module]), ()))  # noqa: PTH120
        return list(dict.fromkeys(paths))

    def digest(self, entries: tuple[str, ...], raw: tuple[str, ...] = ()) -> tuple[str, list[str]]:
        """The digest of a closure's code, and the files it rests on."""
        if (entries, raw) not in self._digests:
            self._digests[entries, raw] = self._digest(entries, raw)
        return self._digests[entries, raw]

    def runs_as_read(self, entries: Iterable[str]) -> bool:
        """Did this process load the modules of a closure, as far as it has, from what was looked at?"""
        return all(loaded.get(m) in (None, self.facts(m)["raw"]) for m in self.closure(entries))

    def _digest(self, entries: tuple[str, ...], raw: tuple[str, ...]) -> tuple[str, list[str]]:
        modules = self.closure(entries)
        facts = [self.facts(module) for module in modules]
        tree = "documented" if any(fact["reads_docs"] for fact in facts) else "bare"
        total = hashlib.sha256()
        parts: dict[str, str] = {}
        for module, fact in zip(modules, facts, strict=True):
            counted = "raw" if f"{module}.".startswith(tuple(f"{name}." for name in raw)) else tree
            total.update(f"{module} {fact[counted]}\n".encode())
            parts[self.modules[module]] = fact[counted]
        paths = self.files_of(modules)
        for path in paths:
            if not path.endswith(".py"):
                signature, digest = self._files.look(path)
                self._signatures.setdefault(path, signature or (0, 0, 0, 0))
                total.update(f"{path} {digest}\n".encode())
                parts[path] = digest
        self.counted[total.hexdigest()] = parts
        return total.hexdigest(), paths


@cache
def _with_parents(module: str) -> tuple[str, ...]:
    """Importing a.b.c runs a and a.b as well."""
    parts = module.split(".")
    return tuple(".".join(parts[: n + 1]) for n in range(len(parts)))


def read_facts(source: bytes, module: str, is_package: bool) -> dict[str, Any]:
    """What a module imports, whether it reads docstrings or files, and digests of its trees."""
    raw = hashlib.sha256(source).hexdigest()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # ValueError: null bytes
        return {"imports": [], "reads_docs": False, "reads_files": False, "bare": raw, "documented": raw,
                "raw": raw}  # fmt: skip
    package = module if is_package else module.rpartition(".")[0]
    flat = _flattened(tree)
    imports = sorted({name for node in flat.importing for name in _imported(node, package)})
    return {
        "imports": imports,
        "reads_docs": bool(flat.names & {"__doc__", "getdoc"}),
        "reads_files": "__file__" in flat.names or "importlib.resources" in imports,
        "bare": _digest_of(flat.parts),
        "documented": _digest_of([*flat.parts, *flat.docs]),
        "raw": raw,
    }


def _digest_of(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class _Flat(NamedTuple):
    """A tree without its docstrings, and these with their places, each as lines; names it uses, nodes that may import.

    Node by node its kind, its fields' values in the order of its kind, a list by its length first: equal lines,
    equal trees.  Whether a name is read or written follows from its place.
    """

    parts: list[str]
    docs: list[str]
    names: set[str]
    importing: list[ast.AST]


def _flattened(tree: ast.AST) -> _Flat:
    """All in one walk, which is most of what a cold build does with its sources."""
    flat = _Flat([], [], set(), [])
    parts, docs, names, importing = flat
    never: set[ast.AST] = set()  # nodes that may import, where nothing runs
    waiting: list[Any] = [tree]
    while waiting:
        node: Any = waiting.pop()
        kind: Any = type(node)
        if kind is ast.Name:
            names.add(node.id)
            parts.append(f"Name {node.id}")
        elif kind is list:
            parts.append(str(len(node)))
            waiting += node
        elif issubclass(kind, ast.AST):
            parts.append(kind.__name__)
            values = [getattr(node, field, None) for field in kind._fields]
            if kind in _DOCUMENTED:
                if (doc := _docstring(node.body)) is not None:
                    docs.append(f"{len(parts)} {doc!r}")
                    values[kind._fields.index("body")] = node.body[1:]
            elif kind is ast.Attribute:
                names.add(node.attr)
            elif kind in _IMPORTING:
                importing.append(node)
            elif kind is ast.If and _is_type_checking(node.test):
                never.update(below for statement in node.body for below in ast.walk(statement))
            waiting += values
        else:
            parts.append(repr(node))
    return flat._replace(importing=[node for node in importing if node not in never])


_IMPORTING = (ast.Import, ast.ImportFrom, ast.Call)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _docstring(body: list[ast.stmt]) -> str | None:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value
    return None


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    """Every module that a node may import, absolute; `from a import b` gives a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
            yield node.args[0].value


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
