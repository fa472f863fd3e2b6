"""Which workload a pod belongs to, by its owners where they are known, or by its name where podium made it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

Json = dict[str, Any]

WORKLOAD_KINDS = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"}
)


def key_of(item: Json) -> str:
    """`namespace/name`."""
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


def controller_of(item: Json) -> Json | None:
    """The owner that controls the object."""
    owners: Iterable[Json] = item["metadata"].get("ownerReferences", ())
    return next((owner for owner in owners if owner.get("controller")), None)


class Naming:
    """Names workloads as `namespace/Kind/name`: a bare pod is its own, pods of one generateName are `name-*`.

    Args:
        objects: everything that is known: the cluster, and what is applied to it.
    """

    def __init__(self, objects: Iterable[Json]) -> None:
        self._controllers: dict[tuple[str, str, str], Json] = {}
        self._owners: dict[str, str] = {}
        self._prefixes: list[tuple[str, str, str]] = []
        items = list(objects)
        for item in items:
            kind, controller = item["kind"], controller_of(item)
            namespace = item["metadata"].get("namespace", "default")
            if kind in WORKLOAD_KINDS:
                name = item["metadata"]["name"]
                if controller is not None:
                    self._controllers[namespace, kind, name] = controller
                else:
                    self._prefixes.append((namespace, f"{name}-", f"{namespace}/{kind}/{name}"))
            elif kind == "Pod" and "name" not in item["metadata"]:
                prefix = item["metadata"]["generateName"]
                self._prefixes.append((namespace, prefix, f"{namespace}/Pod/{prefix}*"))
        self._prefixes.sort(key=lambda entry: -len(entry[1]))
        for item in items:
            if item["kind"] == "Pod" and "name" in item["metadata"]:
                self._owners[key_of(item)] = self.workload_of(item)

    def workload_of(self, pod: Json) -> str:
        """The workload of a pod that has its owner references."""
        namespace, name = key_of(pod).split("/")
        controller = controller_of(pod)
        if controller is None:
            prefix = pod["metadata"].get("generateName")
            return f"{namespace}/Pod/{prefix}*" if prefix else f"{namespace}/Pod/{name}"
        return self.top_of(namespace, controller["kind"], controller["name"])

    def top_of(self, namespace: str, kind: str, name: str) -> str:
        """The workload that controls this one, or itself: a Deployment for its ReplicaSets, which may be made up."""
        while (above := self._controllers.get((namespace, kind, name))) is not None:
            kind, name = above["kind"], above["name"]
        workload = f"{namespace}/{kind}/{name}"
        if kind == "ReplicaSet" and all(workload != root for _, _, root in self._prefixes):
            return self.workload_named(f"{namespace}/{name}")
        return workload

    def workload_named(self, key: str) -> str:
        """The workload of the pod with this key, by its name if the pod was not among the objects."""
        if key in self._owners:
            return self._owners[key]
        namespace, _, name = key.partition("/")
        return next(
            (workload for where, prefix, workload in self._prefixes if where == namespace and name.startswith(prefix)),
            f"{namespace}/Pod/{name}",
        )

    def plain_message(self, message: str) -> str:
        """The message without the generated parts of names."""
        return re.sub(r'"([^"]*)"', lambda match: f'"{self._plain_name(match[1])}"', message).strip()

    def _plain_name(self, name: str) -> str:
        """`prefix*` if the name, with or without a namespace, is one that a workload's pod or claim may have."""
        namespace, _, pod_name = name.rpartition("/")
        return next((f"{prefix}*" for prefix in self._prefixes_for(namespace) if pod_name.startswith(prefix)), name)

    def _prefixes_for(self, namespace: str) -> Iterator[str]:
        yield from (prefix for where, prefix, _ in self._prefixes if namespace in ("", where))
