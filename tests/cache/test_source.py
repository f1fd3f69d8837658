"""What counts of a step's code, and how far its imports reach."""

import pytest

from cache.database import State
from cache.files import Files
from cache.source import Sources, read_facts


@pytest.fixture
def tree(tmp_path):
    """Writes modules and gives their sources; each call looks anew."""

    def look(modules: dict[str, str], followed=("pack",)) -> Sources:
        for path, text in modules.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            for folder in file.parents:
                if folder.is_relative_to(tmp_path / "pack"):
                    (folder / "__init__.py").touch()
            file.write_text(text)
        state = State(tmp_path / "state")
        return Sources(tmp_path, Files(tmp_path, state), state, followed)

    return look


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("import pack.b", ["pack", "pack.a", "pack.b"]),
        ("import pack.deep.d as d", ["pack", "pack.a", "pack.deep", "pack.deep.d"]),
        ("from pack import b", ["pack", "pack.a", "pack.b"]),
        ("from pack.b import name", ["pack", "pack.a", "pack.b"]),
        ("from . import b", ["pack", "pack.a", "pack.b"]),
        ("from .deep import d", ["pack", "pack.a", "pack.deep", "pack.deep.d"]),
        ("def f():\n    from pack.b import name", ["pack", "pack.a", "pack.b"]),
        ("import importlib\nimportlib.import_module('pack.b')", ["pack", "pack.a", "pack.b"]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pack.b", ["pack", "pack.a"]),
        (
            "import typing\nif typing.TYPE_CHECKING:\n    import os\nelse:\n    import pack.b",
            ["pack", "pack.a", "pack.b"],
        ),
        ("import numpy, packing, pack.missing", ["pack", "pack.a"]),
        ("from pack.chain import x", ["pack", "pack.a", "pack.b", "pack.chain"]),
    ],
)
def test_the_closure_is_what_the_imports_reach(tree, text, reached):
    chain = {"pack/chain.py": "import pack.b", "pack/b.py": "", "pack/deep/d.py": "from .. import a"}
    assert tree({"pack/a.py": text, **chain}).closure(["pack.a"]) == reached


def test_a_package_imports_relative_to_itself(tree):
    sources = tree(
        {"pack/deep/d.py": "", "pack/b.py": "", "pack/deep/__init__.py": "from . import d\nfrom .. import b\n"}
    )
    assert sources.closure(["pack.deep"]) == ["pack", "pack.b", "pack.deep", "pack.deep.d"]


def test_only_followed_modules_are_reached_but_entries_always_count(tree):
    modules = {"pack/a.py": "", "other/stage.py": "import pack.a, other.shared, other.hidden", "other/shared.py": "",
               "other/hidden.py": "import pack.b", "pack/b.py": ""}  # fmt: skip
    sources = tree(modules, followed=("pack", "other.shared"))
    assert sources.closure(["other.stage"]) == ["other.shared", "other.stage", "pack", "pack.a"]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("x = 1\n", "x = 1  # one\n\n\n", True),
        ("x = (1,\n 2)\n", "x = (1, 2)\n", True),
        ('"""A."""\nx = 1\n', '"""B."""\nx = 1\n', True),
        ("x = 1\n", '"""New."""\nx = 1\n', True),
        ('def f():\n    """A."""\n    return 1\n', "def f():\n    return 1\n", True),
        ("x = 1\n", "x = 2\n", False),
        ("x = 'a'\n", "x = 'b'\n", False),
        ("def f(a=1): ...\n", "def f(a=2): ...\n", False),
        ("x: int = 1\n", "x: str = 1\n", False),
        ('"""A."""\nprint(__doc__)\n', '"""B."""\nprint(__doc__)\n', False),
        ("x = 1\n", "x = 1\nx = (\n", False),
    ],
)
def test_comments_and_layout_do_not_count(tree, before, after, same):
    first = tree({"pack/a.py": before}).digest(("pack.a",))[0]
    assert (tree({"pack/a.py": after}).digest(("pack.a",))[0] == first) == same


def test_a_reader_of_docstrings_makes_all_of_them_count(tree):
    reader = {"pack/a.py": "import pack.b\nprint(pack.b.__doc__)\n"}
    first = tree({**reader, "pack/b.py": '"""A."""\n'}).digest(("pack.a",))[0]
    assert tree({"pack/b.py": '"""B."""\n'}).digest(("pack.a",))[0] != first


def test_raw_packages_count_by_their_bytes(tree):
    modules = {"pack/a.py": "import pack.raw.b, pack.rawer", "pack/raw/b.py": "x = 1\n", "pack/rawer.py": "x = 1\n"}
    first = tree(modules).digest(("pack.a",), ("pack.raw",))[0]
    assert tree({"pack/rawer.py": "x = 1 #\n"}).digest(("pack.a",), ("pack.raw",))[0] == first
    assert tree({"pack/raw/b.py": "x = 1 #\n"}).digest(("pack.a",), ("pack.raw",))[0] != first


def test_data_beside_a_module_that_reads_files_counts(tree):
    modules = {"pack/a.py": "from pathlib import Path\nPath(__file__)\n", "pack/b.py": "", "pack/table.csv": "1\n"}
    first, paths = tree(modules).digest(("pack.a",))
    assert "pack/table.csv" in paths
    assert tree({"pack/table.csv": "2\n"}).digest(("pack.a",))[0] != first
    assert "pack/table.csv" not in tree({}).digest(("pack.b",))[1]


def test_a_new_module_is_found_where_an_import_named_it(tree):
    text = "try:\n    import pack.fast\nexcept ImportError:\n    pass\n"
    first = tree({"pack/a.py": text}).digest(("pack.a",))[0]
    assert tree({"pack/fast.py": ""}).digest(("pack.a",))[0] != first


def test_a_module_that_does_not_parse_counts_by_its_bytes():
    for text in (b"def (", b"x = \xff", b"x = 1\0"):
        facts = read_facts(text, "pack.a", False)
        assert facts["bare"] == facts["documented"] == facts["raw"]


def test_facts_are_read_once_for_equal_content(tree, monkeypatch):
    sources = tree({"pack/a.py": "import pack.b", "pack/b.py": ""})
    first = sources.digest(("pack.a",))
    sources.save()
    monkeypatch.setattr("cache.source.read_facts", None)
    assert tree({}).digest(("pack.a",)) == first
