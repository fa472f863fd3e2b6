"""Fills and empties the API server that schedulers are measured on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from benchmarks.etcd import Etcd
from benchmarks.nodes import Json, node
from benchmarks.processor_time import wait_quiet
from benchmarks.workloads import Workload
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import ControlPlane

EVENTS: Final = "events"

# An idle API server spends about a fiftieth of a core.
_QUIET_SERVER_CPU_S = 0.05


@contextmanager
def cluster(
    binaries: Binaries,
    nodes: int,
    build: Callable[[int], Json] = node,
    environ: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
) -> Iterator[ControlPlane]:
    """A control plane with that many ready nodes and nothing else; its servers have `environ` in their environment.

    Args: `flags` are added to the arguments of kube-apiserver.
    """
    plane = ControlPlane.start(binaries, environ, flags)
    try:
        with Etcd(plane.etcd_address) as etcd:
            etcd.put(map(build, range(nodes)))
        yield plane
    finally:
        plane.stop()


def prepare(plane: ControlPlane, etcd: Etcd, workload: Workload, nodes: int, pods: int) -> None:
    """Leave nothing of the run before; then so many pods wait, in the cluster that their workload asks for."""
    etcd.delete_all_but_nodes()
    etcd.put(workload.objects_before(nodes, pods))
    etcd.put(map(workload.pod, range(pods)))
    settle(plane)


def settle(plane: ControlPlane) -> None:
    """Wait until the API server has read what was written behind its back."""
    assert plane.apiserver is not None
    wait_quiet(plane.apiserver, _QUIET_SERVER_CPU_S)
