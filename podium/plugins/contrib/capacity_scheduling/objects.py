"""ElasticQuota (`scheduling.x-k8s.io`), cut down to what scheduling reads; see `objects.core`."""

from __future__ import annotations

import msgspec

from podium.objects.custom_resources import custom_resource
from podium.objects.meta import LabelSelector, NamespacedObject, ResourceList, Value


class ElasticQuotaSpec(Value, frozen=True):
    """The amounts that a namespace is guaranteed, and those that it may use at most.

    `min` absent means nothing; `max` absent means no limit. `parent` and `namespace_selector` are podium's own, and
    only read with the arg `quotaTrees`.
    """

    min: ResourceList | None = None
    max: ResourceList | None = None
    parent: str = ""
    namespace_selector: LabelSelector | None = None


class ElasticQuotaStatus(Value, frozen=True):
    """The amounts in use, as the quota's controller or podium has written them. No decision reads them."""

    usage: ResourceList = msgspec.field(default_factory=dict, name="used")


class ElasticQuota(NamespacedObject, frozen=True):
    """The quota of its namespace."""

    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()


ELASTIC_QUOTAS = custom_resource("scheduling.x-k8s.io/v1alpha1", "elasticquotas", ElasticQuota)
