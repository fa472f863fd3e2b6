"""Options that have the same meaning in all commands about Karmada's member clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

models_semantics_option: Final = click.option(
    "--models-semantics",
    type=click.Choice(["current", "v1.17", "v1.11"]),
    default="current",
    show_default=True,
    help="Interpret resource models as Karmada did up to this release.",
)

as_karmada_option: Final = click.option(
    "--as-karmada",
    type=click.Choice(["1.18"]),
    help="Reproduce the fault of that release's grades: nodes after one without a free pod slot are left out.",
)


def boolean_gates(text: str, fields: Mapping[str, str]) -> dict[str, bool]:
    """Parse `--feature-gates`.

    Args:
        fields: the names that the gates have in the result.

    Raises:
        click.UsageError: a gate is unknown, or neither true nor false.
    """
    gates = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in fields:
            raise click.UsageError(f"--feature-gates: unknown gate {name!r}; there are {', '.join(fields)}")
        if value.lower() not in ("true", "false"):
            raise click.UsageError(f"--feature-gates: {name}: expected true or false, got {value!r}")
        gates[fields[name]] = value.lower() == "true"
    return gates
