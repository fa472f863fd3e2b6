"""The option `--as-default-scheduler`: without it podium uses none of kube-scheduler's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from podium.cli.options.configuration import BadConfiguration, Change
from podium.cli.options.leader_election import with_options
from podium.config import (
    AS_DEFAULT_SCHEDULER,
    DEFAULT_SCHEDULER_NAME,
    KUBE_SCHEDULERS_LEASE,
    LEASE_NAME,
    OWN_NAME,
    ConfigError,
    ErrorKind,
    FieldError,
    KubeSchedulerConfiguration,
    Loaded,
    with_own_names,
)


def as_default_scheduler_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option to a command that runs the daemon, or checks whether it can run."""
    option = click.option(
        AS_DEFAULT_SCHEDULER,
        "is_default_scheduler",
        is_flag=True,
        help="Take kube-scheduler's place: schedule pods that name no scheduler, and share its lease. Without "
        "--config, the profile and the lease then have kube-scheduler's names instead of podium's.",
    )
    return option(command)


def named_for_running(path: Path | None, election: dict[str, Any], *, is_default_scheduler: bool) -> Change:
    """Return a change that gives a loaded configuration its names, and applies the options `--leader-elect...`.

    The change raises BadConfiguration if a name is kube-scheduler's and `is_default_scheduler` does not allow it.
    """

    def change(file: Loaded) -> KubeSchedulerConfiguration:
        if is_default_scheduler:
            return with_options(file.config, election)
        config = with_options(with_own_names(file, is_file=path is not None), election)
        present = dict(file.present)
        if election.get("resource_name") is not None:
            # The flag gives the name, so the file's line would mislead.
            present.pop(LEASE_NAME, None)
        if errors := tuple(kube_schedulers_names(config, present)):
            raise BadConfiguration(ConfigError(errors, str(path or "defaults")).lines())
        return config

    return change


def kube_schedulers_names(
    config: KubeSchedulerConfiguration, present: Mapping[str, int | None]
) -> Iterator[FieldError]:
    """Yield an error for each field with a name of kube-scheduler's, which podium uses only with the flag.

    Args:
        present: the fields that the file sets, with their lines.
    """
    for index, profile in enumerate(config.profiles):
        if profile.scheduler_name == DEFAULT_SCHEDULER_NAME:
            path = f"profiles[{index}].schedulerName"
            verb = "is" if path in present else "is not set, which means"
            yield _refusal(
                path,
                f"it {verb} {DEFAULT_SCHEDULER_NAME}: podium would bind every pod that names no scheduler",
                present,
            )
    election = config.leader_election
    if election.leader_elect and election.resource_name == KUBE_SCHEDULERS_LEASE:
        yield _refusal(LEASE_NAME, "it is kube-scheduler's own lease", present)


def _refusal(path: str, reason: str, present: Mapping[str, int | None]) -> FieldError:
    detail = f"{reason}; choose another name, such as {OWN_NAME}, or pass {AS_DEFAULT_SCHEDULER}"
    return FieldError(path, ErrorKind.FORBIDDEN, None, detail, present.get(path))
