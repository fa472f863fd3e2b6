"""Extenders have their say, over HTTP, and everything else goes on while they think."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.cluster import Cluster, Json
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.objects import nodes, pod
from tests.extender_server import ExtenderServer, let_through, names, scores

pytestmark = pytest.mark.anyio


def asking(server: ExtenderServer, **fields: Any) -> Json:
    return configuration(extenders=[{"urlPrefix": server.url, **fields}])


async def test_pods_go_where_the_extender_lets_them_and_likes_them(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(4))
    filtering = let_through("node-1", "node-2", failed={"node-0": "no licence"})
    async with ExtenderServer(filter=filtering, prioritize=scores(node_2=10)) as server:
        config = asking(server, filterVerb="filter", prioritizeVerb="prioritize", weight=5)
        await start(cluster, config)
        await cluster.create(pod("web", cpu="100m"))
        assert await cluster.wait_bound(["web"]) == {"web": "node-2"}
    [filtered], [scored] = server.bodies("filter"), server.bodies("prioritize")
    assert sorted(names(filtered)) == ["node-0", "node-1", "node-2", "node-3"]
    assert names(scored) == ["node-1", "node-2"]
