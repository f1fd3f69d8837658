"""A clean build and an incremental one are equal, whatever the sequence of edits, kills and damage."""

import os
import random
import signal

import pytest
from miniature_checkout import KillAt

ORDINARY = 3
MANY = 60
STEPS = 7

KERNELS = ("plain", "halves", "shares", "common")


def kernel_edit(mini, chance):
    """Another word or length in a kernel, often of the same size."""
    name = chance.choice(KERNELS)
    path = mini.root / f"coppelius/kernels/{name}.py"
    if name == "common":
        body = f'def repeated(word, count):\n    return [word + "{chance.choice("abc")}"] * count\n'
    else:
        word = chance.choice(("move half", "copy half", "plain", "hazard", "shared"))
        body = f"def {name}(count):\n    return [{word!r}] * (count + {chance.choice((0, 1, 14))})\n"
    replace(path, "#\n" * chance.randrange(2) + body, chance)


def replace(path, text, chance):
    """Writes, sometimes under the file's old time."""
    status = path.stat()
    path.write_text(text)
    if chance.random() < 0.3:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def syntax_error(mini, chance):
    (mini.root / f"coppelius/kernels/{chance.choice(KERNELS)}.py").write_text("def (\n")


def undo(mini, _chance):
    for path, text in mini.originals.items():
        if path.read_text() != text:
            path.write_text(text)


def encoder_edit(mini, chance):
    path = mini.root / "coppelius/program/encoding.py"
    replace(path, mini.originals[path].replace('b"."', f'b"{chance.choice(".-")}"'), chance)


def row_edit(mini, chance):
    path = mini.root / "coppelius/catalog.py"
    rows = [line for line in mini.originals[path].splitlines() if line.startswith("    Image(")]
    chosen = chance.sample(rows, chance.randint(2, len(rows)))
    text = mini.originals[path]
    for row in rows:
        text = text.replace(row + "\n", "")
    path.write_text(text.replace("IMAGES = (\n", "IMAGES = (\n" + "".join(row + "\n" for row in chosen)))


def plan_edit(mini, chance):
    mini.plan(half=chance.choice(('"f16"', '"bf16"')), alignment=chance.choice(("256", "512")))


def damage(mini, chance):
    mini.damaged = True
    files = sorted(path for path in mini.root.glob("build/sm86/**/*") if path.is_file())
    if files:
        path = chance.choice(files)
        content = path.read_bytes()
        chance.choice((path.unlink, lambda: path.write_bytes(content[1:]), lambda: path.write_bytes(content + b" ")))()


EDITS = (kernel_edit, kernel_edit, kernel_edit, syntax_error, undo, undo, encoder_edit, row_edit, plan_edit, damage)


def build(mini, chance):
    """A build, perhaps killed, perhaps of two workers."""
    arguments = ("run", "-n", "2") if chance.random() < 0.15 else ("run",)
    before = None
    if chance.random() < 0.4:
        before = KillAt(chance.randint(1, 40), chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
    if mini.doit(*arguments, before=before).status == 0:
        mini.damaged = False
    assert mini.damaged or mini.release_is_whole()


@pytest.mark.parametrize(
    "seed", [*range(ORDINARY), *(pytest.param(n, marks=pytest.mark.slow) for n in range(ORDINARY, MANY))]
)
def test_an_incremental_build_is_a_clean_build(mini, seed, tmp_path):
    chance = random.Random(seed)
    mini.damaged = False
    mini.originals = {path: path.read_text() for path in mini.source_files()}
    for _ in range(STEPS):
        for _ in range(chance.randint(1, 2)):
            chance.choice(EDITS)(mini, chance)
        build(mini, chance)
    # end on sources that build, and once more on what an edit left of them
    undo(mini, chance)
    for _ in range(2):
        outcome = mini.doit()
        clean = mini.clean_outputs(tmp_path / "clean")
        if outcome.status == 0:
            assert mini.outputs() == clean, f"seed {seed}"
        else:  # refused both times; a step's outputs are equal wherever a clean build gives them
            kept = {path: content for path, content in mini.outputs().items() if path in clean}
            assert kept == clean, f"seed {seed}"
        encoder_edit(mini, chance)
        kernel_edit(mini, chance)
