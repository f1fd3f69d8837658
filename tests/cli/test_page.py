"""The page in a browser with the network off: search, an edit's cone, a click; and its text without one.

COPPELIUS_PICTURES=folder keeps the two pictures that a person should look at.
"""

import os
import re
from pathlib import Path

import pytest
from browser import Browser, find_browser

WIDTHS = {"wide": 1440, "narrow": 620}


@pytest.fixture
def page(built, tmp_path):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    file = tmp_path / "page.html"
    outcome = built.command("graph", "--format", "html", "-o", str(file))
    assert (outcome.status, outcome.output) == (0, "")
    return file


@pytest.fixture
def browser(tmp_path):
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium here (apt-get install chromium, or COPPELIUS_BROWSER=program)")
    found = Browser(program, tmp_path / "profile")
    yield found
    found.close()


def test_the_page_reaches_for_nothing(page):
    text = page.read_text()
    assert "@@" not in text
    assert set(re.findall(r"https?://[^\s'\"<>]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"'](?!data:)", text)


def look(browser, step):
    return browser.run(f"""document.querySelector("g[data-step='{step}']").dataset.look""")


def is_dim(browser, step):
    return browser.run(f"""document.querySelector("g[data-step='{step}']").classList.contains("dim")""")


@pytest.mark.parametrize("width", WIDTHS)
def test_search_cone_and_click(page, browser, width):
    browser.open(page, WIDTHS[width], 900)
    browser.type_into("#search", "second")
    assert browser.run("document.querySelector('#said').textContent") == "6 of 32 steps"
    assert (is_dim(browser, "check:second"), is_dim(browser, "check:first")) == (False, True)
    browser.type_into("#search", "stale")
    assert (is_dim(browser, "emit:third"), is_dim(browser, "emit:first")) == (False, True)
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    assert not is_dim(browser, "emit:first")

    browser.type_into("#file", "coppelius/kernels/common.py")
    assert browser.run("document.querySelector('#said').textContent") == "2 steps run, 12 more if their inputs change"
    assert [look(browser, step) for step in ("emit:fourth", "check:fifth", "emit:first")] == [
        "runs",
        "may run",
        "untouched",
    ]

    browser.click("g[data-step='emit:third']")
    said = browser.run("document.querySelector('#about').innerText")
    assert "its code changed (coppelius/kernels/halves.py)" in said
    assert "build/sm86/third/emit.sass" in said
    assert re.search(r"ran \d+\.\d ms\s+never built here", said)
    assert re.search(r"\b[0-9a-f]{64}\b", said)
    assert "an edit here reaches 9 steps" in said
    assert (look(browser, "emit:third"), browser.run("document.querySelector('#file').value")) == ("stale", "")
    assert (is_dim(browser, "arena"), is_dim(browser, "emit:fourth")) == (False, True)
    browser.click("#about button")  # the first that reads it
    assert browser.run("document.querySelector('#about h2').textContent") == "halve:third"
    assert "build/sm86/third/emit.sass" in browser.run("document.querySelector('#about').innerText")

    assert browser.requests == [page.as_uri()]
    assert browser.complaints == []
    # nothing is wider than the window but the grid, which scrolls
    assert browser.run("document.documentElement.scrollWidth") <= WIDTHS[width]
    if os.environ.get("COPPELIUS_PICTURES"):
        browser.type_into("#file", "coppelius/kernels/common.py")
        browser.picture(Path(os.environ["COPPELIUS_PICTURES"]) / f"page-{width}.png")
