"""What a set of informers says of resources; their connections are in the integration tests."""

from __future__ import annotations

from random import Random
from typing import Any

from podium.client.informer_set import InformerSet
from podium.lib.clock import ManualClock
from podium.objects.node_metrics import NODE_METRICS
from podium.objects.resource_types import POD_GROUPS, PODS


def informers(**options: Any) -> InformerSet:
    session: Any = None
    return InformerSet(session, clock=ManualClock(), random=Random(0), **options)


def test_nothing_is_missing_of_a_local_resource() -> None:
    informer_set = informers()
    informer_set.informer(NODE_METRICS)
    informer_set.informer(PODS)
    assert [informer_set.is_absent(resource) for resource in informer_set.resources] == [False, False]


def test_a_resource_that_is_served_at_another_path_is_asked_about_by_its_own() -> None:
    older = informers(paths={POD_GROUPS.path: "/apis/scheduling.k8s.io/v1alpha2/podgroups"})
    older.informer(POD_GROUPS)
    assert [older.is_absent(resource) for resource in older.resources] == [False]
