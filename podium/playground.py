"""Answers the questions of the page in docs/playground: it loads a cluster from files and asks about one of its pods.

Owns the questions in the form in which the page asks them. Answers are the JSON values that `podium evaluate`,
`podium why --fix` and `podium capacity --explain` print for the same files. Runs in a browser: never does I/O, and
needs nothing but NumPy, msgspec and PyYAML.
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
from podium.engine.files import LocatedManifest
from podium.engine.object_files import Source, objects_of
from podium.framework.contract.status import PluginError, ScheduleError
from podium.insight.evaluate import Question
from podium.insight.loading import Loader, LoadResult, pod_named
from podium.insight.pod_answer import pod_answer
from podium.lib.bounded_read import read_all
from podium.lib.packed_files import unpacked_content
from podium.lib.printable import printable_values
from podium.objects.errors import FieldError
from podium.objects.resource_types import NODES
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB

BYTES_MAX: Final = 1 << 28
"""The size limit of an unpacked file: WebAssembly has at most 4 GiB, and an object takes several times its text."""

_CLASSES: Final = {**IN_TREE, **CONTRIB}
_NO_ANSWER: Final = (ClusterError, ConfigError, PluginError, ScheduleError, CacheError, FieldError)


class Playground:
    """Holds the page's cluster, at first an empty one. Methods return JSON: an answer, or `error` in its place."""

    def __init__(self) -> None:
        self._dump = Dump(())
        self._pods: list[LocatedManifest] = []

    def load(self, files: Mapping[str, Any], config: str = "") -> str:
        """Read another cluster: return the number of `nodes`, `broken` objects, and the `pods` to choose from.

        Pending pods come first, then workloads with a pod template, then bound pods. If the cluster cannot be read,
        the previous one is dropped all the same.

        Args:
            files: the content by name, as bytes or an object with their buffer; it may be compressed.
            config: a KubeSchedulerConfiguration; by default upstream's defaults.
        """
        self._pods = []
        return _answer_json(lambda: self._load({name: bytes(content) for name, content in files.items()}, config))

    def _load(self, files: Mapping[str, bytes], config: str) -> dict[str, Any]:
        self._dump = Dump.read(files, config)
        load_result = self._dump.load()
        self._pods = self._dump.pods()
        pods = [_pod_entry(document) for document in self._pods]
        return {"nodes": len(load_result.cluster.nodes), "broken": list(load_result.read_errors), "pods": pods}

    def placement(self, number: int) -> str:
        """Choose a node for the pod with that number in the list, as `podium evaluate -o json`."""
        return _answer_json(lambda: self._dump.placement(self._pods[number]))

    def why(self, number: int) -> str:
        """Explain why the pod is pending, or find its node, and suggest fixes, as `podium why --fix -o json`."""
        return _answer_json(lambda: self._dump.why(self._pods[number]))

    def capacity(self, number: int) -> str:
        """Count the further pods of this kind that fit, as `podium capacity --explain -o json`."""
        return _answer_json(lambda: self._dump.capacity(self._pods[number]))


@dataclass(frozen=True, slots=True)
class Dump:
    """The objects of a cluster as they were dumped, and the configuration that was given with them.

    Its methods raise the exceptions of `_NO_ANSWER`.
    """

    documents: Sequence[LocatedManifest]
    errors: Sequence[ManifestError] = ()
    config: KubeSchedulerConfiguration | None = None

    @classmethod
    def read(cls, files: Mapping[str, bytes], config: str) -> Self:
        """Read the objects in the files. Documents that are no objects are left out."""
        errors: list[ManifestError] = []
        read = read_configuration(config, "configuration", _CLASSES) if config.strip() else None
        sources = (Source(name, _unpack(name, content)) for name, content in files.items())
        documents = objects_of(sources, lambda _: None, errors.append)
        if not any(document.manifest["kind"] == NODES.kind for document in documents):
            problem = errors[0] if errors else "add what kubectl get nodes,pods -A -o json prints"
            raise ManifestError(f"no nodes: {problem}")
        return cls(documents, errors, read)

    def pods(self) -> list[LocatedManifest]:
        """Return the pods, and the workloads without an owner."""
        documents = [
            document
            for document in self.documents
            if template_of(document.manifest) is not None
            if document.manifest["kind"] == "Pod" or not _metadata(document).get("ownerReferences")
        ]
        return sorted(documents, key=_list_position)

    def placement(self, document: LocatedManifest) -> dict[str, Any]:
        """Answer as `podium evaluate` does, which takes no dump with broken objects."""
        if self.errors:
            raise self.errors[0]
        question = Question.read(self.documents, [document], document.location)
        config = self._config()
        answer = question.ask(config, _CLASSES, any_scheduler=self.config is None)
        return answer.to_json() | {"decidesAs": config.release.minor}

    def why(self, document: LocatedManifest) -> dict[str, Any]:
        """Answer as `podium why --fix` does; a workload's template makes a pod to ask about."""
        if document.manifest["kind"] == "Pod":
            load_result, metadata = self.load(), _metadata(document)
            pod = pod_named(load_result.cluster, str(metadata.get("name")), str(metadata.get("namespace") or "default"))
        else:
            asked_document, _ = asked_pod([document], document.location)
            load_result = self.load([asked_document])
            pod = load_result.read_pod(asked_document)
        source = "" if self.config is None else "configuration"
        return pod_answer(load_result, pod, source=source, fix=True).as_dict() | load_result.basis()

    def capacity(self, document: LocatedManifest) -> dict[str, Any]:
        """Answer as `podium capacity --explain` does."""
        asked_document, _ = asked_pod([document], document.location)
        load_result = self.load([asked_document])
        return (
            load_result.cluster.capacity(load_result.read_pod(asked_document)).as_dict(explain=True)
            | load_result.basis()
        )

    def load(self, asked_pods: Iterable[LocatedManifest] = ()) -> LoadResult:
        """Load the cluster anew for each question, as each command does: a cluster records what its answers lack."""
        texts = [str(error) for error in self.errors]
        return Loader(self._config(), _CLASSES, any_scheduler=self.config is None, read_errors=texts).read(
            self.documents, asked_pods
        )

    def _config(self) -> KubeSchedulerConfiguration:
        return self.config or default_configuration()


def _unpack(name: str, content: bytes) -> bytes:
    """Return the content of a file that may be compressed. Raises: ManifestError."""
    try:
        with unpacked_content(BufferedReader(cast("RawIOBase", BytesIO(content)))) as file:
            return read_all(file, BYTES_MAX)
    except (OSError, EOFError, zlib.error) as error:
        raise ManifestError(f"{name}: {getattr(error, 'strerror', None) or error}") from None


def _list_position(document: LocatedManifest) -> int:
    if document.manifest["kind"] != "Pod":
        return 1
    return 2 if _node_of(document) else 0


def _pod_entry(document: LocatedManifest) -> dict[str, str]:
    metadata = _metadata(document)
    name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
    return {
        "kind": str(document.manifest["kind"]),
        "name": name,
        "node": _node_of(document),
        "where": document.location,
    }


def _node_of(document: LocatedManifest) -> str:
    spec = document.manifest.get("spec")
    node = spec.get("nodeName") if isinstance(spec, dict) and document.manifest["kind"] == "Pod" else ""
    return node if isinstance(node, str) else ""


def _metadata(document: LocatedManifest) -> Mapping[str, Any]:
    metadata = document.manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _answer_json(ask: Callable[[], Mapping[str, Any]]) -> str:
    try:
        answer = ask()
    except _NO_ANSWER as error:
        answer = {"error": str(error)}
    # The page must not show reordered words, or lines that look like podium's own.
    return json.dumps(printable_values(answer))
