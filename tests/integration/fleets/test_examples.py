"""The examples of examples/fleets, run against sandboxes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio.to_thread
import pytest

from podium.estimator.server.app import Source
from podium.fleets.server.app import FleetApp
from podium.sandbox import Sandbox
from tests.integration.fleets.conftest import QUIET, FleetAsker, serving
from tests.manifests import Json, node
from tests.workload_manifests import template

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[3] / "examples" / "fleets"


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
async def fleet(anyio_backend: object, tmp_path: Path) -> AsyncIterator[tuple[FleetAsker, dict[str, Path]]]:
    """A fleet of two members: only the large one has four nodes."""
    async with Sandbox(kubelets=False) as small, Sandbox(kubelets=False) as large:
        kubeconfigs = {}
        for name, sandbox, count in (("small", small, 2), ("large", large, 4)):
            for number in range(count):
                sandbox.store.create(node(f"n{number}"))
            kubeconfigs[name] = sandbox.write_kubeconfig(tmp_path / name)
        sources = [Source(name, str(path)) for name, path in kubeconfigs.items()]
        async with serving(FleetApp(QUIET, sources)) as asker:
            await asker.wait_for(_job(), best="large")
            yield asker, kubeconfigs


def _job() -> Any:
    import yaml

    return yaml.safe_load((EXAMPLES / "job.yaml").read_text())


def _kueue_workload(name: str, count: int, **status: Any) -> Json:
    quota = {"type": "QuotaReserved", "status": "True"}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podSets": [{"name": "main", "count": count, "template": template("16")}]},
        "status": {"conditions": [quota], "admissionChecks": [{"name": "multikueue", "state": "Pending"}], **status},
    }


async def test_dispatcher_nominates_the_clusters_that_take_a_workload_whole(
    fleet: tuple[FleetAsker, dict[str, Path]],
) -> None:
    asker, _ = fleet
    dispatcher = _example("dispatcher")
    async with Sandbox(kubelets=False) as manager:
        for item in (
            _kueue_workload("wide", 4),
            _kueue_workload("narrow", 1),
            _kueue_workload("huge", 9),
            _kueue_workload("placed", 1, clusterName="small"),
            _kueue_workload("without-quota", 1, conditions=[]),
        ):
            manager.store.create(item)
        await anyio.to_thread.run_sync(dispatcher.dispatch, manager.url, asker.url)
        statuses = {item["metadata"]["name"]: item["status"] for item in manager.store.list("workloads.kueue.x-k8s.io")}
    nominations = {name: status.get("nominatedClusterNames") for name, status in statuses.items()}
    assert nominations == {
        "wide": ["large"],
        "narrow": ["large", "small"],
        "huge": None,
        "placed": None,
        "without-quota": None,
    }


async def test_launcher_applies_the_job_in_the_cluster_that_takes_it(
    fleet: tuple[FleetAsker, dict[str, Path]], tmp_path: Path
) -> None:
    asker, _ = fleet
    # What kubectl is given is noted, since the launcher does no more than call it.
    kubectl = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]
    arguments = [str(EXAMPLES / "job.yaml"), asker.url, *kubectl]
    result = await anyio.run_process([sys.executable, str(EXAMPLES / "launch.py"), *arguments])
    first, second = result.stdout.decode().splitlines()
    assert first.endswith("job.yaml: large")
    assert json.loads(second)[:3] == ["--context", "large", "apply"]
    job = _job()
    job["spec"]["parallelism"] = job["spec"]["completions"] = 9
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    arguments = [str(tmp_path / "job.yaml"), asker.url, *kubectl]
    with pytest.raises(subprocess.CalledProcessError) as error:
        await anyio.run_process([sys.executable, str(EXAMPLES / "launch.py"), *arguments])
    assert (
        "large: 0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules." in error.value.stderr.decode()
    )
