"""The two schedulers that are compared, started with the same configuration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import yaml

from benchmarks.pods import SCHEDULER_NAME
from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.servers import ControlPlane

PODIUM: Final = "podium"
KUBE_SCHEDULER: Final = "kube-scheduler"

_RUN_PODIUM: Final = (sys.executable, "-m", "podium", "run")


def configuration() -> dict[str, Any]:
    """Upstream's defaults for one profile, without a leader election and with no limit of the client's own."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": SCHEDULER_NAME}],
    }


def start_podium(plane: ControlPlane, command: Sequence[str] = _RUN_PODIUM) -> ServerProcess:
    """Starts podium as its users do, and returns at once.

    Args:
        command: what to put before the options of `podium run`.
    """
    port = free_ports(1)[0]
    kubeconfig = plane.kubeconfig()
    config = plane.directory / f"podium-{port}.yaml"
    content = configuration()
    content["clientConnection"]["kubeconfig"] = str(kubeconfig)
    config.write_text(yaml.safe_dump(content))
    options = ["--config", config, "--kubeconfig", kubeconfig, "--bind-address", "127.0.0.1", "--secure-port", port]
    return ServerProcess(PODIUM, [*command, *map(str, options)], plane.directory / f"podium-{port}.log")


def start_kube_scheduler(plane: ControlPlane) -> ServerProcess:
    """Starts the real kube-scheduler."""
    return plane.start_scheduler(configuration()).process


STARTERS: Final[Mapping[str, Callable[[ControlPlane], ServerProcess]]] = {
    PODIUM: start_podium,
    KUBE_SCHEDULER: start_kube_scheduler,
}
