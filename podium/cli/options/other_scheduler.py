"""The options of commands that observe another scheduler: the cluster, the pods, the rules, and the duration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from podium.cli.options.configuration import Usable, plugin_option, readable_as_any, usable
from podium.cli.options.durations import duration
from podium.cli.options.paths import FILE
from podium.cli.options.releases import as_the_server, release_to_run
from podium.cli.options.several import with_options
from podium.config import KubeSchedulerConfiguration, Release
from podium.config.effective import apply_extenders

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
    as_the_server,
    click.option("--for", "for_s", callback=duration, metavar="DURATION", help="Stop after this time, such as 10m."),
)


def other_scheduler_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options: `kubeconfig`, `context`, `schedulers`, `config`, `plugins`, `for_s`, and `--decide-as`."""
    return with_options(function, _OPTIONS)


def usable_beside(config: Path | None, plugins: tuple[str, ...], kubeconfig: str | None, context: str | None) -> Usable:
    """Read the other scheduler's configuration by the rules of the API server's minor, or of `--decide-as`.

    Raises: BadConfiguration.
    """

    def read(release: Release) -> Usable:
        return usable(config, plugins, change=lambda file: apply_extenders(file.config), release=release)

    good = readable_as_any(read)
    release, _ = release_to_run(kubeconfig, None, context=context)
    return good.as_of(release)


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
