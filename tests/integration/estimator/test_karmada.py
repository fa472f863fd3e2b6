"""Members' estimator servers are found by their Services in Karmada's API server, which a sandbox stands for."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from podium.estimator.client.karmada import KarmadaApi, ServiceNames, list_clusters, look_up_servers
from podium.estimator.errors import EstimateError
from podium.sandbox import Sandbox
from tests.builders import node
from tests.integration.estimator.servers import estimator
from tests.patience import PATIENCE_S
from tests.unit.cli.commands import write_objects
from tests.unit.cli.test_divide import DEPLOYMENT, POLICY, cluster_object
from tests.unit.estimator.members import member

pytestmark = pytest.mark.anyio

NAMES = ServiceNames("est", "fleet", 7000)


@pytest.fixture
async def karmada(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        sandbox.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}})
        yield sandbox


def _service(cluster: str, target_port: int | str, kind: str = "ExternalName") -> dict[str, Any]:
    ports = [{"port": 7000, "targetPort": target_port}]
    spec = {"type": kind, "externalName": "localhost" if kind == "ExternalName" else None, "ports": ports}
    metadata = {"namespace": "fleet", "name": f"est-{cluster}"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


async def test_each_cluster_has_the_addresses_of_its_service(karmada: Sandbox, tmp_path: Path) -> None:
    for service in (_service("a", 7001), _service("b", 7002, "ClusterIP"), _service("c", "grpc")):
        karmada.store.create(service)
    api = KarmadaApi(str(karmada.write_kubeconfig(tmp_path / "karmada")))
    servers = await look_up_servers(api, ["a", "b", "c", "d"], NAMES)
    assert servers.targets == {
        "a": ["localhost:7001"],
        "d": ["est-d.fleet.svc.cluster.local:7000", "est-d.fleet.svc:7000"],
    }
    assert servers.errors == {
        "b": 'unsupported service type "ClusterIP"',
        "c": "ExternalName service type should have int target port, current target port: {1 0 grpc}",
    }


async def test_api_server_that_is_away_leaves_every_cluster_without_a_server(karmada: Sandbox, tmp_path: Path) -> None:
    kubeconfig = karmada.write_kubeconfig(tmp_path / "karmada")
    away = tmp_path / "away"
    away.write_text(kubeconfig.read_text().replace(karmada.url, "http://127.0.0.1:1"))
    servers = await look_up_servers(KarmadaApi(str(away)), ["a", "b"], NAMES)
    assert not servers.targets
    assert servers.errors.keys() == {"a", "b"}
    with pytest.raises(EstimateError, match="nothing listens at its address"):
        await list_clusters(KarmadaApi(str(away)))


async def test_command_divides_over_the_clusters_of_karmada(karmada: Sandbox, tmp_path: Path) -> None:
    for name in ("a", "b"):
        karmada.store.create(cluster_object(name, "99"))
    async with estimator({"a": member(node("n", cpu="2")), "b": member(node("n", cpu="3"))}) as address:
        port = int(address.rpartition(":")[2])
        for name in ("a", "b"):
            karmada.store.create(_service(name, port))
        command = [sys.executable, "-m", "podium", "divide", "-o", "json", "--enable-scheduler-estimator"]
        command += ["-f", str(write_objects(tmp_path / "web.yaml", DEPLOYMENT, POLICY))]
        command += ["--karmada-kubeconfig", str(karmada.write_kubeconfig(tmp_path / "karmada"))]
        command += ["--scheduler-estimator-service-prefix=est", "--scheduler-estimator-service-namespace=fleet"]
        command += ["--scheduler-estimator-port=7000", f"--scheduler-estimator-timeout={PATIENCE_S:g}s"]
        result = await anyio.run_process(command)
    answer = json.loads(result.stdout)
    assert answer["estimated"]["scheduler-estimator"] == {"a": 2, "b": 3}
    assert result.stderr == b""
