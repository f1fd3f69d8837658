"""What the tasks of a graph cost grows as the graph does, and no faster."""

import pickle
from types import SimpleNamespace

from doit.control import TaskControl

from tasks import step as steps
from tasks.graph import build_graph
from tasks.plan import Plan

IMAGES = 200


class Counted(str):
    """A task's name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def rows(count):
    whole = {"kernel": "coppelius.kernels.k:k", "options": {}, "arguments": [], "registers": 8, "block_x": 32,
             "shared_bytes": 0, "declaration": {}}  # fmt: skip
    return [{"identity": f"image-{n}", **whole} for n in range(count)]


def test_the_files_of_the_arena_are_looked_up_and_not_searched_for(monkeypatch):
    graph = build_graph(rows(IMAGES), Plan())
    graph.producer = {path: Counted(name) for path, name in graph.producer.items()}
    monkeypatch.setattr(steps, "project", lambda: SimpleNamespace(graph=graph))
    (arena,) = steps.steps_of("arena", None)
    before = list(arena.task_dep)
    assert len(before) == len(arena.file_dep) == 3 * IMAGES
    Counted.compared = 0
    TaskControl.add_implicit_task_dep(graph.producer, arena, arena.file_dep)
    assert Counted.compared < 10 * len(before)  # a list is searched with 300 a file
    assert list(arena.task_dep) == before


def test_names_are_a_list_that_travels_between_processes():
    names = steps.Names(["a", "b"])
    names.append("c")
    for found in (names, pickle.loads(pickle.dumps(names))):
        assert found == ["a", "b", "c"]
        assert [name in found for name in "abcd"] == [True, True, True, False]
        assert found + ["d"] == ["a", "b", "c", "d"]  # noqa: RUF005 (as doit does)
