"""Gives podium a scheduler name and a lease of its own, unless the configuration names others.

A loaded file keeps kube-scheduler's defaults, which ``podium config effective`` shows; only running it applies these
names.

Differs: kube-scheduler's defaults are for the cluster's only scheduler. podium runs beside it: a missing field must not
make it bind pods that name no scheduler, or compete for kube-scheduler's lease.
"""

from dataclasses import replace
from typing import Final

from podium.config.loader import Loaded
from podium.config.types import KubeSchedulerConfiguration, LeaderElection

OWN_NAME: Final = "podium"
"""The scheduler name without a file, and the lease's name unless the file has one."""
AS_DEFAULT_SCHEDULER: Final = "--as-default-scheduler"
"""The flag that allows kube-scheduler's names."""
KUBE_SCHEDULERS_LEASE: Final = LeaderElection().resource_name
LEASE_NAME: Final = "leaderElection.resourceName"


def with_own_names(file: Loaded, *, is_file: bool) -> KubeSchedulerConfiguration:
    """Replace kube-scheduler's default names in the configuration by podium's own.

    The only profile of a file may lack a scheduler name, which means ``default-scheduler`` there: it is not renamed,
    since its author may have meant just that.
    """
    config = file.config
    if LEASE_NAME not in file.present:
        config = replace(config, leader_election=replace(config.leader_election, resource_name=OWN_NAME))
    if not is_file:
        config = replace(
            config, profiles=tuple(replace(profile, scheduler_name=OWN_NAME) for profile in config.profiles)
        )
    return config
