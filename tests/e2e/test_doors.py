"""Who gets in, on the real API server: by token, by rights, by client certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shipped import shipped_token
from tests.e2e.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OPEN = ("/healthz", "/livez", "/readyz")
GUARDED = ("/metrics", "/configz", "/debug/queue", "/readyz/sched-handler-sync", "/nowhere")
READER: Json = {
    "metadata": {"name": "scrape"},
    "rules": [{"nonResourceURLs": ["/metrics", "/configz", "/readyz/*"], "verbs": ["get"]}],
}


async def account_token(cluster: RealCluster, name: str) -> str:
    await cluster.admin.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    return await cluster.admin.service_account_token("default", name)


async def grant(cluster: RealCluster, name: str) -> None:
    await cluster.admin.create(f"{RBAC}/clusterroles", READER)
    binding = {
        "metadata": {"name": "scrape"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scrape"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await cluster.admin.create(f"{RBAC}/clusterrolebindings", binding)


async def test_guarded_endpoints_answer_those_with_rights_only(
    real_cluster: RealCluster, control_plane_binaries: Binaries, start: StartDaemon, tmp_path: Path
) -> None:
    # podium has the shipped roles and nothing else.
    token = await shipped_token(real_cluster, control_plane_binaries)
    daemon = await start(real_cluster, kubeconfig=real_cluster.plane.kubeconfig(token, tmp_path / "kubeconfig"))
    lacking, granted = await account_token(real_cluster, "lacking"), await account_token(real_cluster, "granted")
    await grant(real_cluster, "granted")

    async def ask(path: str, token: str | None) -> int:
        return (await daemon.get(path, token=token))[0]

    for path in OPEN:
        assert await ask(path, None) == 200
    for path in GUARDED:
        assert await ask(path, None) == 403
        assert await ask(path, "nonsense") == 401
        assert await ask(path, lacking) == 403

    async def may_read() -> bool:
        return await ask("/metrics", granted) == 200

    await eventually(may_read)
    assert await ask("/configz", granted) == 200
    assert await ask("/readyz/sched-handler-sync", granted) == 200
    assert await ask("/debug/queue", granted) == 403
    assert (await daemon.get("/metrics", token=granted, method="DELETE"))[0] == 403
    assert await ask("/nowhere", real_cluster.plane.admin_token) == 404
    output = daemon.output()
    for secret in (token, lacking, granted, real_cluster.plane.admin_token, "nonsense"):
        assert secret not in output
        assert secret not in (await daemon.get("/configz", token=granted))[1]
    assert daemon.complaints() == []
