"""The graph, declared once: a row a stage, from which every step of every image follows.

A step is one stage of one image (or the one step of a stage over all images).  What it depends on has four
kinds, named by their effect: the content of a file, the length of a file, parameters (plan settings and
parts of the catalogue's row), and code (the import closure of its entry modules).  doit's tasks are made
from the steps, and `as_digraph` gives the same graph to networkx for every question.

Plain data at load: networkx is imported where it is used, kernels and numpy nowhere here.  A new target or
a new stage is a row; a stage over all images is a row with `once`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from coppelius.isa.refusal import Refusal
from tasks.plan import Plan

if TYPE_CHECKING:
    import networkx

BUILD = "build"
KERNELS = "coppelius.kernels"
TILED = "coppelius.kernels.tiled."  # what the record of choices is for


class Input(NamedTuple):
    """A file that a stage reads: whose, and what of it counts."""

    file: str
    of: str = "own"  # own image, the native one, previous, every image; the target, its release, for tiled products
    counts: str = "content"  # or length


def length(file: str) -> Input:
    return Input(file, counts="length")


def previous(file: str) -> Input:
    return Input(file, of="previous")


def every(file: str) -> Input:
    return Input(file, of="every")


def native(file: str) -> Input:
    return Input(file, of="native")


def tiled(file: str) -> Input:
    return Input(file, of="tiled")


def released(file: str) -> Input:
    return Input(file, of="release")


class Stage(NamedTuple):
    name: str
    doc: str
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    code: tuple[str, ...]  # entry modules beside tasks/<name>.py
    plan: tuple[str, ...] = ()  # settings it reads
    row: tuple[str, ...] = ()  # parts of the image's row it reads
    raw: tuple[str, ...] = ()  # packages whose bytes count, comments and all
    once: bool = False
    only: str = ""  # the kernels it is for, by how their names begin
    each: str = ""  # of a stage over all images: a folder of one more output an image, and its ending


own = Input

# The kernel's module is the code of `emit`, found from the row.  Kernels count by their bytes there,
# because the line table names their lines; everywhere else comments are free.
# fmt: off
SM86 = (
    #     stage     what it gives                      inputs                   outputs
    Stage("choices", "the record of the products' choices, admitted",
                                                       (),                      ("choices.json",),
          code=("coppelius.products.admission",), once=True, only=TILED),
    Stage("emit",   "kernel -> scheduled listing in f16, and its line table",
                                                       (tiled("choices.json"),), ("emit.sass", "lines.json"),
          code=("coppelius.emit",), row=("kernel", "options", "arguments", "registers", "block_x"), raw=(KERNELS,)),
    Stage("halve",  "listing in the plan's half format",
                                                       (own("emit.sass"),),     ("halve.sass", "origin.json"),
          code=("coppelius.lowering.half_format",), plan=("half",)),
    Stage("guard",  "listing with late reads guarded", (own("halve.sass"),),    ("guard.sass",),
          code=("coppelius.schedule.late_reads",)),
    Stage("encode", "machine words",                   (own("guard.sass"),),    ("material.bin",),
          code=("coppelius.program.encoding",)),
    Stage("check",  "verdict on the machine words",    (own("material.bin"),),  ("verdict.json",),
          code=("coppelius.check.verdict",), plan=("half",),
          row=("identity", "registers", "block_x", "shared_bytes")),
    Stage("place",  "offset in the arena",             (length("material.bin"), previous("place.json")),
                                                                                ("place.json",),
          code=("coppelius.arena.placement",), plan=("alignment",)),
    Stage("arena",  "all images placed in one file, and the manifest",
          (every("material.bin"), every("place.json"), every("verdict.json"), tiled("choices.json")),
                                                                                ("arena.bin", "manifest.json"),
          code=("coppelius.arena.release",), plan=("half", "base", "alignment"),
          row=("identity", "declaration"), once=True),
    Stage("cubin",  "the release as files that the CUDA driver loads",
          (released("manifest.json"), released("arena.bin")),                  ("coppelius.cubin",),
          code=("coppelius.container.release",), once=True, each="cubins/*.cubin"),
)
LOWERED = (
    Stage("lower",  "listing in the target's words, scheduled anew",
                                                       (native("guard.sass"),), ("lower.sass", "lower.json"),
          code=("coppelius.lowering.lower",)),
    Stage("encode", "machine words",                   (own("lower.sass"),),    ("material.bin",),
          code=("coppelius.program.encoding",)),
    *(stage for stage in SM86 if stage.name in ("check", "place")),
    # what the native listings were made from is not asked again
    *(s._replace(inputs=tuple(x for x in s.inputs if x.of != "tiled")) for s in SM86 if s.once and not s.only),
)
# fmt: on

NATIVE = "sm86"
PRUNED = "pruned"  # the folder of a release pruned by hand, beside the whole one
TAKEN = frozenset(("cubins", PRUNED))  # folders of a target that are no image's
# stages whose outputs other targets are made from
FOR_OTHERS = ("choices", "emit", "halve", "guard")
TARGETS: Mapping[str, tuple[Stage, ...]] = {
    NATIVE: SM86,
    "sm121": LOWERED,
    "sm120": LOWERED,
    "sm90": LOWERED,
    "sm89": LOWERED,
    "sm80": LOWERED,
}


@dataclass(frozen=True)
class Step:
    """One node: everything that decides whether it runs."""

    name: str  # "encode:gather"; doit's name
    stage: Stage
    target: str
    identity: str | None  # None: over all images
    inputs: tuple[tuple[str, str], ...]  # (path, content or length)
    outputs: tuple[str, ...]
    parameters: Mapping[str, Any]
    code: tuple[str, ...]

    @property
    def group(self) -> str:
        return self.name.partition(":")[0]

    @property
    def folder(self) -> str:
        return self.outputs[0].rpartition("/")[0]

    @property
    def files(self) -> tuple[str, ...]:
        """The outputs' names in its folder."""
        return tuple(path[len(self.folder) + 1 :] for path in self.outputs)


class Graph:
    """All steps, in an order in which each comes after what it reads."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = {step.name: step for step in steps}
        self.producer = {path: step.name for step in self.steps.values() for path in step.outputs}

    def before(self, step: Step) -> list[str]:
        """The steps whose outputs it reads."""
        producers = (self.producer.get(path) for path, _ in step.inputs)
        return list(dict.fromkeys(name for name in producers if name))

    def as_digraph(self) -> networkx.DiGraph:
        """Steps as nodes (attribute `step`), an edge from each step to those that read its outputs."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from((name, {"step": step}) for name, step in self.steps.items())
        graph.add_edges_from((name, step.name) for step in self.steps.values() for name in self.before(step))
        return graph

    def after(self, names: Iterable[str]) -> list[str]:
        """These steps' descendants, in the graph's order, without themselves."""
        import networkx

        graph, names = self.as_digraph(), set(names)
        reached = set().union(*(networkx.descendants(graph, name) for name in names)) - names
        return [name for name in self.steps if name in reached]


def build_graph(rows: Sequence[Mapping[str, Any]], plan: Plan) -> Graph:
    """The steps of these images, one JSON-ready row each, for the plan's targets."""
    for identity, count in Counter(row["identity"] for row in rows).items():
        if count > 1:
            raise Refusal(f"image {identity!r}: {count} rows have this identity; give each image its own")
        if not identity or set(identity) & set("/=:*\\ ") or identity.startswith((".", "-")) or identity in TAKEN:
            raise Refusal(f"image {identity!r}: its identity cannot name a folder and a step")
    stages = [(target, stage) for target in plan.targets for stage in TARGETS[target]]
    if NATIVE not in plan.targets:
        stages = [(NATIVE, stage) for stage in TARGETS[NATIVE] if stage.name in FOR_OTHERS] + stages
    # what other targets read comes first
    stages.sort(key=lambda entry: entry[0] != NATIVE)
    return Graph(step for target, stage in stages for step in _steps(target, stage, rows, plan))


def _steps(target: str, stage: Stage, rows: Sequence[Mapping[str, Any]], plan: Plan) -> Iterable[Step]:
    task = stage.name if target == NATIVE else f"{stage.name}_{target}"
    settings = {name: getattr(plan, name) for name in stage.plan} | {"target": target}
    identities = [row["identity"] for row in rows]
    if (stage.only and not any(row["kernel"].startswith(stage.only) for row in rows)) or (stage.each and not rows):
        return

    def inputs(position: int) -> tuple[tuple[str, str], ...]:
        mine = rows if stage.once else rows[position : position + 1]
        of = {"every": identities, "tiled": [""] if any(row["kernel"].startswith(TILED) for row in mine) else []}
        of["release"] = [""]
        if not stage.once:
            of |= {"own": [identities[position]], "previous": identities[max(position - 1, 0) : position]}
            of |= {"native": of["own"]}
        return tuple(
            (_path(NATIVE if x.of == "native" else target, i, x.file), x.counts) for x in stage.inputs for i in of[x.of]
        )

    def parts(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in stage.row}

    entries = (f"tasks.{stage.name}", *stage.code)
    if stage.once:
        files = (*stage.outputs, *(stage.each.replace("*", identity) for identity in identities if stage.each))
        outputs = tuple(_path(target, "", file) for file in files)
        parameters = settings | ({"images": [parts(row) for row in rows]} if stage.row else {})
        yield Step(task, stage, target, None, inputs(0), outputs, parameters, entries)
        return
    for position, row in enumerate(rows):
        identity = row["identity"]
        kernel = (row["kernel"].partition(":")[0],) if "kernel" in stage.row else ()
        yield Step(
            f"{task}:{identity}",
            stage,
            target,
            identity,
            inputs(position),
            tuple(_path(target, identity, file) for file in stage.outputs),
            settings | parts(row),
            entries + kernel,
        )


def _path(target: str, identity: str, file: str) -> str:
    return "/".join(part for part in (BUILD, target, identity, file) if part)
