"""Decides which changes of a configuration need a restart."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.config import KubeSchedulerConfiguration, Profile
from podium.lib.error_text import UserFacingError

_FIELDS: Mapping[str, Callable[[KubeSchedulerConfiguration], object]] = {
    "leaderElection": lambda config: config.leader_election,
    "clientConnection": lambda config: config.client_connection,
    "podInitialBackoffSeconds": lambda config: config.pod_initial_backoff_s,
    "podMaxBackoffSeconds": lambda config: config.pod_max_backoff_s,
    "extenders": lambda config: config.extenders,
    "delayCacheUntilActive": lambda config: config.delay_cache_until_active,
    "enableProfiling": lambda config: config.enable_profiling,
    "profiles[*].schedulerName": lambda config: [profile.scheduler_name for profile in config.profiles],
}


class RestartNeededError(UserFacingError):
    """A configuration differs in what a running process cannot change. The text names the fields."""


def demand_no_restart(former: KubeSchedulerConfiguration, current: KubeSchedulerConfiguration) -> None:
    """Check that a running process can go on with the other configuration.

    Raises: RestartNeededError.
    """
    fields = [name for name, value in _FIELDS.items() if value(former) != value(current)]
    fields += [
        f"profiles[{index}].plugins.queueSort"
        for index, profile in enumerate(current.profiles)
        if (old := former.profile(profile.scheduler_name)) is not None and _queue_sort(old) != _queue_sort(profile)
    ]
    if fields:
        raise RestartNeededError(f"{', '.join(fields)}: cannot be changed while podium runs, restart it")


def _queue_sort(profile: Profile) -> object:
    return profile.plugins.queue_sort
