"""The options `--leader-elect...`, which override the configuration file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from podium.cli.options.durations import duration
from podium.config import KubeSchedulerConfiguration

_PREFIX = "--leader-elect"


_FIELDS = {
    "lease_duration_s": ("lease-duration", "How long other replicas wait for a leader that does not renew. [15s]"),
    "renew_deadline_s": ("renew-deadline", "How long a leader tries to renew before it gives up. [10s]"),
    "retry_period_s": ("retry-period", "The time between two attempts to acquire or renew. [2s]"),
    "resource_lock": ("resource-lock", "The kind of the lock object; only leases is supported. [leases]"),
    "resource_name": ("resource-name", "The Lease's name. [podium]"),
    "resource_namespace": ("resource-namespace", "The Lease's namespace. [kube-system]"),
}


def leader_election_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--leader-elect...` to a command that runs the daemon."""
    for field, (flag, text) in reversed(_FIELDS.items()):
        callback = duration if field.endswith("_s") else None
        command = click.option(f"{_PREFIX}-{flag}", field, callback=callback, help=text)(command)
    return click.option(
        _PREFIX,
        "leader_elect",
        type=click.BOOL,
        is_flag=False,
        flag_value=True,
        help="Elect a leader among the replicas; the others stand by. [true]",
    )(command)


def with_options(config: KubeSchedulerConfiguration, option_values: dict[str, Any]) -> KubeSchedulerConfiguration:
    """Apply the options of the command line to the configuration. None stands for an option that was not given."""
    overrides = {field: value for field, value in option_values.items() if value is not None}
    return replace(config, leader_election=replace(config.leader_election, **overrides))
