"""A configuration that changes while podium runs."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Json, configuration
from tests.e2e.mounted import IN_USE, Mounted
from tests.e2e.waiting import eventually
from tests.manifests import node, pod, pods

pytestmark = pytest.mark.anyio

REFUSED = "The changed configuration is refused, the previous one stays in use"
ZONE = "topology.kubernetes.io/zone"
BACKLOG = 3000


def only_zone(zone: str, **fields: Any) -> Json:
    """A configuration by which pods go to that zone only."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    args = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeAffinityArgs",
        "addedAffinity": affinity,
    }
    profile = {"schedulerName": "podium", "pluginConfig": [{"name": "NodeAffinity", "args": args}]}
    return configuration(profiles=[profile], **fields)


async def test_a_backlog_goes_on_by_the_changed_configuration_and_loses_no_pod(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    sandbox_cluster.put(
        *(node(f"{zone}-{index}", cpu="64", pods="500", labels={ZONE: zone}) for zone in "ab" for index in range(8))
    )
    mounted = Mounted(tmp_path / "volume", yaml.safe_dump(only_zone("a")))
    daemon = await start(sandbox_cluster, flags=("--config", str(mounted.path), "--reload"))
    sandbox_cluster.put(*pods(BACKLOG, cpu="1m"))

    async def has_begun() -> bool:
        return len(daemon.bound_pods()) > BACKLOG // 10

    await eventually(has_begun)
    mounted.put(yaml.safe_dump(only_zone("b")))
    await daemon.wait_log(IN_USE)
    placements = await sandbox_cluster.wait_bound([f"web-{index}" for index in range(BACKLOG)])
    await sandbox_cluster.create(pod("after"))
    assert (await sandbox_cluster.wait_bound(["after"]))["after"].startswith("b-")
    await daemon.wait_attempts("scheduled", BACKLOG + 1)
    assert len(placements) == BACKLOG
    assert sum(name.startswith("a-") for name in placements.values()) > BACKLOG // 10
    assert await daemon.attempts("error") == 0


async def test_an_unusable_configuration_changes_nothing_and_is_reported(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_NAME", "podium-0")
    monkeypatch.setenv("POD_NAMESPACE", "default")
    sandbox_cluster.put(*(node(f"{zone}-0", labels={ZONE: zone}) for zone in "ab"))
    mounted = Mounted(tmp_path / "volume", yaml.safe_dump(only_zone("a")))
    daemon = await start(sandbox_cluster, flags=("--config", str(mounted.path), "--reload"))
    await daemon.wait_metric(1, "podium_configuration_last_reload_successful")

    bad = {
        "profiles: [": "config.yaml",
        yaml.safe_dump(only_zone("b", podInitialBackoffSeconds=-1)): "podInitialBackoffSeconds",
        yaml.safe_dump(only_zone("b", podInitialBackoffSeconds=3)): (
            "podInitialBackoffSeconds: cannot be changed while podium runs, restart it"
        ),
        yaml.safe_dump(only_zone("b", leaderElection={"leaderElect": False, "resourceName": "other"})): (
            "leaderElection: cannot be changed while podium runs, restart it"
        ),
        yaml.safe_dump(configuration(profiles=[{"schedulerName": "other"}])): "profiles[*].schedulerName",
    }
    for number, (text, reason) in enumerate(bad.items(), 1):
        mounted.put(text)
        daemon.signal(signal.SIGHUP)
        assert reason in (await daemon.wait_log(REFUSED, number))["error"]
        assert reason in json.loads((await daemon.get("/configz"))[1])["refused"]
        await daemon.wait_metric(number, "podium_configuration_reloads_total", result="refused")
        await daemon.wait_metric(0, "podium_configuration_last_reload_successful")
        await sandbox_cluster.create(pod(f"web-{number}"))
        assert (await sandbox_cluster.wait_bound([f"web-{number}"]))[f"web-{number}"] == "a-0"

    async def read_events() -> list[Json]:
        return await sandbox_cluster.events("ConfigurationRefused")

    assert {event["regarding"]["name"] for event in await eventually(read_events)} == {"podium-0"}
    mounted.put(yaml.safe_dump(only_zone("b")))
    await daemon.wait_log(IN_USE)
    await daemon.wait_metric(1, "podium_configuration_last_reload_successful")
    configz = json.loads((await daemon.get("/configz"))[1])
    assert "refused" not in configz
    assert '"b"' in json.dumps(configz["componentconfig"])


PICKY = """
from podium.framework import FilterPlugin, unschedulable


class Picky(FilterPlugin):
    def filter(self, state, pod, node):
        return None if node.name in ALLOWED else unschedulable("not this one")
"""


async def test_a_changed_plugin_decides_and_what_the_old_one_rejected_is_tried_again(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    sandbox_cluster.put(node("there"))
    plugin = Mounted(tmp_path / "plugins", PICKY.replace("ALLOWED", "[]"), "picky.py")
    profile = {"schedulerName": "podium", "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}}}
    flags = ("--plugin", f"{plugin.path}:Picky", "--reload")
    daemon = await start(sandbox_cluster, configuration(profiles=[profile]), flags=flags)
    await sandbox_cluster.create(pod("web"))
    assert "not this one" in (await sandbox_cluster.wait_condition("web"))["message"]
    await daemon.wait_metric(1, "scheduler_pending_pods", queue="unschedulable")
    plugin.put(PICKY.replace("ALLOWED", "["))
    assert "picky.py" in (await daemon.wait_log(REFUSED))["error"]
    plugin.put(PICKY.replace("ALLOWED", "['there']"))
    assert await sandbox_cluster.wait_bound(["web"]) == {"web": "there"}
    assert (await daemon.wait_log(IN_USE))["profiles"] == ["podium"]


@pytest.mark.parametrize("does", ["import time\ntime.sleep(3600)", "while True:\n    pass"], ids=["sleeps", "spins"])
async def test_an_import_that_does_not_end_is_said_and_named_and_holds_up_neither_pods_nor_a_stop(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path, does: str
) -> None:
    sandbox_cluster.put(node("here"))
    plugin = Mounted(tmp_path / "plugins", PICKY.replace("ALLOWED", "['here']"), "picky.py")
    profile = {"schedulerName": "podium", "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}}}
    reference = f"{plugin.path}:Picky"
    daemon = await start(sandbox_cluster, configuration(profiles=[profile]), flags=("--plugin", reference, "--reload"))
    plugin.put(does)
    daemon.signal(signal.SIGHUP)
    entry = await daemon.wait_log("Reading the changed configuration takes long")
    assert entry["plugin"] == reference
    await sandbox_cluster.create(pod("meanwhile"))
    await sandbox_cluster.wait_bound(["meanwhile"])
    daemon.terminate()
    assert await daemon.wait_ended() == 0
    assert not daemon.log("Still running after the stop deadline: exiting")


async def test_an_import_that_does_not_end_is_given_up_and_the_next_one_counts(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    sandbox_cluster.put(node("here"))
    plugin = Mounted(tmp_path / "plugins", PICKY.replace("ALLOWED", "['here']"), "picky.py")
    profile = {"schedulerName": "podium", "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}}}
    reference = f"{plugin.path}:Picky"
    daemon = await start(sandbox_cluster, configuration(profiles=[profile]), flags=("--plugin", reference, "--reload"))
    plugin.put("while True:\n    pass")
    assert f"--plugin {reference}: its import did not end" in (await daemon.wait_log(REFUSED))["error"]
    plugin.put(PICKY.replace("ALLOWED", "['there']"))
    await daemon.wait_log(IN_USE)


SPINNING = """
    def __init__(self, args, handle):
        print("constructing", flush=True)
        while True:
            pass
"""
NEVER_CONSTRUCTED = {
    "its constructor sleeps": """
    def __init__(self, args, handle):
        import time
        time.sleep(3600)
""",
    "it never says its events": """
    def events_to_register(self):
        while True:
            pass
""",
}


@pytest.mark.parametrize("does", NEVER_CONSTRUCTED.values(), ids=NEVER_CONSTRUCTED)
async def test_a_plugin_that_is_never_constructed_is_said_and_named_and_given_up_while_pods_are_bound(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path, does: str
) -> None:
    sandbox_cluster.put(node("here"))
    plugin = Mounted(tmp_path / "plugins", PICKY.replace("ALLOWED", "['here']"), "picky.py")
    profile = {"schedulerName": "podium", "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}}}
    flags = ("--plugin", f"{plugin.path}:Picky", "--reload")
    daemon = await start(sandbox_cluster, configuration(profiles=[profile]), flags=flags)
    plugin.put(PICKY.replace("ALLOWED", "[]") + does)
    daemon.signal(signal.SIGHUP)
    assert (await daemon.wait_log("Constructing the changed plugins takes long"))["plugin"] == "Picky"
    await sandbox_cluster.create(pod("meanwhile"))
    await sandbox_cluster.wait_bound(["meanwhile"])
    assert "plugin Picky: its constructor did not end within 20 s" in (await daemon.wait_log(REFUSED))["error"]
    await sandbox_cluster.create(pod("afterwards"))
    await sandbox_cluster.wait_bound(["afterwards"])


async def test_a_stop_does_not_wait_for_a_constructor(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    plugin = Mounted(tmp_path / "plugins", PICKY.replace("ALLOWED", "[]"), "picky.py")
    profile = {"schedulerName": "podium", "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}}}
    flags = ("--plugin", f"{plugin.path}:Picky", "--reload")
    daemon = await start(sandbox_cluster, configuration(profiles=[profile]), flags=flags)
    plugin.put(PICKY.replace("ALLOWED", "[]") + SPINNING)
    await daemon.wait_log("Constructing the changed plugins takes long")
    daemon.terminate()
    assert await daemon.wait_ended() == 0
    assert not daemon.log("Still running after the stop deadline: exiting")


async def test_a_plugin_that_is_never_constructed_at_the_start_does_not_hold_up_a_stop(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    plugin = tmp_path / "picky.py"
    plugin.write_text(PICKY.replace("ALLOWED", "[]") + SPINNING)
    profile = {"schedulerName": "podium", "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}}}
    flags = ("--plugin", f"{plugin}:Picky")
    daemon = await start(sandbox_cluster, configuration(profiles=[profile]), flags=flags, ready=False)

    async def constructs() -> bool:
        return "constructing" in daemon.output()

    await eventually(constructs)
    daemon.terminate()
    assert await daemon.wait_ended() == 0


@pytest.mark.parametrize("does", ["import time\ntime.sleep(3600)", "while True:\n    pass"], ids=["sleeps", "spins"])
@pytest.mark.parametrize("ends", [signal.SIGTERM, None], ids=["stopped", "left alone"])
async def test_an_import_that_does_not_end_at_the_start_is_named_and_ends(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path, does: str, ends: signal.Signals | None
) -> None:
    plugin = tmp_path / "picky.py"
    plugin.write_text(does)
    daemon = await start(sandbox_cluster, flags=("--plugin", f"{plugin}:Picky"), ready=False)
    assert (await daemon.wait_log("Importing a plugin takes long"))["plugin"] == f"{plugin}:Picky"
    if ends is None:
        assert await daemon.wait_ended() == 1
        assert f"--plugin {plugin}:Picky: {plugin} fails to load" in daemon.output()
        assert "did not end within 20 s" in daemon.output()
    else:
        daemon.signal(ends)
        assert await daemon.wait_ended() == 0
