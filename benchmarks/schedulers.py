"""The two schedulers that are compared, started with the same configuration."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import yaml

from benchmarks.pods import SCHEDULER_NAME
from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.servers import ControlPlane, Scheduler

PODIUM: Final = "podium"
KUBE_SCHEDULER: Final = "kube-scheduler"
PEER: Final = "peer"
"""A scheduler of others, made of kube-scheduler's code and more plugins."""

PODIUM_COMMAND: Final = (sys.executable, "-m", "podium")
RUN_PODIUM: Final = (*PODIUM_COMMAND, "run")


def configuration(profile: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Upstream's defaults for one profile, without a leader election and with no limit of the client's own.

    Args: `profile` are more fields of the profile.
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": SCHEDULER_NAME, **profile}],
    }


class ApiServer(Protocol):
    """A control plane, or a light server, as far as podium needs it."""

    @property
    def directory(self) -> Path:
        """Where configurations and logs are written."""
        ...

    def kubeconfig(self) -> Path:
        """Write a kubeconfig for the admin and return its path."""
        ...


def start_podium(
    plane: ApiServer,
    fields: Mapping[str, Any] | None = None,
    flags: Sequence[str] = (),
    command: Sequence[str] = RUN_PODIUM,
) -> Scheduler:
    """Starts podium as its users do, and returns at once.

    Args:
        fields: what is added to the configuration.
        flags: what is added to the options of `podium run`.
        command: what to put before the options of `podium run`.
    """
    port = free_ports(1)[0]
    kubeconfig = plane.kubeconfig()
    config = plane.directory / f"podium-{port}.yaml"
    content = {**configuration(), **(fields or {})}
    content["clientConnection"]["kubeconfig"] = str(kubeconfig)
    config.write_text(yaml.safe_dump(content))
    options = ["--config", config, "--kubeconfig", kubeconfig, "--bind-address", "127.0.0.1", "--secure-port", port]
    process = ServerProcess(
        PODIUM, [*command, *map(str, options), *flags], plane.directory / f"podium-{port}.log", is_piped=True
    )
    return Scheduler(process, f"https://127.0.0.1:{port}")


def start_kube_scheduler(
    plane: ControlPlane, fields: Mapping[str, Any] | None = None, flags: Sequence[str] = ()
) -> Scheduler:
    """Starts the real kube-scheduler."""
    return plane.start_scheduler({**configuration(), **(fields or {})}, flags=flags)


def start_without_recorder(
    plane: ControlPlane, fields: Mapping[str, Any] | None = None, flags: Sequence[str] = ()
) -> Scheduler:
    """Starts podium without its flight recorder."""
    return start_podium(plane, fields, flags, (*RUN_PODIUM, "--recorder-memory", "0"))


def start_recording(
    plane: ControlPlane, fields: Mapping[str, Any] | None = None, flags: Sequence[str] = ()
) -> Scheduler:
    """Starts podium, which records into a directory of its own."""
    directory = tempfile.mkdtemp(prefix="recording-", dir=plane.directory)
    return start_podium(plane, fields, flags, (*RUN_PODIUM, "--record", directory))


Start: TypeAlias = Callable[[ControlPlane, Mapping[str, Any], Sequence[str]], Scheduler]
"""Starts a scheduler, with fields added to its configuration, and flags to its command line."""


def start_peer(binary: Path) -> Start:
    """Return what starts that scheduler, which takes kube-scheduler's arguments."""

    def start(plane: ControlPlane, fields: Mapping[str, Any], flags: Sequence[str]) -> Scheduler:
        return plane.start_scheduler({**configuration(), **fields}, flags=flags, binary=binary)

    return start


STARTERS: Final[Mapping[str, Start]] = {PODIUM: start_podium, KUBE_SCHEDULER: start_kube_scheduler}
