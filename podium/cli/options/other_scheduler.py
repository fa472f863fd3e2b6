"""The options of commands that observe another scheduler: the cluster, the pods, and the duration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from podium.cli.options.configuration import plugin_option
from podium.cli.options.durations import duration
from podium.cli.options.paths import FILE
from podium.config import KubeSchedulerConfiguration

_OPTIONS = (
    click.option(
        "--kubeconfig",
        type=FILE,
        help="The kubeconfig of the cluster. By default the pod's own credentials, or kubectl's.",
    ),
    click.option("--context", help="The context of the kubeconfig."),
    click.option(
        "--scheduler",
        "schedulers",
        multiple=True,
        metavar="NAME",
        help="The scheduler name of the pods to compare. Repeatable. By default those of the configuration's profiles.",
    ),
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="The other scheduler's KubeSchedulerConfiguration. By default kube-scheduler's defaults.",
    ),
    plugin_option,
    click.option("--for", "for_s", callback=duration, metavar="DURATION", help="Stop after that long, such as 10m."),
)


def other_scheduler_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options: `kubeconfig`, `context`, `schedulers`, `config`, `plugins` and `for_s`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def for_schedulers(
    config: KubeSchedulerConfiguration, names: tuple[str, ...], *, is_default: bool
) -> KubeSchedulerConfiguration:
    """Select the profiles of these scheduler names; the default profile serves any name."""
    if not names:
        return config
    if is_default:
        (profile,) = config.profiles
        return replace(config, profiles=tuple(replace(profile, scheduler_name=name) for name in dict.fromkeys(names)))
    profiles = {profile.scheduler_name: profile for profile in config.profiles}
    for name in names:
        if name not in profiles:
            raise click.UsageError(
                f"--scheduler {name}: the configuration has no such profile, only {', '.join(profiles)}"
            )
    return replace(config, profiles=tuple(profiles[name] for name in dict.fromkeys(names)))
