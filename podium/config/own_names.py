"""The scheduler name and the lease that podium runs with: its own, unless it is told otherwise.

Owns what running a configuration adds to loading it. A loaded file keeps kube-scheduler's defaults, which
``podium config effective`` shows.

Differs: kube-scheduler's defaults are for the cluster's only scheduler. podium runs beside it, and must not bind pods
that name no scheduler, or compete for kube-scheduler's lease, because a field was left out.
"""

from dataclasses import replace
from typing import Final

from podium.config.loader import Loaded
from podium.config.types import KubeSchedulerConfiguration, LeaderElection

OWN_NAME: Final = "podium"
"""The scheduler name without a file, and the lease's name where the file has none."""
AS_DEFAULT_SCHEDULER: Final = "--as-default-scheduler"
"""The flag that allows kube-scheduler's names."""
KUBE_SCHEDULERS_LEASE: Final = LeaderElection().resource_name
LEASE_NAME: Final = "leaderElection.resourceName"


def with_own_names(loaded: Loaded, *, is_file: bool) -> KubeSchedulerConfiguration:
    """The configuration with podium's own names in the place of kube-scheduler's defaults.

    The only profile of a file may lack a scheduler name, which means ``default-scheduler`` there: it is not renamed,
    since its author may have meant just that.
    """
    config = loaded.config
    if LEASE_NAME not in loaded.present:
        config = replace(config, leader_election=replace(config.leader_election, resource_name=OWN_NAME))
    if not is_file:
        config = replace(
            config, profiles=tuple(replace(profile, scheduler_name=OWN_NAME) for profile in config.profiles)
        )
    return config
