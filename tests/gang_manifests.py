"""Gangs of both kinds as users post them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.manifests import Json, pod

LABEL, MIN_MEMBER = "scheduling.x-k8s.io/pod-group", "scheduling.x-k8s.io/min-member"
UPSTREAM, COSCHEDULING = "scheduling.k8s.io", "scheduling.x-k8s.io"
EXAMPLE = Path(__file__).parents[1] / "examples/config/coscheduling.yaml"


def with_coscheduling(**args: Any) -> Json:
    """The example's configuration, for the profile `podium`."""
    config: Json = yaml.safe_load(EXAMPLE.read_text())
    config["profiles"][0]["pluginConfig"] = [{"name": "Coscheduling", "args": args}]
    return config


def group(kind: str, size: int, name: str = "train", **spec: Any) -> Json:
    """The PodGroup of a gang of that size."""
    metadata = {"name": name, "namespace": "default"}
    if kind == COSCHEDULING:
        version, group_spec = f"{kind}/v1alpha1", {"minMember": size, **spec}
    else:
        version, group_spec = f"{kind}/v1beta1", {"schedulingPolicy": {"gang": {"minCount": size}}, **spec}
    return {"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": group_spec}


def member(kind: str, name: str, gang: str = "train", cpu: str = "3", **fields: Any) -> Json:
    """A pod of the gang."""
    if kind == COSCHEDULING:
        return pod(name, cpu, labels={LABEL: gang}, **fields)
    return pod(name, cpu, schedulingGroup={"podGroupName": gang}, **fields)


def members(kind: str, count: int, gang: str = "train", **fields: Any) -> list[Json]:
    """Pods of the gang: train-0, train-1…"""
    return [member(kind, f"{gang}-{index}", gang, **fields) for index in range(count)]
