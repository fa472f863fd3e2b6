"""Catalogues from what command lines of providers print, and from Karpenter's own file."""

import json

import pytest

from podium.objects.errors import FieldError
from podium.provisioner.cloudprovider.catalogue import read_catalogue
from podium.provisioner.cloudprovider.dialect_labels import labels_of_name
from podium.provisioner.cloudprovider.imports import import_catalogue
from podium.provisioner.scheduling.requirements import Requirements
from tests.unit.provisioner.clusters import CAPACITY_TYPE, ZONE, instance_type

MIB = 2**20
AWS = "karpenter.k8s.aws"


def _info(name="m6i.large", **fields):
    network = {
        "NetworkCards": [{"MaximumNetworkInterfaces": 3, "BaselineBandwidthInGbps": 0.781}],
        "DefaultNetworkCardIndex": 0,
        "Ipv4AddressesPerInterface": 10,
        "EncryptionInTransitSupported": True,
    }
    return {
        "InstanceType": name,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "Hypervisor": "nitro",
        "ProcessorInfo": {
            "SupportedArchitectures": ["x86_64"],
            "SustainedClockSpeedInGhz": 3.5,
            "Manufacturer": "Intel",
        },
        "VCpuInfo": {"DefaultVCpus": 2},
        "MemoryInfo": {"SizeInMiB": 8192},
        "EbsInfo": {"EbsOptimizedSupport": "default", "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 10000}},
        "NetworkInfo": network,
        **fields,
    }


def _aws(*documents):
    return import_catalogue([(f"{index}: ", document) for index, document in enumerate(documents)])


TYPES = {"InstanceTypes": [_info()]}
PLACES = {
    "InstanceTypeOfferings": [
        {"InstanceType": "m6i.large", "LocationType": "availability-zone", "Location": f"us-east-1{letter}"}
        for letter in "ab"
    ]
}
SPOT = {
    "SpotPriceHistory": [
        {
            "InstanceType": "m6i.large",
            "AvailabilityZone": "us-east-1a",
            "ProductDescription": product,
            "SpotPrice": price,
            "Timestamp": time,
        }
        for product, price, time in (
            ("Linux/UNIX", "0.0400", "2026-01-02T00:00:00Z"),
            ("Linux/UNIX", "0.0900", "2026-01-01T00:00:00Z"),
            ("Windows", "0.1900", "2026-01-03T00:00:00Z"),
        )
    ]
}


def _product(name, price, **attributes):
    terms = {"t": {"priceDimensions": {"d": {"pricePerUnit": {"USD": price}}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name, **attributes}}, "terms": {"OnDemand": terms}})


PRICES = {
    "PriceList": [
        _product("m6i.large", "0.0960", operatingSystem="Linux", tenancy="Shared"),
        _product("m6i.large", "0.1880", operatingSystem="Windows", tenancy="Shared"),
    ]
}


def test_an_instance_type_of_aws_is_as_large_as_karpenter_computes_it() -> None:
    (m6i,) = _aws(TYPES, PLACES).instance_types
    pods = 3 * (10 - 1) + 2
    memory = 8192 - 615
    assert m6i.capacity == {
        "cpu": 2000,
        "memory": memory * MIB,
        "ephemeral-storage": 20 * 2**30,
        "pods": pods,
    }
    assert m6i.allocatable["cpu"] == 2000 - 70
    assert m6i.allocatable["memory"] == (memory - (11 * pods + 255) - 100) * MIB
    assert m6i.allocatable["ephemeral-storage"] == (20 - 1 - 2) * 2**30


def test_its_labels_are_those_of_awss_karpenter_and_of_auto_mode() -> None:
    (m6i,) = _aws(TYPES, PLACES).instance_types
    for domain in (AWS, "eks.amazonaws.com"):
        values = {
            name: m6i.requirements.get(f"{domain}/instance-{name}").values
            for name in ("family", "category", "generation", "size", "cpu", "memory", "hypervisor", "ebs-bandwidth")
        }
        assert values == {
            "family": {"m6i"},
            "category": {"m"},
            "generation": {"6"},
            "size": {"large"},
            "cpu": {"2"},
            "memory": {"8192"},
            "hypervisor": {"nitro"},
            "ebs-bandwidth": {"10000"},
        }
    assert m6i.requirements.get("topology.kubernetes.io/region").values == {"us-east-1"}
    assert m6i.requirements.get("kubernetes.io/arch").values == {"amd64"}


def test_prices_come_from_the_price_list_and_the_newest_spot_price_of_linux() -> None:
    (m6i,) = _aws(TYPES, PLACES, SPOT, PRICES).instance_types
    prices = {(item.zone, item.capacity_type): (round(item.price, 4), item.is_priced) for item in m6i.offerings}
    assert prices == {
        ("us-east-1a", "on-demand"): (0.096, True),
        ("us-east-1b", "on-demand"): (0.096, True),
        ("us-east-1a", "spot"): (0.04, True),
        # No spot price is known there. It counts as 70 %, and is not shown as a price.
        ("us-east-1b", "spot"): (0.0672, False),
    }
    # What is bought on demand has a price, whatever is not known of spot.
    assert m6i.is_priced(Requirements.of_labels({CAPACITY_TYPE: "on-demand"}))
    assert not m6i.is_priced()


def test_without_prices_instance_types_are_compared_by_their_size() -> None:
    small, large = _aws(
        {"InstanceTypes": [_info(), _info("m6i.xlarge", VCpuInfo={"DefaultVCpus": 4})]},
        PLACES
        | {
            "InstanceTypeOfferings": [
                {"InstanceType": name, "Location": "us-east-1a"} for name in ("m6i.large", "m6i.xlarge")
            ]
        },
    ).instance_types
    assert not small.is_priced()
    assert small.offerings[0].price < large.offerings[0].price


def test_prices_by_name_count_for_any_list() -> None:
    kwok = [instance_type("big", 4, "8Gi", price=7.0)]
    (big,) = _aws(kwok, {"big": {"on-demand": 1.5, "spot": 0.5}}).instance_types
    assert {(item.capacity_type, item.price) for item in big.offerings} == {("on-demand", 1.5), ("spot", 0.5)}
    (m6i,) = _aws(TYPES, PLACES, {"m6i.large": 0.1}).instance_types
    assert m6i.offerings[0].price == 0.1


def test_capacity_reservations_are_offerings_with_places() -> None:
    reservation = {
        "CapacityReservationId": "cr-1",
        "InstanceType": "m6i.large",
        "AvailabilityZone": "us-east-1a",
        "AvailableInstanceCount": 3,
        "State": "active",
    }
    over = {**reservation, "CapacityReservationId": "cr-2", "State": "expired"}
    (m6i,) = _aws(TYPES, PLACES, {"CapacityReservations": [reservation, over]}).instance_types
    (reserved,) = [item for item in m6i.offerings if item.capacity_type == "reserved"]
    assert (reserved.reservation_capacity, reserved.zone) == (3, "us-east-1a")
    assert reserved.requirements.get(f"{AWS}/capacity-reservation-id").values == {"cr-1"}
    other_offerings = [item for item in m6i.offerings if item is not reserved]
    assert {item.requirements.get(f"{AWS}/capacity-reservation-id").operator for item in other_offerings} == {
        "DoesNotExist"
    }


@pytest.mark.parametrize(
    ("fields", "resource", "amount"),
    [
        (
            {
                "GpuInfo": {
                    "Gpus": [{"Name": "A10G", "Manufacturer": "NVIDIA", "Count": 4, "MemoryInfo": {"SizeInMiB": 1}}]
                }
            },
            "nvidia.com/gpu",
            4,
        ),
        (
            {"NeuronInfo": {"NeuronDevices": [{"Name": "Inferentia2", "Count": 2, "CoreInfo": {"Count": 2}}]}},
            "aws.amazon.com/neuroncore",
            4,
        ),
        (
            {"NetworkInfo": {**_info()["NetworkInfo"], "EfaInfo": {"MaximumEfaInterfaces": 1}}},
            "vpc.amazonaws.com/efa",
            1,
        ),
    ],
)
def test_devices_of_aws_are_extended_resources(fields, resource, amount) -> None:
    (device_type,) = _aws({"InstanceTypes": [_info(**fields)]}, PLACES).instance_types
    assert device_type.capacity[resource] == amount


def test_a_list_of_the_entries_alone_is_read_as_well() -> None:
    assert [item.name for item in _aws([_info()], PLACES).instance_types] == ["m6i.large"]


def _sku(name="Standard_D4s_v5", **fields):
    capabilities = {"vCPUs": "4", "MemoryGB": "16", "CpuArchitectureType": "x64", "PremiumIO": "True"}
    capabilities |= {"LowPriorityCapable": "True", **fields}
    return {
        "name": name,
        "resourceType": "virtualMachines",
        "locationInfo": [{"location": "eastus", "zones": ["2", "1"]}],
        "capabilities": [{"name": key, "value": value} for key, value in capabilities.items()],
        "restrictions": [],
    }


def test_sizes_of_azure_have_its_labels_zones_and_prices() -> None:
    items = [
        {"armSkuName": "Standard_D4s_v5", "skuName": "D4s v5", "productName": "Dsv5 Series", "retailPrice": 0.192},
        {"armSkuName": "Standard_D4s_v5", "skuName": "D4s v5 Spot", "productName": "Dsv5 Series", "retailPrice": 0.05},
        {"armSkuName": "Standard_D4s_v5", "skuName": "D4s v5", "productName": "Dsv5 Windows", "retailPrice": 0.376},
    ]
    restricted_sku = {**_sku("Standard_D8s_v5"), "restrictions": [{"type": "Location"}]}
    (size,) = import_catalogue([("", [_sku(), restricted_sku]), ("", {"Items": items})]).instance_types
    assert {(item.zone, item.capacity_type, item.price) for item in size.offerings} == {
        (zone, kind, price)
        for zone in ("eastus-1", "eastus-2")
        for kind, price in (("on-demand", 0.192), ("spot", 0.05))
    }
    labels = {
        name: size.requirements.get(f"karpenter.azure.com/sku-{name}").values for name in ("family", "cpu", "memory")
    }
    assert labels == {"family": {"D"}, "cpu": {"4"}, "memory": {"16384"}}
    assert size.requirements.get("kubernetes.azure.com/sku-cpu").values == {"4"}
    assert size.requirements.get("topology.kubernetes.io/region").values == {"eastus"}
    assert size.allocatable["cpu"] == 4000 - (60 + 40 + 40)
    assert size.allocatable["pods"] == 250


def test_machine_types_of_gcp_are_one_type_for_all_their_zones() -> None:
    items = [
        {"name": "n2-standard-4", "guestCpus": 4, "memoryMb": 16384, "zone": f"https://host/zones/us-central1-{letter}"}
        for letter in "ba"
    ]
    gpu = {"guestAcceleratorType": "nvidia-tesla-a100", "guestAcceleratorCount": 1}
    items.append({**items[0], "name": "a2-highgpu-1g", "accelerators": [gpu]})
    (n2, a2) = import_catalogue([("", items), ("", {"n2-standard-4": {"on-demand": 0.2, "spot": 0.05}})]).instance_types
    assert n2.requirements.get(ZONE).values == {"us-central1-a", "us-central1-b"}
    assert n2.requirements.get("cloud.google.com/machine-family").values == {"n2"}
    assert n2.requirements.get("topology.kubernetes.io/region").values == {"us-central1"}
    assert n2.is_priced()
    assert a2.capacity["nvidia.com/gpu"] == 1
    assert a2.requirements.get("cloud.google.com/gke-accelerator").values == {"nvidia-tesla-a100"}
    assert n2.requirements.get("cloud.google.com/gke-accelerator").operator == "DoesNotExist"


def test_karpenters_own_file_is_read_as_it_is() -> None:
    entry = {**instance_type("m5.large", 2, "8Gi", zones=("us-west-2a",)), "architecture": "x86_64"}
    (m5,) = _aws([{**entry, "operatingSystems": ["windows"]}, entry]).instance_types
    assert m5.requirements.get("kubernetes.io/arch").values == {"amd64"}
    assert m5.requirements.get("kubernetes.io/os").values == {"linux", "windows"}
    assert m5.requirements.get(f"{AWS}/instance-family").values == {"m5"}
    assert m5.requirements.get(f"{AWS}/instance-memory").values == {"8192"}
    assert m5.requirements.get("topology.kubernetes.io/region").values == {"us-west-2"}


def test_a_description_adds_to_a_list_what_the_list_does_not_say() -> None:
    list_entry = {**instance_type("m6i.large", 2, "8Gi", price=0.5, zones=("us-east-1c",)), "architecture": "x86_64"}
    (m6i,) = _aws([list_entry], TYPES).instance_types
    assert {(item.zone, item.price) for item in m6i.offerings} == {("us-east-1c", 0.5), ("us-east-1c", 0.35)}
    assert m6i.requirements.get(ZONE).values == {"us-east-1c"}
    assert m6i.requirements.get(f"{AWS}/instance-hypervisor").values == {"nitro"}
    assert m6i.capacity["pods"] == 29


def test_twins_with_other_prices_stay_apart() -> None:
    cheap, dear = instance_type("m5.large", 2, "8Gi", price=1.0), instance_type("m5.large", 2, "8Gi", price=2.0)
    assert len(_aws([cheap, {**dear, "operatingSystems": ["windows"]}]).instance_types) == 2


@pytest.mark.parametrize(
    ("name", "label", "value"),
    [
        ("u-6tb1.metal", f"{AWS}/instance-category", "u"),
        ("c7i-flex.large", f"{AWS}/instance-capability-flex", "true"),
        ("Standard_NC24ads_A100_v4", "karpenter.azure.com/sku-gpu-name", "A100"),
        ("Standard_M128ms", "karpenter.azure.com/sku-series", "Mms"),
        ("Standard_D16ads_v5", "karpenter.azure.com/sku-version", "5"),
        ("c3d-highcpu-8", "cloud.google.com/machine-family", "c3d"),
        ("e2-medium", "karpenter.k8s.gcp/instance-shape", "medium"),
    ],
)
def test_labels_follow_from_names(name, label, value) -> None:
    assert labels_of_name(name)[label] == value


def test_names_of_no_provider_say_nothing() -> None:
    assert labels_of_name("c-2x-amd64-linux") == labels_of_name("big") == {}


# ---------------------------------------------------------------- what a catalogue may say


def test_labels_overhead_pods_and_devices_of_an_instance_type_are_read() -> None:
    entry = {
        **instance_type("big", 8, "16Gi"),
        "labels": {"example.com/family": "b", "example.com/disk": ["ssd", "nvme"], "kubernetes.io/os": "windows"},
        "maxPods": 58,
        "overhead": {"kubeReserved": {"cpu": "80m"}, "evictionThreshold": {"memory": "100Mi"}},
        "devices": {
            "gpu.example.com": {"count": 2, "attributes": {"model": {"string": "a100"}}},
            "nic.example.com": [{"name": "eth1"}],
        },
    }
    big, plain = read_catalogue([entry, instance_type("other", 2, "4Gi")]).instance_types
    assert big.requirements.get("example.com/disk").values == {"ssd", "nvme"}
    assert big.requirements.get("kubernetes.io/os").values == {"windows"}
    assert (big.allocatable["pods"], big.allocatable["cpu"]) == (58, 7920)
    assert big.allocatable["memory"] == (16 * 1024 - 100) * MIB
    assert [device.name for device in big.devices["gpu.example.com"]] == ["device-0", "device-1"]
    assert [device.name for device in big.devices["nic.example.com"]] == ["eth1"]
    # Another type does not have the label; it does not leave it open.
    assert plain.requirements.get("example.com/family").operator == "DoesNotExist"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"labels": {"example.com/disk": 3}}, "[0].labels[example.com/disk]: 3 is not a text"),
        ({"labels": {"a b": "x"}}, "[0].labels[a b]: cannot be the key of a label"),
        ({"labels": {"a": "x y"}}, '[0].labels[a]: "x y" cannot be the value of a label'),
        ({"maxPods": -1}, "[0].maxPods: -1 is not a number of pods"),
        ({"overhead": {"kubeReserved": {"cpu": "lots"}}}, "[0].overhead.kubeReserved[cpu]"),
        ({"devices": {"d": 3}}, "[0].devices[d]: is neither"),
        ({"devices": {"d": [{"name": 3}]}}, "[0].devices[d]"),
    ],
)
def test_a_fault_of_such_a_field_is_named(fields, text) -> None:
    with pytest.raises(FieldError) as error:
        read_catalogue([{**instance_type("big", 8, "16Gi"), **fields}], "")
    assert str(error.value).startswith(text)


@pytest.mark.parametrize(
    ("documents", "text"),
    [
        ([{"items": []}], "0: catalogue: is not a list of instance types"),
        ([3], "0: catalogue: is not a list of instance types"),
        ([{"InstanceTypes": [{"InstanceType": "m5.large"}]}, PLACES], "0: InstanceTypes[0].VCpuInfo: is missing"),
        ([{"InstanceTypes": 3}], "0: InstanceTypes: is not a list"),
        ([PLACES], "0: has no instance types"),
        ([TYPES, {"InstanceTypeOfferings": [{"LocationType": "region"}]}], "1: InstanceTypeOfferings[0]: is for each"),
        ([TYPES, {"m6i.large": {"on-demand": -1}}], "1: [m6i.large].on-demand: -1 is not a number"),
        ([{"SpotPriceHistory": [{"InstanceType": "a", "AvailabilityZone": "b", "SpotPrice": "x"}]}], "0: SpotPriceH"),
    ],
)
def test_a_document_that_cannot_be_read_is_named(documents, text) -> None:
    with pytest.raises(FieldError) as error:
        _aws(*documents)
    assert str(error.value).startswith(text)


def test_a_requirement_on_a_label_of_some_instance_types_keeps_the_others_out() -> None:
    labelled_entry = {**instance_type("labelled", 2, "2Gi"), "labels": {"example.com/disk": "ssd"}}
    catalogue = read_catalogue([labelled_entry, instance_type("plain", 2, "2Gi")])
    assert "example.com/disk" in catalogue.well_known
