"""Serves the plugin CapacityScheduling: writes the status of ElasticQuotas, and says which of them look wrong.

Owns what is written into an ElasticQuota. Never decides where pods go; the plugin does not read the status.

Source: sigs.k8s.io/scheduler-plugins pkg/controllers/elasticquota_controller.go (2026-08). The amounts are those of
that controller, so that both may run: pods in the phase Running, without their overhead.
Differs: of several quotas of a namespace the one that counts gets the status; no Event is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

import anyio

from podium.client.informer_set import InformerSet
from podium.framework.contract.handle import ApiClient
from podium.lib.log import get_logger
from podium.objects.amounts import amount_texts
from podium.objects.api_errors import ApiError, NotFound
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.meta import ResourceList
from podium.objects.requests import whole_amounts
from podium.objects.resource_types import PODS
from podium.objects.wire import BrokenObject
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS, ElasticQuota
from podium.plugins.contrib.capacity_scheduling.quotas import Quotas

log = get_logger("scheduler")

_LOOK_EVERY_S: Final = 1.0


def usage_of(quota: ElasticQuota, pods: Iterable[Pod]) -> Mapping[str, str] | None:
    """Return the amounts that the quota's pods use, for its status; None if the quota cannot be read."""
    spec = quota.spec
    try:
        limits = (whole_amounts(spec.min or {}, "spec.min"), whole_amounts(spec.max or {}, "spec.max"))
    except FieldError:
        return None
    usage = {name: 0 for amounts in limits for name in amounts}
    for pod in pods:
        if pod.status.phase == "Running":
            for name, amount in _requests(pod).items():
                usage[name] = usage.get(name, 0) + amount
    return amount_texts(usage)


def _requests(pod: Pod) -> Mapping[str, int]:
    """Return what the pod's containers request together, or an init container by itself if that is more."""
    total: dict[str, int] = {}
    try:
        for container in pod.spec.containers:
            for name, amount in whole_amounts(container.resources.requests, "spec.containers").items():
                total[name] = total.get(name, 0) + amount
        for container in pod.spec.init_containers:
            for name, amount in whole_amounts(container.resources.requests, "spec.initContainers").items():
                total[name] = max(total.get(name, 0), amount)
    except FieldError:
        return {}
    return total


class QuotaKeeper:
    """Keeps the status of ElasticQuotas up to date. A handler of the informers of pods and of quotas."""

    def __init__(self, quotas: Quotas, client: ApiClient, informers: InformerSet) -> None:
        self._quotas = quotas
        self._client = client
        self._pods = informers.informer(PODS)
        self._changed: dict[str, None] = {}
        """The namespaces to look at."""
        self._unreported: dict[str, None] = {}
        """The quotas of which it is not yet said whether they are suspicious: those beside them may come later."""

    def on_add(self, new: Pod | ElasticQuota) -> None:
        """A pod or a quota was added."""
        self._changed[new.metadata.namespace] = None
        if isinstance(new, ElasticQuota):
            self._unreported[new.key] = None

    def on_update(self, old: Pod | ElasticQuota, new: Pod | ElasticQuota) -> None:
        """A pod or a quota has changed."""
        self._changed[new.metadata.namespace] = None
        if isinstance(new, ElasticQuota) and isinstance(old, ElasticQuota) and new.spec != old.spec:
            self._unreported[new.key] = None

    def on_delete(self, old: Pod | ElasticQuota) -> None:
        """A pod or a quota was deleted."""
        self._changed[old.metadata.namespace] = None

    def on_broken(self, broken_object: BrokenObject) -> None:
        """An object cannot be decoded; another handler reports it."""

    def _report(self, quota: ElasticQuota) -> None:
        """Log what is suspicious about a quota."""
        for oddity in self._quotas.oddities_of(quota):
            log.warning("Suspicious quota", quota=quota.key, detail=oddity)

    async def run(self) -> None:
        """Look at what has changed, every second, until cancelled. The informers have synced."""
        while True:
            await self.write()
            await anyio.sleep(_LOOK_EVERY_S)

    async def write(self) -> None:
        """Write the status of the quotas that have changed. One that cannot be written is tried again later."""
        reports, self._unreported = self._unreported, {}
        for key in reports:
            if (changed_quota := self._quotas.objects.get(key)) is not None:
                self._report(changed_quota)
        changes, self._changed = self._changed, {}
        for namespace in changes:
            self._quotas.read()
            quota = self._quotas.covering(namespace)
            if quota is None:
                continue
            pods = chain.from_iterable(map(self._pods.in_namespace, self._quotas.covered_namespaces(quota)))
            usage = usage_of(quota, pods)
            if usage is None or _is_written(quota.status.usage, usage):
                continue
            try:
                # A merge patch keeps members that it does not name; null removes them.
                stale = dict.fromkeys(quota.status.usage.keys() - usage.keys())
                await self._client.patch(ELASTIC_QUOTAS, quota, {"status": {"used": {**stale, **usage}}}, "status")
            except NotFound:
                continue
            except ApiError as error:
                log.warning("ElasticQuota status could not be written", object=quota.key, error=str(error))
                self._changed[namespace] = None


def _is_written(status: ResourceList, usage: Mapping[str, str]) -> bool:
    try:
        return whole_amounts(status, "status.used") == whole_amounts(dict(usage), "status.used")
    except FieldError:
        return False
