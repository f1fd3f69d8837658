"""Why an image's steps will run, and why they last did.

The answer comes from the code that decides in a build.  A step that is stale says its own causes; one that
waits says which step before it is the first cause, up the chain.
"""

import time
from typing import Any

import click

from coppelius.cli.identities import complete_identity, steps_of_image
from coppelius.cli.output import print_json, print_table
from coppelius.cli.project import open_project


@click.command("explain")
@click.argument("identity", shell_complete=complete_identity)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain_command(identity: str, as_json: bool) -> None:
    """Why the steps of IDENTITY will run, or last ran."""
    project = open_project()
    from tasks.questions import first_cause, standings

    names = steps_of_image(project, identity)
    found = standings(project)
    steps = [_step(found, name, first_cause(found, name)) for name in names]
    if as_json:
        print_json(identity=identity, steps=steps)
        return
    rows = [(step["name"], step["state"], _why(step), _last(step["last"])) for step in steps]
    print_table(("step", "state", "why", "last"), rows, fold=("why", "last"))
    first = next((step for step in steps if step["chain"]), None)
    if first is None:
        click.echo(f"{identity}: nothing to do")
        return
    chain = first["chain"]
    click.echo(f"first cause: {chain[-1]}: {'; '.join(found[chain[-1]].causes)}")


def _step(found: Any, name: str, chain: list[str]) -> dict[str, Any]:
    standing = found[name]
    return {
        "name": name,
        "state": standing.state,
        "causes": standing.causes,
        "chain": chain if standing.state in ("stale", "waiting") else [],
        "last": standing.last,
    }


def _why(step: dict[str, Any]) -> str:
    if len(step["chain"]) > 1:
        return f"if what it reads changes: {' < '.join(step['chain'][1:])}"
    return "; ".join(step["causes"])


def _last(last: dict[str, Any] | None) -> str:
    if last is None:
        return "never"
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(last["at"]))
    how = (
        f"restored, {last['seconds'] * 1e3:.1f} ms saved" if last["restored"] else f"ran {last['seconds'] * 1e3:.1f} ms"
    )
    return f"{when} {how}: {'; '.join(last['causes'])}"
