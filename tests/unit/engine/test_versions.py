"""Claims and slices of other versions are converted or refused, by group and version."""

import pytest

from podium.engine.cluster import Cluster
from podium.engine.errors import ManifestError
from podium.engine.files import read_objects
from podium.engine.versions import current_form
from podium.objects.resource_types import RESOURCE_CLAIMS, RESOURCE_SLICES

GROUP = "resource.k8s.io"
_DEVICE = {"attributes": {"model": {"string": "a100"}}, "capacity": {"memory": {"value": "40Gi"}}}


def _claim(version, request):
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def _slice(version, device):
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }


_EXACTLY = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
_FORMER = _claim("v1beta1", {"name": "a", **_EXACTLY})
_CURRENT = _claim("v1", {"name": "a", "exactly": _EXACTLY})


@pytest.mark.parametrize(
    ("former", "current"),
    [
        (_FORMER, _CURRENT),
        (_claim("v1beta2", {"name": "a", "exactly": _EXACTLY}), _CURRENT),
        (
            _claim("v1beta1", {"name": "a", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]}),
            _claim("v1", {"name": "a", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]}),
        ),
        (_slice("v1beta1", {"name": "gpu-0", "basic": _DEVICE}), _slice("v1", {"name": "gpu-0", **_DEVICE})),
        (_slice("v1beta2", {"name": "gpu-0", **_DEVICE}), _slice("v1", {"name": "gpu-0", **_DEVICE})),
    ],
)
def test_an_object_of_a_former_version_is_what_the_api_server_makes_of_it(former, current):
    assert current_form(former, "x") == current
    assert current_form(current, "x") is current


def test_a_template_is_converted_as_its_claims_are():
    template = {**_FORMER, "kind": "ResourceClaimTemplate", "spec": {"spec": _FORMER["spec"]}}
    assert current_form(template, "x")["spec"]["spec"] == _CURRENT["spec"]


def test_cluster_loads_objects_of_former_api_versions():
    cluster = Cluster.load([_FORMER, _slice("v1beta1", {"name": "gpu-0", "basic": _DEVICE})])
    (claim,) = cluster.store.objects(RESOURCE_CLAIMS).values()
    assert claim.spec.devices.requests[0].exactly.count == 2
    (of_node,) = cluster.store.objects(RESOURCE_SLICES).values()
    assert of_node.spec.devices[0].attributes.keys() == {"model"}


@pytest.mark.parametrize("version", ["v1alpha3", "v2"])
def test_any_other_version_is_refused_by_group_and_version(version):
    text = f"ResourceClaim of {GROUP}/{version} is not read, only of {GROUP}/v1"
    with pytest.raises(ManifestError, match=text):
        Cluster.load([_claim(version, {"name": "a"})])
    content = f'{{"apiVersion": "{GROUP}/{version}", "kind": "ResourceSlice", "metadata": {{"name": "a"}}}}'
    with pytest.raises(ManifestError, match=f"slices.yaml: document 1: ResourceSlice of {GROUP}/{version} is not"):
        list(read_objects(content.encode(), "slices.yaml"))
