from __future__ import annotations

from podium.objects.pod_groups import group_of
from tests.builders import pod, pod_group


def test_a_gang_has_a_minimum_and_a_basic_group_has_none() -> None:
    assert pod_group(min_count=3).min_count == 3
    assert pod_group().min_count is None


def test_a_group_may_be_bound_to_one_topology() -> None:
    assert pod_group(topology="zone").topology_key == "zone"
    assert pod_group().topology_key is None
    assert pod_group(spec={"schedulingConstraints": {"topology": []}}).topology_key is None


def test_a_group_without_a_priority_has_none_of_its_pods_but_zero() -> None:
    assert pod_group().priority == 0
    assert pod_group(spec={"priority": 7}).priority == 7


def test_a_group_is_disrupted_as_a_whole_only_on_request() -> None:
    assert pod_group(spec={"disruptionMode": "PodGroup"}).is_disrupted_as_a_whole
    assert not pod_group(spec={"disruptionMode": "Pod"}).is_disrupted_as_a_whole
    assert not pod_group().is_disrupted_as_a_whole


def test_a_condition_is_found_by_its_type() -> None:
    group = pod_group(status={"conditions": [{"type": "PodGroupScheduled", "status": "True"}]})
    condition = group.condition("PodGroupScheduled")
    assert condition is not None
    assert condition.status == "True"
    assert group.condition("DisruptionTarget") is None


def test_a_pod_names_a_group_of_its_namespace() -> None:
    assert group_of(pod(group="gang", namespace="team")) == "team/gang"
    assert group_of(pod()) is None
