from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.objects.affinity import NodeSelector
from podium.objects.pod_volumes import Volume
from podium.plugins.volumes.csi_translation import (
    TranslationError,
    driver_of_provisioner,
    handle_of,
    inline_driver,
    is_in_tree,
    is_migrated_on,
    plugin_of,
    translated_affinity,
)
from tests.unit.plugins.storage import csi_node, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
AWS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
AWS_ZONE = "topology.ebs.csi.aws.com/zone"


def handle(source: dict[str, Any], labels: dict[str, str] | None = None) -> str:
    csi_volume = volume(labels=labels, **source)
    plugin = plugin_of(csi_volume)
    assert plugin is not None
    return handle_of(plugin, csi_volume)


@pytest.mark.parametrize(
    ("volume_id", "handle_expected"),
    [
        ("vol-1", "vol-1"),
        ("anything", "anything"),
        ("aws://us-east-1a/vol-1", "vol-1"),
        ("aws:///vol-1", "vol-1"),
        ("aws:///vol-1/", "vol-1"),
    ],
)
def test_an_ebs_volume_is_known_by_its_id_alone(volume_id: str, handle_expected: str) -> None:
    assert handle({"awsElasticBlockStore": {"volumeID": volume_id}}) == handle_expected


@pytest.mark.parametrize("volume_id", ["aws://us-east-1a/disk", "aws:///", "aws:///a/vol-1"])
def test_an_ebs_volume_with_another_id_has_no_handle(volume_id: str) -> None:
    with pytest.raises(TranslationError, match="Invalid format for AWS volume"):
        handle({"awsElasticBlockStore": {"volumeID": volume_id}})


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({ZONE: "us-central1-a"}, "zones/us-central1-a"),
        ({BETA_ZONE: "us-central1-b", ZONE: "us-central1-a"}, "zones/us-central1-b"),
        ({ZONE: "us-central1-a__us-central1-b"}, "regions/us-central1"),
    ],
)
def test_a_gce_disk_is_known_by_its_place(labels: dict[str, str], place: str) -> None:
    assert handle({"gcePersistentDisk": {"pdName": "d"}}, labels) == f"projects/UNSPECIFIED/{place}/disks/d"


@pytest.mark.parametrize(
    ("zones", "words"),
    [("a__b", "zone in unexpected format"), ("us-central1-a__us-east1-a", "multiple or no regions gotten from zones")],
)
def test_a_gce_disk_in_zones_without_one_region_has_no_handle(zones: str, words: str) -> None:
    with pytest.raises(TranslationError, match=words):
        handle({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: zones})


def test_an_azure_disk_is_known_by_its_uri_if_it_is_managed() -> None:
    assert handle({"azureDisk": {"diskName": "d", "diskURI": "/u"}}) == "/u"
    assert handle({"azureDisk": {"diskName": "d", "diskURI": "/u", "kind": "managed"}}) == "/u"
    with pytest.raises(TranslationError, match=r"kind\(Shared\) is not supported in csi migration"):
        handle({"azureDisk": {"diskName": "d", "diskURI": "/u", "kind": "Shared"}})


@pytest.mark.parametrize("source", ["cinder", "portworxVolume"])
def test_other_disks_are_known_by_their_id(source: str) -> None:
    assert handle({source: {"volumeID": "d"}}) == "d"


def test_an_inline_disk_has_no_labels_to_say_where_it_is() -> None:
    inline = msgspec.convert({"name": "v", "gcePersistentDisk": {"pdName": "d"}}, Volume)
    plugin = plugin_of(inline)
    assert plugin is not None
    assert handle_of(plugin, inline) == "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        (AWS, "ebs.csi.aws.com"),
        ({"azureFile": {"shareName": "s"}}, "file.csi.azure.com"),
        ({"vsphereVolume": {"volumePath": "p"}}, "csi.vsphere.vmware.com"),
        ({"csi": {"driver": "d"}}, None),
    ],
)
def test_an_inline_volume_is_served_by_the_driver_in_its_plugins_place(
    source: dict[str, Any], driver: str | None
) -> None:
    assert inline_driver(msgspec.convert({"name": "v", **source}, Volume)) == driver


@pytest.mark.parametrize(
    ("provisioner", "driver", "in_tree"),
    [
        ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", True),
        ("kubernetes.io/azure-file", "", True),
        ("disk.example.com", "disk.example.com", False),
    ],
)
def test_a_provisioner_stands_for_a_driver(provisioner: str, driver: str, in_tree: bool) -> None:
    assert driver_of_provisioner(provisioner) == driver
    assert is_in_tree(provisioner) is in_tree


@pytest.mark.parametrize(
    ("migrated", "is_migrated"),
    [("kubernetes.io/aws-ebs", True), ("kubernetes.io/gce-pd,kubernetes.io/aws-ebs", True), ("", False)],
)
def test_a_plugin_has_migrated_where_the_node_says_so(migrated: str, is_migrated: bool) -> None:
    plugin = plugin_of(volume(**AWS))
    assert plugin is not None
    assert is_migrated_on(plugin, csi_node("n1", migrated=migrated)) is is_migrated
    assert not is_migrated_on(plugin, None)


def node_terms(labels: dict[str, str], *terms: dict[str, list[str]], **source: Any) -> Any:
    """The terms, values by label, from which the driver says the volume can be reached; None for everywhere."""
    affinity = None
    if terms:
        node_terms = [
            {"matchExpressions": [{"key": key, "operator": "In", "values": v} for key, v in term.items()]}
            for term in terms
        ]
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": node_terms}}}
    csi_volume = volume(labels=labels, **(source or AWS), **(affinity or {}))
    plugin = plugin_of(csi_volume)
    assert plugin is not None
    selector = translated_affinity(plugin, csi_volume)
    return None if selector is None else _terms(selector)


def _terms(selector: NodeSelector) -> list[dict[str, list[str]]]:
    return [
        {expression.key: list(expression.values) for expression in term.match_expressions}
        for term in selector.node_selector_terms
    ]


def test_zones_of_the_affinity_become_the_drivers() -> None:
    assert node_terms({}, {ZONE: ["a", "b"]}, {ZONE: ["c"], "disk": ["ssd"]}) == [
        {AWS_ZONE: ["a", "b"]},
        {AWS_ZONE: ["c"], "disk": ["ssd"]},
    ]


def test_zones_of_old_times_do_too_and_regions_become_todays() -> None:
    assert node_terms({}, {BETA_ZONE: ["a"], BETA_REGION: ["r"]}) == [{AWS_ZONE: ["a"], REGION: ["r"]}]
    # Beside a zone of today, a region of old times is left as it is.
    assert node_terms({}, {ZONE: ["a"], BETA_REGION: ["r"]}) == [{AWS_ZONE: ["a"], BETA_REGION: ["r"]}]


def test_without_zones_in_the_affinity_the_labels_tell() -> None:
    assert node_terms({ZONE: "b__a"}) == [{AWS_ZONE: ["a", "b"]}]
    assert node_terms({BETA_ZONE: "a"}, {"disk": ["ssd"]}) == [{"disk": ["ssd"], AWS_ZONE: ["a"]}]
    assert node_terms({ZONE: ""}) is None
    assert node_terms({}) is None


def test_drivers_without_zones_leave_the_affinity_as_it_is() -> None:
    source: dict[str, Any] = {"azureDisk": {"diskName": "d", "diskURI": "/u"}}
    assert node_terms({ZONE: "a"}, **source) is None
    assert node_terms({}, {ZONE: ["a"]}, **source) == [{ZONE: ["a"]}]


def test_a_volume_that_cannot_be_translated_is_reached_from_nowhere_we_know() -> None:
    with pytest.raises(TranslationError):
        node_terms({ZONE: "a__b"}, gcePersistentDisk={"pdName": "d"})
