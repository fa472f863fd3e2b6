"""A real etcd and kube-apiserver on loopback, for as long as a test session lasts.

Nothing here survives `stop`: data, keys and logs live in one temporary directory. There is no kubelet, and no
controller unless a test starts some: pods run when a test says so by patching their status, and namespaces are emptied
by `cleanup`.
The methods block; inside an event loop call them through `anyio.to_thread.run_sync`.
"""

from __future__ import annotations

import http.client
import itertools
import shutil
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from tests.control_plane.credentials import ADMIN_TOKEN, write_key_files, write_kubeconfig
from tests.control_plane.locate import Binaries
from tests.control_plane.processes import ServerProcess, StartError, free_ports

_START_ATTEMPTS = 3
LARGE_HEAPS: Mapping[str, str] = {"GOGC": "400"}
"""An environment in which both servers collect garbage rarely, for a fifth less CPU time. Measurements go without."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A running kube-scheduler; `url` serves /metrics to the admin token."""

    process: ServerProcess
    url: str


class ControlPlane:
    """etcd and kube-apiserver, running from construction by `start` until `stop`.

    Args: `environ` is added to the environment of these two, `flags` to the arguments of kube-apiserver.
    """

    def __init__(
        self, binaries: Binaries, directory: Path, environ: Mapping[str, str], flags: Sequence[str] = ()
    ) -> None:
        self.binaries = binaries
        self.directory = directory
        self._environ, self._more_flags = environ, flags
        self._numbers = itertools.count()
        self._files = write_key_files(directory)
        self._etcd_port, self._peer_port, self._port = free_ports(3)
        self.etcd = self._launch("etcd", self._etcd_flags(), environ)
        self.apiserver: ServerProcess | None = None

    @classmethod
    def start(cls, binaries: Binaries, environ: Mapping[str, str] | None = None, flags: Sequence[str] = ()) -> Self:
        """Starts both servers and returns when /readyz is ok, after 2 to 3 s. Raises: StartError."""
        attempt = 0
        while True:
            attempt += 1
            plane = cls(binaries, Path(tempfile.mkdtemp(prefix="podium-control-plane-")), environ or {}, flags)
            try:
                plane.start_apiserver()
                return plane
            except BaseException as problem:
                plane.stop()
                # A port may be taken by somebody else between being chosen and being used.
                if not isinstance(problem, StartError) or attempt == _START_ATTEMPTS:
                    raise

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def etcd_address(self) -> str:
        """Where etcd listens for clients, in plain text: host and port."""
        return f"127.0.0.1:{self._etcd_port}"

    @property
    def admin_token(self) -> str:
        return ADMIN_TOKEN

    def ssl_context(self) -> ssl.SSLContext:
        """Trusts this control plane and nothing else."""
        return ssl.create_default_context(cafile=self._files.authority)

    def kubeconfig(self, token: str = ADMIN_TOKEN, path: Path | None = None) -> Path:
        """Writes a kubeconfig for the token's user and returns its path.

        The token is the admin's, or one that `Client.service_account_token` got.
        """
        path = path or self.directory / f"kubeconfig-{next(self._numbers)}.yaml"
        return write_kubeconfig(path, self.url, self._files.authority, token)

    def start_apiserver(self) -> None:
        """Starts kube-apiserver on the port and the data it had before, and waits until it is ready."""
        assert self.apiserver is None or not self.apiserver.is_running, "kube-apiserver runs already"
        self.apiserver = self._launch("kube-apiserver", self._apiserver_flags(), self._environ)
        self._wait_apiserver()

    def _wait_apiserver(self) -> None:
        assert self.apiserver is not None
        context = self.ssl_context()
        self.apiserver.wait_ready(lambda: _answers_ok(self._port, "/readyz", context))

    def stop_apiserver(self) -> None:
        """Stops kube-apiserver and leaves etcd running."""
        assert self.apiserver is not None
        self.apiserver.stop()

    def restart_apiserver(self) -> None:
        """Stop and start: connections break, objects and resource versions stay."""
        self.stop_apiserver()
        self.start_apiserver()

    def restart_etcd(self) -> None:
        """Kills etcd, starts it again on its data, and waits until the API server, which runs on, is ready again."""
        self.etcd.kill()
        self._start_etcd()
        self._wait_apiserver()

    def back_up_etcd(self) -> Path:
        """Kills etcd, copies its data, and starts it again; returns the copy. The API server waits meanwhile."""
        self.etcd.kill()
        copy = self.directory / f"backup-{next(self._numbers)}"
        shutil.copytree(self._etcd_data, copy)
        self._start_etcd()
        return copy

    def restore_etcd(self, backup: Path, *, restart_apiserver: bool) -> None:
        """Puts a copy in the place of etcd's data, with the API server stopped for it, as it should be, or running."""
        if restart_apiserver and self.apiserver is not None:
            self.apiserver.kill()
        self.etcd.kill()
        shutil.rmtree(self._etcd_data)
        shutil.copytree(backup, self._etcd_data)
        self._start_etcd()
        if restart_apiserver:
            self.start_apiserver()

    @property
    def _etcd_data(self) -> Path:
        return self.directory / "etcd"

    def _start_etcd(self) -> None:
        self.etcd = self._launch("etcd", self._etcd_flags(), self._environ)

    def start_scheduler(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        verbosity: int = 0,
        flags: Sequence[str] = (),
        binary: Path | None = None,
    ) -> Scheduler:
        """Starts the real kube-scheduler and returns when it is healthy; the caller stops its process.

        Args:
            config: a KubeSchedulerConfiguration; apiVersion, kind, the kubeconfig and leaderElection are
                filled in when they are not there, so that None is upstream's default without an election.
            verbosity: of what it logs of its decisions; from 10 on all scores.
            flags: what is added to its arguments.
            binary: another scheduler that takes the same arguments, in the place of kube-scheduler.
        """
        port = free_ports(1)[0]
        # Every log call looks for its file among the modules, which a benchmark would feel.
        extra = [f"--vmodule=schedule_one={verbosity}"] if verbosity else []
        process = self._launch(
            "kube-scheduler", [*self._scheduler_flags(config or {}, port), *extra, *flags], binary=binary
        )
        _wait_healthy(process, port)
        return Scheduler(process, f"https://127.0.0.1:{port}")

    def start_controllers(self, *names: str, more_flags: Sequence[str] = ()) -> ServerProcess:
        """Starts these controllers of the real kube-controller-manager, returns when they are healthy.

        The caller stops the process.
        """
        port, kubeconfig = free_ports(1)[0], self.kubeconfig()
        flags = [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--controllers={','.join(names)}",
            f"--service-account-private-key-file={self._files.service_account_key}",
            f"--root-ca-file={self._files.authority}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            *more_flags,
        ]
        process = self._launch("kube-controller-manager", flags)
        _wait_healthy(process, port)
        return process

    def cpu_s(self) -> dict[str, float]:
        """CPU time each server has spent since it was last started."""
        servers = [self.etcd] if self.apiserver is None else [self.etcd, self.apiserver]
        return {server.name: server.cpu_s() for server in servers}

    def stop(self) -> None:
        """Ends both servers and removes their data."""
        # Nothing of theirs is kept, so nothing is lost by not waiting a second for a graceful end.
        if self.apiserver is not None:
            self.apiserver.kill()
        self.etcd.kill()
        shutil.rmtree(self.directory)

    def _launch(
        self, name: str, flags: list[str], environ: Mapping[str, str] | None = None, binary: Path | None = None
    ) -> ServerProcess:
        command = [binary or self.binaries[name], *flags]
        return ServerProcess(name, command, self.directory / f"{name}.log", environ)

    def _etcd_flags(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        return [
            "--name=test",
            f"--data-dir={self._etcd_data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            "--log-level=warn",
            # A test's data need not outlive the machine, and one member elects itself at once. More beats would take
            # two hundredths of a core in each idle control plane.
            "--unsafe-no-fsync",
            "--heartbeat-interval=40",
            "--election-timeout=400",
            f"--quota-backend-bytes={4 << 30}",
        ]

    def _apiserver_flags(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={self._files.certificate}",
            f"--tls-private-key-file={self._files.key}",
            f"--token-auth-file={self._files.tokens}",
            # It is published in the ConfigMap from which others learn whose client certificates to believe.
            f"--client-ca-file={self._files.authority}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self._files.service_account_key}",
            f"--service-account-signing-key-file={self._files.service_account_key}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Without controllers nobody makes default service accounts or takes the not-ready taint away.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            # The `kubernetes` Service must not point at loopback, and nobody needs its endpoints here.
            "--endpoint-reconciler-type=none",
            "--max-requests-inflight=4000",
            "--max-mutating-requests-inflight=2000",
            *self._more_flags,
        ]

    def _scheduler_flags(self, config: Mapping[str, Any], port: int) -> list[str]:
        kubeconfig = self.kubeconfig()
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **config,
        }
        configuration["clientConnection"] = {"kubeconfig": str(kubeconfig), **configuration.get("clientConnection", {})}
        path = self.directory / f"kube-scheduler-{port}.yaml"
        path.write_text(yaml.safe_dump(configuration))
        return [
            f"--config={path}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        ]


def _wait_healthy(process: ServerProcess, port: int) -> None:
    """Stops the process if it does not become healthy. Raises: StartError."""
    # Its certificate is self-signed, in memory, and of no interest.
    context = ssl._create_unverified_context()
    try:
        process.wait_ready(lambda: _answers_ok(port, "/healthz", context))
    except StartError:
        process.stop()
        raise


def _answers_ok(port: int, path: str, context: ssl.SSLContext) -> bool:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
