"""Serves extenders: keeps complete objects to send to them; hides secrets of a configuration from the endpoints.

An extender receives the complete pod; one without a node cache also receives the complete nodes, and the victims of a
preemption. podium itself keeps only the fields it reads: the rest is kept only as far as these extenders need it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from podium.config import Extender, KubeSchedulerConfiguration, PluginConfig, RawArgs
from podium.framework.contract.questions import name_of
from podium.objects.objects_with_json import Keep, node_with_json, pending_pod_with_json, pod_with_json
from podium.objects.resource_types import NODES, PODS

_NOT_SHOWN: Final = "(not shown)"
_PASSWORD: Final = re.compile(r"(https?://)[^/@]*@", re.IGNORECASE)


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
    """Return the configuration for display: without keys and plugins' tokens, and without passwords in URLs."""
    return replace(
        config,
        extenders=tuple(_without_secrets(extender) for extender in config.extenders),
        profiles=tuple(
            replace(profile, plugin_config=tuple(map(_without_tokens, profile.plugin_config)))
            for profile in config.profiles
        ),
    )


def _without_tokens(entry: PluginConfig) -> PluginConfig:
    return replace(entry, args=RawArgs(_mask(entry.args.value))) if isinstance(entry.args, RawArgs) else entry


def _mask(value: Any, member: str = "") -> Any:
    """Return a value of args as it may be shown."""
    if isinstance(value, Mapping):
        return {key: _mask(element, str(key)) for key, element in value.items()}
    if isinstance(value, list):
        return [_mask(element) for element in value]
    if not isinstance(value, str) or not value:
        return value
    return _NOT_SHOWN if member == "token" else _PASSWORD.sub(r"\1", value)


def _without_secrets(extender: Extender) -> Extender:
    tls = extender.tls_config
    if tls is not None and tls.key_data:
        tls = replace(tls, key_data=_NOT_SHOWN)
    return replace(extender, url_prefix=name_of(extender), tls_config=tls)
