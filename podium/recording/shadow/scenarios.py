"""Converts a disagreement to a case that `podium evaluate` reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podium.config import KubeSchedulerConfiguration
from podium.config.effective import effective
from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.engine.manifests import as_manifest
from podium.framework.contract.status import ScheduleError
from podium.objects.core import Pod
from podium.objects.resource_types import ALL, PODS
from podium.recording.shadow.report import Disagreement


def scenario_of(
    disagreement: Disagreement, pod: Pod, name: str, state: Cluster, config: KubeSchedulerConfiguration
) -> dict[str, Any]:
    """Return the cluster, the pod and the configuration, with podium's answer as `expect`.

    Args:
        name: the name of the state.
    """
    store = state.store
    objects = [
        as_manifest(resource, item)
        for resource in ALL
        for item in store.objects(resource).values()
        if not (resource == PODS and item.key == pod.key)
    ]
    try:
        expect = state.evaluate(pod).as_dict()
    except (ScheduleError, ClusterError) as error:
        expect = {"error": str(error)}
    return {
        "id": f"{pod.key} {name}",
        "shadow": disagreement.to_json(),
        "objects": objects,
        "pod": as_manifest(PODS, pod),
        # The shadow called no extenders, and `podium evaluate` refuses a configuration with extenders.
        "config": effective(replace(config, extenders=())),
        "expect": expect,
    }
