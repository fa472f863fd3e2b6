"""What the page in docs/playground asks: a cluster from files, and questions about one of its pods.

Owns the questions as a page puts them. Answers are the JSON values that `podium evaluate`, `podium why --fix` and
`podium capacity --explain` print for the same files. Runs in a browser: never does I/O, and needs nothing but NumPy,
msgspec and PyYAML.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, Final, Self, cast

from podium.cluster import CacheError
from podium.config import ConfigError, KubeSchedulerConfiguration, default_configuration
from podium.engine.configurations import read_configuration
from podium.engine.derivation.pods import asked_pod
from podium.engine.derivation.workload_kinds import template_of
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.files import Found
from podium.engine.object_files import Source, objects_of
from podium.evaluate import Question
from podium.framework.contract.status import PluginError, ScheduleError
from podium.insight.loading import Loader, LoadResult, pod_named
from podium.insight.pod_answer import pod_answer
from podium.lib.bounded_read import read_all
from podium.lib.packed_files import unpacked
from podium.lib.printable import printable_values
from podium.objects.errors import FieldError
from podium.objects.resource_types import NODES
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB

BYTES_MAX: Final = 1 << 28
"""Limit of an unpacked file: WebAssembly has 4 GiB of memory at most, and an object takes several times its text."""

_CLASSES: Final = {**IN_TREE, **CONTRIB}
_NO_ANSWER: Final = (ClusterError, ConfigError, PluginError, ScheduleError, CacheError, FieldError)


class Playground:
    """The cluster that is on the page, none at first. Speaks JSON: `error` replaces an answer that there is not."""

    def __init__(self) -> None:
        self._dump = Dump(())
        self._asked: list[Found] = []

    def load(self, files: Mapping[str, Any], config: str = "") -> str:
        """Read another cluster: the number of `nodes`, `broken` objects, and the `pods` that can be asked about.

        Pending pods come first, then workloads with a pod template, then bound pods. If the cluster cannot be read,
        the one of before is forgotten all the same.

        Args:
            files: the content by name, as bytes or an object with their buffer; it may be compressed.
            config: a KubeSchedulerConfiguration; by default upstream's defaults.
        """
        self._asked = []
        return _answered(lambda: self._load({name: bytes(content) for name, content in files.items()}, config))

    def _load(self, files: Mapping[str, bytes], config: str) -> dict[str, Any]:
        self._dump = Dump.read(files, config)
        loaded = self._dump.loaded()
        self._asked = self._dump.asked()
        pods = [_listed(each) for each in self._asked]
        return {"nodes": len(loaded.cluster.nodes), "broken": list(loaded.read_errors), "pods": pods}

    def placement(self, number: int) -> str:
        """Where the pod with that number in the list would go, as `podium evaluate -o json`."""
        return _answered(lambda: self._dump.placement(self._asked[number]))

    def why(self, number: int) -> str:
        """Why the pod is pending, or where it is, and what would help, as `podium why --fix -o json`."""
        return _answered(lambda: self._dump.why(self._asked[number]))

    def capacity(self, number: int) -> str:
        """How many more of the pod fit, as `podium capacity --explain -o json`."""
        return _answered(lambda: self._dump.capacity(self._asked[number]))


@dataclass(frozen=True, slots=True)
class Dump:
    """The objects of a cluster as they were dumped, and the configuration that was given with them.

    Its methods raise what `_NO_ANSWER` names.
    """

    found: Sequence[Found]
    broken: Sequence[ManifestError] = ()
    config: KubeSchedulerConfiguration | None = None

    @classmethod
    def read(cls, files: Mapping[str, bytes], config: str) -> Self:
        """The objects in the files. What is no object is left out."""
        broken: list[ManifestError] = []
        read = read_configuration(config, "configuration", _CLASSES) if config.strip() else None
        sources = (Source(name, _unpacked(name, content)) for name, content in files.items())
        found = objects_of(sources, lambda _: None, broken.append)
        if not any(each.manifest["kind"] == NODES.kind for each in found):
            what = broken[0] if broken else "add what kubectl get nodes,pods -A -o json prints"
            raise ManifestError(f"no nodes: {what}")
        return cls(found, broken, read)

    def asked(self) -> list[Found]:
        """The pods, and the workloads that nothing else owns."""
        found = [
            each
            for each in self.found
            if template_of(each.manifest) is not None
            if each.manifest["kind"] == "Pod" or not _metadata(each).get("ownerReferences")
        ]
        return sorted(found, key=_urgency)

    def placement(self, found: Found) -> dict[str, Any]:
        """The answer of `podium evaluate`, which takes no dump with broken objects."""
        if self.broken:
            raise self.broken[0]
        question = Question.read(self.found, [found], found.where)
        return question.ask(self._config(), _CLASSES, any_scheduler=self.config is None).to_json()

    def why(self, found: Found) -> dict[str, Any]:
        """The answer of `podium why --fix`, and of the like for a pod made from the template of a workload."""
        if found.manifest["kind"] == "Pod":
            loaded, metadata = self.loaded(), _metadata(found)
            pod = pod_named(loaded.cluster, str(metadata.get("name")), str(metadata.get("namespace") or "default"))
        else:
            asked, _ = asked_pod([found], found.where)
            loaded = self.loaded([asked])
            pod = loaded.read_pod(asked)
        source = "" if self.config is None else "configuration"
        return pod_answer(loaded, pod, source=source, fix=True).as_dict() | loaded.unknown()

    def capacity(self, found: Found) -> dict[str, Any]:
        """The answer of `podium capacity --explain`."""
        asked, _ = asked_pod([found], found.where)
        loaded = self.loaded([asked])
        return loaded.cluster.capacity(loaded.read_pod(asked)).as_dict(explain=True) | loaded.unknown()

    def loaded(self, asked: Iterable[Found] = ()) -> LoadResult:
        """The cluster, anew for each question, as for each command: a cluster knows what its answers have missed."""
        broken = [str(each) for each in self.broken]
        return Loader(self._config(), _CLASSES, any_scheduler=self.config is None, read_errors=broken).read(
            self.found, asked
        )

    def _config(self) -> KubeSchedulerConfiguration:
        return self.config or default_configuration()


def _unpacked(name: str, content: bytes) -> bytes:
    """The content of a file that may be compressed. Raises: ManifestError."""
    try:
        with unpacked(BufferedReader(cast("RawIOBase", BytesIO(content)))) as file:
            return read_all(file, BYTES_MAX)
    except (OSError, EOFError, zlib.error) as error:
        raise ManifestError(f"{name}: {getattr(error, 'strerror', None) or error}") from None


def _urgency(found: Found) -> int:
    if found.manifest["kind"] != "Pod":
        return 1
    return 2 if _node_of(found) else 0


def _listed(found: Found) -> dict[str, str]:
    metadata = _metadata(found)
    name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
    return {"kind": str(found.manifest["kind"]), "name": name, "node": _node_of(found), "where": found.where}


def _node_of(found: Found) -> str:
    spec = found.manifest.get("spec")
    node = spec.get("nodeName") if isinstance(spec, dict) and found.manifest["kind"] == "Pod" else ""
    return node if isinstance(node, str) else ""


def _metadata(found: Found) -> Mapping[str, Any]:
    metadata = found.manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _answered(ask: Callable[[], Mapping[str, Any]]) -> str:
    try:
        answer = ask()
    except _NO_ANSWER as error:
        answer = {"error": str(error)}
    # Of a page, on which nobody may show words in another order, or lines that are not podium's.
    return json.dumps(printable_values(answer))
