"""The order of admission: plugins that change the object, the registry, and plugins that may only refuse it.

Source: kubernetes pkg/kubeapiserver/options/plugins.go, apiserver pkg/endpoints/handlers/create.go (v1.36).
Differs: ResourceQuotas, admission policies and webhooks are not consulted; pods may name missing service accounts.
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.admission.claims import set_default_class
from podium.sandbox.admission.limit_ranges import demand_claim_within, demand_pod_within, set_limit_defaults
from podium.sandbox.admission.lookup import Lookup
from podium.sandbox.admission.pods import add_node_lost_tolerations, prepare_pod, set_group_priority, set_priority
from podium.sandbox.admission.runtime_classes import apply_runtime_class, demand_overhead_of_class
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]

_PODS, _CLAIMS, _POD_GROUPS = "pods", "persistentvolumeclaims", "podgroups.scheduling.k8s.io"


def fill_in(resource: ResourceType, obj: Json, lookup: Lookup) -> None:
    """Change an object that is being created, in place, before it is validated.

    Raises:
        ApiError: 403, a class that the object names does not exist or contradicts it.
    """
    if resource.storage == _PODS:
        set_limit_defaults(obj, lookup)
        set_priority(obj, lookup)
        add_node_lost_tolerations(obj["spec"])
        apply_runtime_class(obj, lookup)
        prepare_pod(obj)
    elif resource.storage == _CLAIMS:
        set_default_class(obj, lookup)
    elif resource.storage == _POD_GROUPS:
        set_group_priority(obj, lookup)


def demand_allowed(resource: ResourceType, obj: Json, lookup: Lookup) -> None:
    """Refuse an object that is valid but not allowed here.

    Raises:
        ApiError: 403.
    """
    if resource.storage == _PODS:
        demand_pod_within(obj, lookup)
        demand_overhead_of_class(obj, lookup)
    elif resource.storage == _CLAIMS:
        demand_claim_within(obj, lookup)
