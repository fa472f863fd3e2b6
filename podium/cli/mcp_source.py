"""The cluster about which a client of `podium mcp` asks: read from files or listed, and read again after a while.

Nothing is ever written: files are only read, and the session with an API server refuses writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.config import KubeSchedulerConfiguration
from podium.engine.files import LocatedManifest
from podium.engine.object_files import objects_of, read_file, sources_of
from podium.framework.contract.plugin import Plugin
from podium.insight.loading import Loader, LoadResult
from podium.lib.system_clock import SystemClock
from podium.library.planned_objects import Originals, original_key
from podium.library.plans import ONLY_PLANNED
from podium.objects.resource_types import WITHOUT_GATES

_ANY_POD: Final = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}, "spec": {}}


@dataclass(frozen=True, slots=True)
class ReadCluster:
    """A cluster as it was read at one time.

    Attributes:
        at_s: the time of the objects, in seconds since the epoch.
        originals: the objects of which plans read more than a scheduler does.
    """

    load_result: LoadResult
    at_s: float
    originals: Originals


@dataclass
class ClusterSource:
    """Reads one cluster.

    Args:
        files: the names of files and directories; without any, a running cluster is listed.
        live: the kubeconfig and its context.
        any_scheduler: whether the first profile schedules every pod.
        refresh_s: how long a cluster that was read is asked about.
    """

    files: Sequence[str]
    live: tuple[str | None, str | None]
    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    any_scheduler: bool = False
    refresh_s: float = 0.0
    _clock: SystemClock = field(default_factory=SystemClock)
    _current: tuple[float, ReadCluster] | None = None

    def cluster(self) -> ReadCluster:
        """Return the cluster, read again if it is too old.

        Raises:
            ClusterError: it cannot be read.
            OSError: a file cannot be read.
        """
        monotonic_s = self._clock.monotonic()
        if self._current is None or monotonic_s - self._current[0] >= self.refresh_s:
            self._current = monotonic_s, self._read()
        return self._current[1]

    def _read(self) -> ReadCluster:
        now_s = self._clock.now()
        loader = Loader(
            self.config,
            self.classes,
            () if self.files else WITHOUT_GATES,
            any_scheduler=self.any_scheduler,
            now_s=now_s,
        )
        documents = self._documents(loader)
        # A question may bring a pod that names no scheduler.
        load_result = loader.read(documents, [LocatedManifest(_ANY_POD, "any pod")] if self.any_scheduler else [])
        originals = {key: document for document in documents if (key := original_key(document)) is not None}
        return ReadCluster(load_result, load_result.time_s(is_dump=bool(self.files)), originals)

    def _documents(self, loader: Loader) -> list[LocatedManifest]:
        if self.files:
            return objects_of(sources_of(self.files, read_file, _ignore), _ignore, loader.report)
        from podium.insight.running_cluster import list_objects_blocking

        manifests, _ = list_objects_blocking(*self.live, ONLY_PLANNED)
        return [LocatedManifest(manifest, "the cluster") for manifest in manifests]


def _ignore(_: str) -> None:
    """Take no note of what is left out of a directory, which every question would repeat."""
