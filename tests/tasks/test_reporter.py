"""What a build says: one line that is written over on a terminal, plain lines elsewhere, failures whole."""

import os
import pty
import re

import pytest


def on_a_terminal(checkout, *arguments, **environment):
    """What doit writes to a terminal."""
    ours, theirs = pty.openpty()
    checkout.environment = environment

    def attach():
        os.dup2(theirs, 1)
        os.dup2(theirs, 2)
        os.environ.pop("CI", None)
        os.environ |= environment

    process = checkout.fork(*arguments, before=attach)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    checkout.finish(process)
    return text.decode()


@pytest.fixture
def slow(mini):
    mini.edit("coppelius/emit.py", "    module, _", "    import time\n\n    time.sleep(0.06)\n    module, _")
    return mini


def test_progress_is_one_line_that_is_erased(slow):
    text = on_a_terminal(slow)
    assert "\r\x1b[K[" in text
    assert " of 32] " in text
    assert text.replace("\r\n", "\n").endswith("steps: 32 run\n")
    shown = text.split("\r\x1b[K")
    assert all("\n" not in part for part in shown[1:-1])


def test_ci_gets_plain_lines(slow):
    text = on_a_terminal(slow, CI="true")
    assert "\x1b" not in text
    assert "[" not in text


def test_no_color_on_a_terminal(slow):
    text = on_a_terminal(slow, NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:3|4|9|10)\d", text)
    assert "steps: 32 run" in text


def test_elsewhere_a_plain_line_now_and_then(slow):
    path = slow.root / "tasks/reporter.py"
    path.write_text(path.read_text().replace("PLAIN_EVERY = 10.0", "PLAIN_EVERY = 0.1"))
    lines = slow.doit().output.splitlines()
    assert any(line.startswith("steps: ") and line.endswith(" of 32") for line in lines)
    assert lines[-1] == "steps: 32 run"


def test_a_failure_is_whole_and_good_steps_are_silent(built):
    built.edit("coppelius/kernels/plain.py", "return", "raise ValueError('a\\n b')\n    return")
    output = built.doit().output
    assert "ValueError: a\n     b" in output
    assert "emit:third" not in output


def test_the_closing_line_says_what_is_not_zero():
    from tasks.reporter import closing_line

    assert closing_line({"run": 2, "restored": 3, "up to date": 0}, bad=1, saved=0.5) == (
        "steps: 2 run, 3 restored, 1 bad in the store, 0.50 s saved"
    )
    assert closing_line({"up to date": 32}) == "steps: 32 up to date"
