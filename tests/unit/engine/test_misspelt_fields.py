from collections.abc import Mapping
from typing import Any

import pytest

from podium.engine.misspelt_fields import misspelt_fields
from podium.estimator.cluster_objects import Cluster
from podium.objects.claims import ResourceClaim
from podium.objects.core import Node, Pod
from podium.objects.devices import ResourceSlice


def errors_of(spec: Mapping[str, Any], **fields: Any) -> list[str]:
    return list(
        misspelt_fields({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec} | fields, Pod)
    )


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"nodeSelecter": {"disk": "ssd"}}, "spec.nodeSelecter: unknown field; did you mean nodeSelector?"),
        ({"nodeselector": {}}, "spec.nodeselector: unknown field; did you mean nodeSelector?"),
        ({"containers": [{"resource": {}}]}, "spec.containers[0].resource: unknown field; did you mean resources?"),
        (
            {"containers": [{}, {"resources": {"request": {"cpu": "1"}}}]},
            "spec.containers[1].resources.request: unknown field; did you mean requests?",
        ),
        ({"tolerations": [{"ky": "a"}]}, "spec.tolerations[0].ky: unknown field; did you mean key?"),
    ],
)
def test_misspelt_field_is_named_with_its_place(spec, error):
    assert errors_of(spec) == [error]


def test_metadata_is_examined_too():
    assert errors_of({}, metadata={"lables": {}}) == ["metadata.lables: unknown field; did you mean labels?"]


def test_fields_that_podium_does_not_read_are_no_mistakes():
    container = {"name": "c", "command": [], "env": [], "resizePolicy": [], "startupProbe": {}, "volumeDevices": []}
    spec = {
        "containers": [container],
        "hostAliases": [],
        "hostname": "a",
        "dnsPolicy": "None",
        "runtimeClassName": "x",
        "readinessGates": [],
        "volumes": [{"name": "v", "photonPersistentDisk": {}, "iscsi": {}, "configMap": {"name": "c"}}],
    }
    metadata = {"name": "a", "generateName": "a-", "managedFields": [], "selfLink": ""}
    status = {"containerStatuses": [{"allocatedResourcesStatus": []}], "ephemeralContainerStatuses": [], "podIPs": []}
    assert errors_of(spec, metadata=metadata, status=status) == []


def test_the_zone_of_karmadas_clusters_is_no_misspelling_of_their_zones():
    assert list(misspelt_fields({"spec": {"zone": "z", "zones": ["z"], "region": "r"}}, Cluster)) == []


def test_keys_of_maps_are_no_fields():
    assert errors_of({"nodeSelector": {"nodeSelecter": "a"}}, metadata={"labels": {"lables": "a"}}) == []
    node = {"status": {"allocatable": {"example.com/gpus": "1"}, "capacity": {"cpuu": "1"}}}
    assert list(misspelt_fields(node, Node)) == []


def test_values_of_maps_have_fields():
    device = {"name": "d", "capacity": {"memory": {"valu": "1Gi"}}, "attributes": {"model": {"sting": "a"}}}
    assert list(misspelt_fields({"spec": {"devices": [device]}}, ResourceSlice)) == [
        "spec.devices[0].capacity[memory].valu: unknown field; did you mean value?",
        "spec.devices[0].attributes[model].sting: unknown field; did you mean string, strings?",
    ]


def test_fields_of_claims_are_found_at_any_depth():
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "alocationMode": "All"}}
    assert list(misspelt_fields({"spec": {"devices": {"requests": [request]}}}, ResourceClaim)) == [
        "spec.devices.requests[0].exactly.alocationMode: unknown field; did you mean allocationMode?"
    ]


def test_values_of_wrong_types_are_left_to_the_decoder():
    assert errors_of({"containers": {"name": "c"}, "affinity": 3, "tolerations": [None]}) == []


def test_an_object_that_an_api_server_has_admitted_is_not_examined():
    assert errors_of({"nodeSelecter": {}}, metadata={"name": "a", "uid": "u1"}) == []
    assert errors_of({"nodeSelecter": {}}, metadata={"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}) == []
