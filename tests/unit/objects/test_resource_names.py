import pytest

from podium.objects.resource_names import (
    is_counted_resource,
    is_extended_resource,
    is_hugepages,
    is_pod_level_resource,
    is_scalar_resource,
)


@pytest.mark.parametrize(
    ("name", "extended", "scalar", "is_counted"),
    [
        ("cpu", False, False, True),
        ("memory", False, False, True),
        ("ephemeral-storage", False, False, True),
        ("pods", False, False, False),
        ("storage", False, False, False),
        ("example.com/gpu", True, True, True),
        ("requests.example.com/gpu", False, False, False),
        ("kubernetes.io/thing", False, True, True),
        ("node.kubernetes.io/thing", False, True, True),
        ("example.com/-bad", False, False, False),
        ("Example.com/gpu", False, False, False),
        ("hugepages-2Mi", False, True, True),
        ("attachable-volumes-csi-x", False, True, True),
    ],
)
def test_kinds_of_resource_names(name: str, extended: bool, scalar: bool, is_counted: bool) -> None:
    assert is_extended_resource(name) is extended
    assert is_scalar_resource(name) is scalar
    assert is_counted_resource(name) is is_counted


def test_a_pod_may_request_cpu_memory_and_huge_pages_as_a_whole() -> None:
    assert all(map(is_pod_level_resource, ["cpu", "memory", "hugepages-1Gi"]))
    assert not any(map(is_pod_level_resource, ["ephemeral-storage", "example.com/gpu"]))
    assert is_hugepages("hugepages-1Gi")
    assert not is_hugepages("memory")
