"""The calculations that plugins of scheduler-plugins share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.plugins.contrib.calculations import (
    effective_requests,
    is_native_resource,
    min_max,
    qos_class,
    reverse_min_max,
    simple_requests,
)
from tests.builders import pod

Amounts = Mapping[str, str | int]


def container(requests: Amounts | None = None, limits: Amounts | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def pod_of(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **spec: Any) -> Pod:
    return pod(spec={"containers": containers, "initContainers": init, **spec})


def test_simple_requests_count_a_sidecar_as_an_ordinary_init_container() -> None:
    sidecar = container({"cpu": "300m", "memory": "1Mi"}, restartPolicy="Always")
    asked = pod_of(container({"cpu": "100m", "memory": "2Mi"}), container({"cpu": "100m"}), init=(sidecar,))
    assert simple_requests(asked.spec) == {"cpu": 300, "memory": 2 << 20}


def test_simple_requests_add_the_overhead_and_ignore_the_pod_level() -> None:
    asked = pod_of(container({"cpu": "1"}), overhead={"cpu": "50m"}, resources={"requests": {"cpu": "8"}})
    assert simple_requests(asked.spec) == {"cpu": 1050}


def test_simple_requests_round_each_container_up() -> None:
    asked = pod_of(container({"cpu": "0.1m", "memory": "100m"}), container({"cpu": "0.1m", "memory": "100m"}))
    assert simple_requests(asked.spec) == {"cpu": 2, "memory": 2}
    assert {name: amount.approximate for name, amount in effective_requests(asked.spec).items()} == {
        "cpu": 0.0002,
        "memory": 0.2,
    }


def test_simple_requests_drop_names_that_nothing_counts() -> None:
    asked = pod_of(container({"storage": 1, "example.com/gpu": 2, "hugepages-2Mi": "2Mi", "odd": 1}))
    assert simple_requests(asked.spec) == {"example.com/gpu": 2, "hugepages-2Mi": 2 << 20}
    assert set(effective_requests(asked.spec)) == {"storage", "example.com/gpu", "hugepages-2Mi", "odd"}


def test_a_request_that_is_no_quantity_is_named() -> None:
    with pytest.raises(FieldError, match=r"spec\.initContainers\[0\]\.resources\.requests\[cpu\]"):
        simple_requests(pod_of(container(), init=(container({"cpu": "a lot"}),)).spec)


@pytest.mark.parametrize(
    ("name", "is_native"),
    [
        ("cpu", True),
        ("storage", True),
        ("hugepages-1Gi", True),
        ("kubernetes.io/batch-cpu", True),
        ("example.com/gpu", False),
    ],
)
def test_a_resource_with_a_foreign_domain_is_not_native(name: str, *, is_native: bool) -> None:
    assert is_native_resource(name) is is_native


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod_of(container()), "BestEffort"),
        (pod_of(container({"cpu": 0}, {"memory": 0})), "BestEffort"),
        (pod_of(container({"example.com/gpu": 1}, {"example.com/gpu": 1})), "BestEffort"),
        (pod_of(container(BOTH, BOTH)), "Guaranteed"),
        (pod_of(container({"cpu": "1000m", "memory": "1024Mi"}, BOTH)), "Guaranteed"),
        (pod_of(container({"cpu": "1"}, BOTH)), "Burstable"),
        (pod_of(container(BOTH, BOTH), container()), "Burstable"),
        (pod_of(container(BOTH, BOTH), init=(container({"cpu": "1"}),)), "Burstable"),
        (pod_of(container(BOTH, BOTH), init=(container(BOTH, BOTH),)), "Guaranteed"),
        # Only the sums are compared.
        (
            pod_of(
                container({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}),
                container({"cpu": "2", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
            ),
            "Guaranteed",
        ),
        (pod_of(container(), resources={"requests": BOTH, "limits": BOTH}), "Guaranteed"),
        (pod_of(container(BOTH, BOTH), resources={"requests": {"cpu": "1"}}), "Burstable"),
        (pod_of(container(BOTH, BOTH), resources={}), "BestEffort"),
        (pod("web", cpu="1", status={"qosClass": "Guaranteed"}), "Guaranteed"),
    ],
)
def test_the_qos_class_is_that_of_the_status_or_of_the_resources(asked: Pod, expected: str) -> None:
    assert qos_class(asked) == expected


def scaled(function: Any, *scores: int) -> list[int]:
    return function(np.array(scores, np.int64)).tolist()  # type: ignore[no-any-return]


def test_min_max_spreads_scores_over_the_whole_range() -> None:
    assert scaled(min_max, -7, 0, 7) == [0, 50, 100]
    assert scaled(min_max, 1, 2, 4) == [0, 33, 100]
    assert scaled(min_max, 5, 5) == [0, 0]
    assert scaled(min_max) == []
    assert scaled(min_max, -(2**63), 0, 2**63 - 1) == [0, 50, 100]


def test_reverse_min_max_prefers_low_costs_and_leaves_nothing_but_zeros_alone() -> None:
    assert scaled(reverse_min_max, 1, 2, 4) == [100, 67, 0]
    assert scaled(reverse_min_max, 5, 5) == [100, 100]
    assert scaled(reverse_min_max, 0, 0) == [0, 0]
    assert scaled(reverse_min_max) == []
    assert scaled(reverse_min_max, -(2**63), 2**63 - 1) == [100, 0]
