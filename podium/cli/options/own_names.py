"""The option `--as-default-scheduler`: without it podium takes no name of kube-scheduler's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from podium.cli.options.configuration import BadConfiguration, Change
from podium.cli.options.leader_election import with_options
from podium.config import (
    AS_DEFAULT_SCHEDULER,
    LEASE_NAME,
    ConfigError,
    KubeSchedulerConfiguration,
    Loaded,
    kube_schedulers_names,
    with_own_names,
)


def as_default_scheduler_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option to a command that runs the daemon, or checks whether it can run."""
    option = click.option(
        AS_DEFAULT_SCHEDULER,
        "is_default_scheduler",
        is_flag=True,
        help="Take kube-scheduler's place: schedule pods that name no scheduler, and share its lease. Without a file, "
        "names are kube-scheduler's then, and otherwise podium.",
    )
    return option(command)


def named_for_running(path: Path | None, election: dict[str, Any], *, is_default_scheduler: bool) -> Change:
    """The change that gives a loaded configuration its names, and applies the options `--leader-elect...`.

    It raises BadConfiguration if a name is kube-scheduler's and `is_default_scheduler` does not allow it.
    """

    def change(loaded: Loaded) -> KubeSchedulerConfiguration:
        if is_default_scheduler:
            return with_options(loaded.config, election)
        config = with_options(with_own_names(loaded, is_file=path is not None), election)
        present = dict(loaded.present)
        if election.get("resource_name") is not None:
            # The flag gives the name, so the file's line would mislead.
            present.pop(LEASE_NAME, None)
        if errors := tuple(kube_schedulers_names(config, present)):
            raise BadConfiguration(ConfigError(errors, str(path or "defaults")).lines())
        return config

    return change
