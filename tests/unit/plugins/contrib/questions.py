"""Questions about one pod or a queue, with a plugin of `podium.plugins.contrib` in the profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from podium.insight.evaluate import Evaluator
from podium.objects.times import parse_time
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB

NOW = "2026-06-01T12:00:00Z"
Json = dict[str, Any]


def profile(plugins: Json, **args: Any) -> Json:
    """The configuration of one profile; the args are by plugin name."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"plugins": plugins, "pluginConfig": [{"name": name, "args": value} for name, value in args.items()]}
        ],
    }


def answer(config: Json, objects: Iterable[Json], pod: Json, custom: Iterable[Json] = ()) -> Json:
    """What one attempt at the pod finds, over all nodes."""
    question = {"objects": list(objects), "custom": list(custom), "pod": pod, "config": config}
    evaluator = Evaluator({**IN_TREE, **CONTRIB}, now_s=parse_time(NOW))
    return evaluator.answer_line(orjson.dumps(question), "question")


def node(name: str, *, cpu: str = "4", labels: Mapping[str, str] | None = None) -> Json:
    """A node as in the API."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(
    name: str,
    *,
    on: str = "",
    cpu: str = "1",
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    status: Json | None = None,
    **spec: Any,
) -> Json:
    """A pod as in the API, on the node `on`."""
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": dict(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, "containers": [container], **spec},
        "status": status or {},
    }
