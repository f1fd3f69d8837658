"""Images by name, for commands that take one: their steps, and the shell's completion."""

from typing import Any

import click

from coppelius.cli.output import unknown


def steps_of_image(project: Any, identity: str) -> list[str]:
    """The names of an image's steps in the graph's order; refuses an unknown image with the nearest name."""
    steps = project.graph.steps.values()
    names = [step.name for step in steps if step.identity == identity]
    if not names:
        unknown("image", identity, dict.fromkeys(step.identity for step in steps if step.identity))
    return names


def complete_identity(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """What a shell may complete an image's name to."""
    from coppelius.catalog import IMAGES

    return [image.identity for image in IMAGES if image.identity.startswith(incomplete)]


def complete_step(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """What a shell may complete a step's name to; nothing where there is no checkout to ask."""
    from coppelius.cli.project import open_project
    from coppelius.isa.refusal import Refusal

    try:
        steps = open_project().graph.steps
    except (Refusal, click.UsageError):
        return []
    known = dict.fromkeys([*(step.group for step in steps.values()), *steps])
    return [name for name in known if name.startswith(incomplete)]
