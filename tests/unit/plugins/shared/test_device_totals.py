from __future__ import annotations

import msgspec
import numpy as np
import pytest

from podium.config.args import ResourceSpec
from podium.objects.devices import DeviceClass
from podium.plugins.shared.cluster_devices import ClusterDevices
from podium.plugins.shared.device_totals import DeviceTotals
from tests.builders import node, snapshot_of
from tests.unit.plugins.dynamic_resources.claims import CLASS, GPU, DeviceHandle, a_claim, a_slice, allocation

NODES = snapshot_of(node("n1"), node("n2"))
DEVICES = (
    a_claim("a", allocation=allocation("g0")),
    a_slice("n1", "g0", {"name": "g1", "allowMultipleAllocations": True}),
)


def totals(*classes: DeviceClass) -> DeviceTotals:
    device_totals = DeviceTotals.of_resources(
        ClusterDevices(DeviceHandle(*DEVICES, classes=classes)), [ResourceSpec(GPU, 1)]
    )
    assert device_totals is not None
    return device_totals


def selecting(expression: str) -> DeviceClass:
    spec = {"extendedResourceName": GPU, "selectors": [{"cel": {"expression": expression}}]}
    return msgspec.convert({"metadata": {"name": "gpu"}, "spec": spec}, DeviceClass)


def test_resources_that_are_never_devices_have_no_totals() -> None:
    assert DeviceTotals.of_resources(ClusterDevices(DeviceHandle()), [ResourceSpec("cpu", 1)]) is None


def test_only_requested_resources_that_a_class_provides_count() -> None:
    assert totals(CLASS).classes({GPU: 1}) == {GPU: CLASS}
    assert totals(CLASS).classes({GPU: 0}) == totals().classes({GPU: 1}) == {}


@pytest.mark.parametrize(
    ("expression", "totals_expected"),
    [
        ("true", (2, 1)),
        ("device.allowMultipleAllocations", (0, 0)),
        ("device.attributes['x'].y == 1", (0, 0)),
        ("device.", (0, 0)),
    ],
)
def test_devices_that_the_class_selects_are_counted(expression: str, totals_expected: tuple[int, int]) -> None:
    gpu_class = selecting(expression)
    row = NODES.row_of["n1"]
    assert totals(gpu_class).of(NODES.node(row), gpu_class) == totals_expected


def test_rows_that_offer_none_of_the_resource_get_the_devices() -> None:
    rows = NODES.order
    allocatable, in_use = np.array([0, 7]), np.array([0, 3])
    totals(CLASS).add_to(allocatable, in_use, CLASS, NODES, rows)
    assert (allocatable.tolist(), in_use.tolist()) == ([2, 7], [1, 3])
