"""One workload of the benchmarks: kube-scheduler binds its pods, and podium's shadow compares every binding."""

from __future__ import annotations

import http
import http.client
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import settle
from benchmarks.etcd import Etcd
from benchmarks.measure import Progress, wait_bound
from benchmarks.pods import NAMESPACE
from benchmarks.schedulers import configuration
from benchmarks.workloads import Workload
from tests.control_plane.processes import ServerProcess, StartError, free_ports
from tests.control_plane.servers import ControlPlane

Json = dict[str, Any]

EXPLAINED = {"stale view", "another order", "sampling", "extenders"}
_POLL_S = 0.1
_AT_A_TIME = 8
_TIMEOUT_S = 60.0


def compare(
    plane: ControlPlane,
    workload: Workload,
    nodes: int,
    pods: int,
    *,
    percentage: int = 100,
    kubeconfig: Path | None = None,
    options: Iterable[str] = (),
) -> Json:
    """The shadow's report, in a cluster that has its nodes already.

    The pods are created while both look on, several at a time, so that the queue has some in it.

    Args:
        percentage: kube-scheduler's percentageOfNodesToScore.
        kubeconfig: for the shadow; by default the admin's.
        options: more of the shadow's command line.

    Raises:
        StartError, StallError: not all pods were bound, or compared.
    """
    with Etcd(plane.etcd_address) as etcd, workload.beside(plane, nodes) as fields:
        etcd.delete_all_but_nodes()
        etcd.put(workload.objects_before(nodes, pods))
        settle(plane)
        config = {**configuration(), "percentageOfNodesToScore": percentage, **fields}
        shadow = _Shadow(plane, config, kubeconfig or plane.kubeconfig(), options)
        try:
            with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound_pods:
                scheduler = plane.start_scheduler(config)
                try:
                    _create(plane, [workload.pod(number) for number in range(pods)])
                    wait_bound(bound_pods, scheduler.process, pods)
                finally:
                    scheduler.process.stop()
            shadow.wait_compared(pods)
        finally:
            shadow.process.stop()
        return shadow.report()


def unexplained_disagreements(report: Mapping[str, Any]) -> list[Json]:
    """The disagreements for which the report has no reason."""
    return [disagreement for disagreement in report["disagreements"] if disagreement["reason"] not in EXPLAINED]


def _create(plane: ControlPlane, pods: Sequence[Json]) -> None:
    classes: dict[int, Json] = {}
    for pod in pods:
        if value := pod["spec"]["priority"]:
            # The API server takes a priority only from a class.
            pod["spec"]["priorityClassName"] = name = f"priority-{value}"
            classes[value] = {"metadata": {"name": name}, "value": value}

    def post(path: str, items: Iterable[Json]) -> None:
        address = urlsplit(plane.url)
        connection = http.client.HTTPSConnection(address.netloc, context=plane.ssl_context(), timeout=_TIMEOUT_S)
        headers = {"Authorization": f"Bearer {plane.admin_token}", "Content-Type": "application/json"}
        for item in items:
            connection.request("POST", path, json.dumps(item), headers)
            answer = connection.getresponse()
            body = answer.read().decode()
            if answer.status not in (http.HTTPStatus.CREATED, http.HTTPStatus.CONFLICT):
                raise StartError(f"{item['metadata']['name']} could not be created: {body}")
        connection.close()

    post("/apis/scheduling.k8s.io/v1/priorityclasses", classes.values())
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        list(threads.map(partial(post, path), [pods[first::_AT_A_TIME] for first in range(_AT_A_TIME)]))


class _Shadow:
    """`podium shadow`, once all objects are known to it."""

    def __init__(self, plane: ControlPlane, config: Json, kubeconfig: Path, options: Iterable[str]) -> None:
        self._port, self._health_port = free_ports(2)
        file = plane.directory / f"shadow-{self._port}.yaml"
        file.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "podium", "shadow", "--kubeconfig", kubeconfig, "--config", file, "-o", "json"]
        metrics, health = (f"127.0.0.1:{port}" for port in (self._port, self._health_port))
        addresses = [
            "--metrics-bind-address",
            metrics,
            "--health-probe-bind-address",
            health,
            "--logging-format",
            "json",
        ]
        log = plane.directory / f"shadow-{self._port}.log"
        self.process = ServerProcess("podium shadow", [*command, *addresses, *options], log)
        try:
            self.process.wait_ready(self._is_synced)
        except StartError:
            self.process.stop()
            raise

    def wait_compared(self, count: int) -> None:
        """Until that many bindings were compared, and all disagreements looked at again. Raises: StartError."""
        progress = Progress()
        while (compared_count := self._comparison_count()) < count or not self._is_settled():
            if not self.process.is_running or progress.is_stalled(
                compared_count, self.process.cpu_s(), time.monotonic()
            ):
                raise StartError(f"{compared_count} of {count} bindings were compared:\n{self.process.log_tail()}")
            time.sleep(_POLL_S)

    def report(self) -> Json:
        """What it has printed at its end."""
        lines = map(json.loads, self.process.log.read_text().splitlines())
        reports: list[Json] = [line for line in lines if "verdicts" in line]
        if not reports:
            raise StartError(f"no report was printed:\n{self.process.log_tail()}")
        return reports[-1]

    def _is_synced(self) -> bool:
        return _get(self._health_port, "/readyz") == "ok"

    def _is_settled(self) -> bool:
        return "podium_shadow_unsettled_disagreements 0" in _get(self._port, "/metrics")

    def _comparison_count(self) -> int:
        page = _get(self._port, "/metrics")
        lines = [line for line in page.splitlines() if line.startswith("podium_shadow_pods_compared_total{")]
        return sum(int(float(line.rpartition(" ")[2])) for line in lines)


def _get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
