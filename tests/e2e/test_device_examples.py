"""The manifests of examples/devices, applied with kubectl to a sandbox with devices, and scheduled by podium."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podium.sandbox import Sandbox
from podium.sandbox.device_drivers import DeviceKind
from podium.sandbox.fill import varied_nodes
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually
from tests.integration.sandbox.kubectl import Kubectl, rows

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]

EXAMPLES = Path(__file__).parents[2] / "examples/devices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = {
    "claim-per-pod": 3,
    "shared-claim": 2,
    "prioritized-list": 1,
    "same-pcie-root": 1,
    "extended-resource": 1,
}
"""How many pods each example has."""


@pytest.fixture
async def with_devices(anyio_backend: object, tmp_path: Path) -> AsyncIterator[SandboxCluster]:
    sandbox = Sandbox(controllers=True, kubelet_delay_s=0.01, devices=[DeviceKind("gpu", 4)])
    async with sandbox, Client(sandbox.url) as admin:
        for node in varied_nodes(3):
            sandbox.store.create(node)
        yield SandboxCluster(admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"), sandbox)


async def test_the_examples_get_their_devices_and_give_them_back(
    with_devices: SandboxCluster, start: StartDaemon, control_plane_binaries: Binaries, tmp_path: Path
) -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == PODS.keys()
    store = with_devices.sandbox.store
    kubectl = Kubectl(control_plane_binaries["kubectl"], tmp_path)
    await start(with_devices)
    await kubectl("apply", "-f", str(EXAMPLES))

    async def running() -> list[Json]:
        pods = [pod for pod in store.list("pods") if pod["status"]["phase"] == "Running"]
        return pods if len(pods) == sum(PODS.values()) else []

    pods = {pod["metadata"]["name"]: pod for pod in await eventually(running)}
    claims = {claim["metadata"]["name"]: claim for claim in store.list("resourceclaims")}
    devices = [device for claim in claims.values() for device in devices_of(claim)]
    assert len(devices) == len(set(devices)) == 3 + 1 + 1 + 2 + 2
    assert len({pod["spec"]["nodeName"] for name, pod in pods.items() if name.startswith("viewers")}) == 1
    [close] = [claim for name, claim in claims.items() if name.startswith("close-together-")]
    assert {int(device[-1]) // 2 for _, device in devices_of(close)} in ({0}, {1})
    [best] = [claim for name, claim in claims.items() if name.startswith("flexible-")]
    assert [result["request"] for result in best["status"]["allocation"]["devices"]["results"]] == ["gpu/latest"]
    printed = rows(await kubectl("get", "resourceclaims"))
    assert {row[1] for row in printed[1:]} == {"allocated,reserved"}
    assert "unchanged" in await kubectl("apply", "-f", str(EXAMPLES / "shared-claim.yaml"))

    await kubectl("delete", "-f", str(EXAMPLES), "--wait=false")

    async def cleaned_up() -> bool:
        return not store.list("pods") and not store.list("resourceclaims")

    await eventually(cleaned_up)


def devices_of(claim: Json) -> list[tuple[str, str]]:
    """Pool and device of each device that the claim holds."""
    return [(result["pool"], result["device"]) for result in claim["status"]["allocation"]["devices"]["results"]]
