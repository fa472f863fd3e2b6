"""A light API server: what a scheduler does when nothing else is the limit.

It is a Go program beside this file, built once from Go's own library, and keeps no rules but two: a pod is bound once,
and an update is refused if it was made from an older version. Events are counted and not kept. Its lists and watches
are those of a real API server, and so is TLS.
"""

from __future__ import annotations

import http.client
import itertools
import os
import shutil
import ssl
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from benchmarks.etcd import as_stored
from benchmarks.nodes import Json
from podium.objects.resource_types import ALL, CUSTOM
from tests.control_plane.builder import Recipe, build_once
from tests.control_plane.credentials import ADMIN_TOKEN, write_key_files, write_kubeconfig
from tests.control_plane.locate import cache_root
from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.progress import Progress

NAME: Final = "light"
_MODULE: Final = Path(__file__).parent / "go"
_FLAGS: Final = ("-buildvcs=false", "-trimpath", "-ldflags=-s -w")
_MORE_KINDS: Final = (
    ("/apis/coordination.k8s.io/v1/leases", "Lease", "coordination.k8s.io/v1"),
    ("/apis/events.k8s.io/v1/events", "Event", "events.k8s.io/v1"),
    ("/api/v1/configmaps", "ConfigMap", "v1"),
)
_TIMEOUT_S: Final = 120.0


class Statistics(Struct):
    """What the server has counted since its start.

    Attributes:
        counts: requests by what they asked for: bindings, conflicts among them, events, patches, updates, creations,
            deletions.
        waits_s: for each binding the time since the pod's creation, in the order of bindings.
    """

    counts: dict[str, int]
    waits_s: list[float] | None = None


class LightServerError(Exception):
    """The server has refused what the benchmark asked of it."""


def recipe() -> Recipe:
    """Return what the program is built from."""
    return Recipe.of(NAME, _MODULE, _FLAGS, {NAME: f"podium.invalid/benchmarks/{NAME}"}, sorted(_MODULE.glob("*/*.go")))


def obtain(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of the program, built when it is not in the cache, in seconds. Raises: BuildError."""
    return build_once(recipe(), cache_root(environ), progress) / NAME


class LightServer:
    """The server in a process of its own, until the end of the `with` statement.

    Args:
        binary: as `obtain` returns it.
        environ: added to the environment that it would have anyway, such as `GOMAXPROCS`.

    Raises:
        StartError: it was not ready in time.
    """

    def __init__(self, binary: Path, environ: Mapping[str, str] | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="podium-light-server-"))
        self._files = write_key_files(self.directory)
        self._numbers = itertools.count()
        kinds = [{"path": path, "kind": kind, "apiVersion": version} for path, kind, version in _kinds()]
        kinds_path = self.directory / "kinds.json"
        kinds_path.write_bytes(msgspec.json.encode(kinds))
        self._address = f"127.0.0.1:{free_ports(1)[0]}"
        flags = [f"--address={self._address}", f"--kinds={kinds_path}"]
        flags += [f"--certificate={self._files.certificate}", f"--key={self._files.key}"]
        # Its garbage is not what is measured.
        environ = {"GOGC": "400", **(environ or {})}
        self.process = ServerProcess(NAME, [binary, *flags], self.directory / "light.log", environ)
        try:
            self.process.wait_ready(self._is_ready)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"https://{self._address}"

    def kubeconfig(self) -> Path:
        """Write a kubeconfig and return its path."""
        path = self.directory / f"kubeconfig-{next(self._numbers)}.yaml"
        return write_kubeconfig(path, self.url, self._files.authority, ADMIN_TOKEN)

    def create(self, manifests: Iterable[Json]) -> None:
        """Create the objects at once: no other write comes in between. Raises: LightServerError."""
        lines = b"\n".join(msgspec.json.encode(as_stored(manifest)) for manifest in manifests)
        self._ask("POST", "/light/objects", lines)

    def objects(self, path: str) -> list[dict[str, Any]]:
        """Return all objects of a kind, by the path of its list, such as `/api/v1/pods`. Raises: LightServerError."""
        items: list[dict[str, Any]] = msgspec.json.decode(self._ask("GET", path))["items"]
        return items

    def statistics(self) -> Statistics:
        """Return what it has counted."""
        return msgspec.json.decode(self._ask("GET", "/light/statistics"), type=Statistics)

    def refuse_writes(self, code: int) -> None:
        """Answer writes with that status from now on, or carry them out again for 0."""
        self._ask("POST", "/light/refusal", str(code).encode())

    def stop(self) -> None:
        """End the process and remove its files."""
        self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        context = ssl.create_default_context(cafile=self._files.authority)
        connection = http.client.HTTPSConnection(self._address, timeout=_TIMEOUT_S, context=context)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise LightServerError(f"{method} {path}: {content.decode(errors='replace')}")
        return content

    def _is_ready(self) -> bool:
        try:
            return self._ask("GET", "/readyz") == b"ok"
        except (OSError, http.client.HTTPException):
            return False


def _kinds() -> Iterable[tuple[str, str, str]]:
    """Yield the path, the kind and the version of all that is served: what podium reads, and what it writes."""
    for resource in ALL:
        if not resource.is_local and resource.gate != CUSTOM:
            yield resource.path, resource.kind, resource.api_version
    yield from _MORE_KINDS
