"""A plugin whose CustomResourceDefinition is not installed: podium says so once, and schedules."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import pytest
import yaml

from tests import warm_podium
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.manifests import nodes, pod

pytestmark = pytest.mark.anyio

PLUGIN = '''
from podium.framework import FilterPlugin, custom_resource, raw_objects, unschedulable

WIDGETS = custom_resource("policy.example.com/v1", "widgets", raw_objects("Widget"))


class NeedsWidgets(FilterPlugin):
    """Rejects pods with the label `strict` while the definition of widgets is missing."""

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.widgets = handle.lister(WIDGETS)

    def filter(self, state, pod, node):
        if "strict" in pod.metadata.labels and self.handle.is_missing(WIDGETS):
            return unschedulable("widgets are not installed")
        return unschedulable("node(s) had a widget") if list(self.widgets.list()) else None
'''


async def test_a_definition_that_is_missing_is_said_in_the_log_a_metric_and_by_doctor(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    plugin = tmp_path / "widgets.py"
    plugin.write_text(PLUGIN)
    profile = {
        "schedulerName": "podium",
        "plugins": {"multiPoint": {"enabled": [{"name": "NeedsWidgets"}]}},
    }
    config = configuration(profiles=[profile])
    strict = pod("strict")
    strict["metadata"]["labels"] = {"strict": ""}
    await sandbox_cluster.create(*nodes(1), pod("web"), strict)
    reference = f"{plugin}:NeedsWidgets"
    daemon = await start(sandbox_cluster, config, flags=("--plugin", reference))
    assert (await sandbox_cluster.wait_bound(["web"])).keys() == {"web"}
    await sandbox_cluster.wait_events("FailedScheduling", 1)
    notes = {event["note"] for event in await sandbox_cluster.events("FailedScheduling")}
    assert all("1 widgets are not installed." in note for note in notes)

    lines = [line for line in daemon.log() if "does not serve a resource" in str(line)]
    assert len(lines) == 1
    assert "widgets.policy.example.com" in str(lines[0])
    assert await daemon.metric("podium_resource_missing", resource="widgets") == 1

    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    command = ["doctor", "--kubeconfig", str(sandbox_cluster.kubeconfig), "--config", str(file), "--plugin", reference]
    result = await anyio.to_thread.run_sync(warm_podium.run, command)
    assert "does not serve widgets at /apis/policy.example.com/v1, which NeedsWidgets reads" in result.stdout
    assert "install its CustomResourceDefinition" in result.stdout
