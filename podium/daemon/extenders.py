"""Serves extenders: keeps complete objects to send to them, and hides secrets from the endpoints.

An extender receives the complete pod; one without a node cache also receives the complete nodes, and the victims of a
preemption. podium itself keeps only the fields it reads: the rest is kept only as far as these extenders need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from podium.config import Extender, KubeSchedulerConfiguration
from podium.framework.contract.questions import name_of
from podium.objects.objects_with_json import Keep, node_with_json, pending_pod_with_json, pod_with_json
from podium.objects.resource_types import NODES, PODS

_NOT_SHOWN: Final = "(not shown)"


def json_to_keep(extenders: Sequence[Extender]) -> Mapping[str, Keep[Any]]:
    """Return the fields of pods and nodes to keep for extenders, by resource path; empty if none needs objects."""
    without_cache = [extender for extender in extenders if not extender.node_cache_capable]
    keep: dict[str, Keep[Any]] = {}
    if any(extender.filter_verb or extender.prioritize_verb or extender.preempt_verb for extender in extenders):
        keep[PODS.path] = pending_pod_with_json
    if any(extender.filter_verb or extender.prioritize_verb for extender in without_cache):
        keep[NODES.path] = node_with_json
    if any(extender.preempt_verb for extender in without_cache):
        keep[PODS.path] = pod_with_json
    return keep


def without_secrets(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Return the configuration for display: without keys, and without passwords in URLs."""
    return replace(config, extenders=tuple(_without_secrets(extender) for extender in config.extenders))


def _without_secrets(extender: Extender) -> Extender:
    tls = extender.tls_config
    if tls is not None and tls.key_data:
        tls = replace(tls, key_data=_NOT_SHOWN)
    return replace(extender, url_prefix=name_of(extender), tls_config=tls)
