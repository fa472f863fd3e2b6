"""The five processes of podium on the embedded API server: they start, fail and stop alike."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from aiohttp import web
from structlog.testing import capture_logs

from podium.client.credentials import ConnectionConfigError
from podium.client.informer_set import InformerSet
from podium.client.reflector import Reflector
from podium.config import default_configuration
from podium.daemon import options as daemon
from podium.daemon.app import App
from podium.estimator.server import app as estimator
from podium.plugins import IN_TREE
from podium.provisioner.controller import app as provisioner
from podium.recording import watched
from podium.recording.shadow import app as shadow
from podium.sandbox import Sandbox
from podium.sandbox.server import ApiServer
from podium.sandbox.store import utc_now
from podium.server import process
from podium.server.election import LeadershipLostError, Timings
from podium.server.process import Process
from podium.server.supervision import ComponentFailedError
from tests.control_plane.client import Client
from tests.e2e.daemon import MACHINE_IS_BUSY
from tests.e2e.waiting import eventually
from tests.manifests import node
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
HASTY = Timings(duration_s=3.0, renew_deadline_s=2.0, retry_period_s=0.05)


# ---------------------------------------------------------------- the five


def scheduler(kubeconfig: Path, _: Path) -> Process:
    config = default_configuration()
    election = replace(
        config.leader_election,
        leader_elect=True,
        resource_name="podium",
        lease_duration_s=HASTY.duration_s,
        renew_deadline_s=HASTY.renew_deadline_s,
        retry_period_s=HASTY.retry_period_s,
    )
    return App(replace(config, leader_election=election), daemon.Options(kubeconfig=str(kubeconfig), secure_port=0))


def provisioner_of(kubeconfig: Path, _: Path) -> Process:
    return provisioner.ProvisionerApp(provisioner.Options(kubeconfig=str(kubeconfig), timings=HASTY))


def shadow_of(kubeconfig: Path, _: Path) -> Process:
    options = shadow.Options(config=default_configuration(), classes=IN_TREE, kubeconfig=str(kubeconfig))
    return shadow.ShadowApp(options)


def recording(kubeconfig: Path, directory: Path) -> Process:
    config = default_configuration()
    return watched.RecordApp(
        watched.Options(directory=directory, config=config, classes=IN_TREE, kubeconfig=str(kubeconfig))
    )


def estimator_of(kubeconfig: Path, _: Path) -> Process:
    options = estimator.Options(("127.0.0.1", 0), health_address=None, metrics_address=None)
    return estimator.EstimatorApp(options, [estimator.Source("m1", str(kubeconfig))])


@dataclass(frozen=True)
class Kind:
    """One of the five.

    Attributes:
        component: how its lines of the log are marked.
        name: what its parts are of, in the log.
        part: the part that fails with its watches.
    """

    make: Callable[[Path, Path], Process]
    component: str
    name: str
    part: str = "informers"


KINDS = {
    "daemon": Kind(scheduler, "daemon", "scheduler"),
    "provisioner": Kind(provisioner_of, "provisioner", "provisioner"),
    "shadow": Kind(shadow_of, "shadow", "shadow"),
    "record": Kind(recording, "record", "recording"),
    "estimator": Kind(estimator_of, "estimator", "estimator", "member m1"),
}
five = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
electing = pytest.mark.parametrize("kind", [KINDS["daemon"], KINDS["provisioner"]], ids=["daemon", "provisioner"])


@dataclass
class Run:
    """A process that runs, and what it did.

    Attributes:
        begun: set when it has begun to do what it is for.
        ended: set when it has ended.
    """

    process: Any
    log: list[Any]
    begun: anyio.Event = field(default_factory=anyio.Event)
    end: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        with anyio.fail_after(PATIENCE_S):
            await self.process.run(lambda *_: self.begun.set())
        self.end.set()

    def events(self, component: str) -> list[str]:
        events = [line["event"] for line in self.log if line.get("component") == component]
        return [event for event in events if event not in MACHINE_IS_BUSY]

    async def wait_logged(self, event: str) -> None:
        async def is_logged() -> bool:
            return any(line["event"] == event for line in self.log)

        await eventually(is_logged)


@asynccontextmanager
async def running(kind: Kind, kubeconfig: Path, directory: Path) -> AsyncIterator[Run]:
    """Runs the process meanwhile; at the end it is stopped."""
    with capture_logs() as log:
        run = Run(kind.make(kubeconfig, directory / "recording"), log)
        async with anyio.create_task_group() as group:
            group.start_soon(run.run)
            yield run
            run.process.stop()


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as running_sandbox:
        running_sandbox.store.create(node("n1", "4"))
        yield running_sandbox


@pytest.fixture
def kubeconfig(sandbox: Sandbox, tmp_path: Path) -> Path:
    return sandbox.write_kubeconfig(tmp_path / "kubeconfig")


# ---------------------------------------------------------------- start


@five
async def test_it_settles_the_collector_and_says_which_version_starts_and_that_it_has_stopped(
    kind: Kind, kubeconfig: Path, tmp_path: Path
) -> None:
    async with running(kind, kubeconfig, tmp_path) as run:
        await run.begun.wait()
        assert gc.get_threshold()[0] == 25_000
    first = run.log[0]
    assert first["component"] == kind.component
    if kind.component == "estimator":
        assert first["event"] == "Serving estimates"
    else:
        assert first["event"].startswith("Starting podium")
        assert {"version", "python"} <= first.keys()
    assert run.events(kind.component)[-2:] == ["Stopping", "Stopped"]


@five
async def test_without_credentials_it_says_so(kind: Kind, tmp_path: Path) -> None:
    process: Any = kind.make(tmp_path / "nowhere", tmp_path / "recording")
    with pytest.raises(ConnectionConfigError, match="nowhere"):
        await process.run()


@five
async def test_an_api_server_that_is_away_is_waited_for_and_reported_once(
    kind: Kind, sandbox: Sandbox, kubeconfig: Path, tmp_path: Path
) -> None:
    sandbox.faults.refuse_connections(3600.0)
    async with running(kind, kubeconfig, tmp_path) as run:
        await run.wait_logged("API server unreachable")
        assert not run.end.is_set()
        assert not run.begun.is_set() or kind.component == "estimator"
        await sandbox._listen()
        await run.wait_logged("API server answers again")
        await run.begun.wait()
    assert [line["event"] for line in run.log].count("API server unreachable") == 1


@five
async def test_a_stop_ends_the_wait_for_a_watch_that_never_syncs(
    kind: Kind, sandbox: Sandbox, kubeconfig: Path, tmp_path: Path
) -> None:
    sandbox.faults.latency(3600.0, resource="nodes")
    async with running(kind, kubeconfig, tmp_path) as run:
        await anyio.sleep(0.3)
        if kind.component == "estimator":
            await run.begun.wait()
        else:
            assert not run.begun.is_set()
        run.process.stop()
        await run.end.wait()
    assert run.events(kind.component)[-1] == "Stopped"


@electing
async def test_a_new_leader_does_not_wait_without_limit_for_watches_that_stay_disconnected(
    kind: Kind, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_CONNECTED_S_MAX", 0.1)
    monkeypatch.setattr(InformerSet, "unconnected", ["nodes"])
    async with running(kind, kubeconfig, tmp_path) as run:
        await run.begun.wait()
    (warning,) = [line for line in run.log if line["event"].endswith("although some watches are not connected")]
    assert (warning["component"], warning["resources"]) == (kind.component, ["nodes"])


# ---------------------------------------------------------------- failures


@five
async def test_a_part_that_fails_is_counted_and_logged_by_name_and_ends_the_process(
    kind: Kind, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: Any) -> None:
        await anyio.sleep(0.01)
        raise KeyError("mistake")

    monkeypatch.setattr(Reflector, "run", fail)
    process: Any = kind.make(kubeconfig, tmp_path / "recording")
    with anyio.fail_after(PATIENCE_S), capture_logs() as log, pytest.RaisesGroup(ComponentFailedError):
        await process.run()
    (line,) = [line for line in log if line["log_level"] == "critical"]
    assert (line["component"], line["event"]) == (kind.component, f"A part of the {kind.name} has failed, exiting")
    assert line["part"] == kind.part
    assert f'podium_unexpected_errors_total{{where="task",name="{kind.part}"}} 1' in process.metrics.render().decode()


@five
async def test_a_handler_that_fails_is_counted(
    kind: Kind, sandbox: Sandbox, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    informer, informers_seen = InformerSet.informer, []

    class Fails:
        def on_add(self, new: Any) -> None:
            raise KeyError("mistake")

        on_update = on_delete = on_broken = on_add

    def with_another_handler(informers: InformerSet, resource: Any) -> Any:
        informer_made = informer(informers, resource)
        if resource.plural == "nodes" and not informers_seen:
            informers_seen.append(resource)
            informer_made.add_handler(Fails())
        return informer_made

    monkeypatch.setattr(InformerSet, "informer", with_another_handler)
    async with running(kind, kubeconfig, tmp_path) as run:

        async def is_counted() -> bool:
            text = run.process.metrics.render().decode()
            return 'podium_unexpected_errors_total{where="handler",name="nodes"} 1' in text

        await eventually(is_counted)


@electing
async def test_a_lease_that_is_lost_ends_the_process_and_nothing_is_released(
    kind: Kind, sandbox: Sandbox, kubeconfig: Path, tmp_path: Path
) -> None:
    process: Any = kind.make(kubeconfig, tmp_path)
    begun = anyio.Event()
    with anyio.fail_after(PATIENCE_S), pytest.RaisesGroup(LeadershipLostError, flatten_subgroups=True):
        async with anyio.create_task_group() as group, Client(sandbox.url) as admin:
            group.start_soon(process.run, begun.set)
            await begun.wait()
            (lease,) = await admin.list(LEASES)
            path = f"{LEASES}/{lease['metadata']['name']}"
            await admin.patch(path, {"spec": {"holderIdentity": "another"}})
            await anyio.sleep_forever()
    async with Client(sandbox.url) as admin:
        assert (await admin.get(path))["spec"]["holderIdentity"] == "another"


@five
async def test_only_processes_that_elect_a_leader_write_a_lease_and_release_it_at_the_end(
    kind: Kind, sandbox: Sandbox, kubeconfig: Path, tmp_path: Path
) -> None:
    async with running(kind, kubeconfig, tmp_path) as run:
        await run.begun.wait()
    async with Client(sandbox.url) as admin:
        leases = await admin.list(LEASES)
    assert len(leases) == (kind.component in ("daemon", "provisioner"))
    assert all(lease["spec"].get("holderIdentity", "") == "" for lease in leases)


@five
async def test_a_token_that_expires_is_read_from_its_file_again(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours, kubeconfig, file = [0], tmp_path / "kubeconfig", tmp_path / "token"
    tokens_seen: set[str] = set()
    handle = ApiServer.handle

    async def noting(server: ApiServer, request: web.BaseRequest) -> web.StreamResponse:
        answer = await handle(server, request)
        if request.headers.get("User-Agent", "").startswith("podium/") and answer.status == 200:
            tokens_seen.add(request.headers["Authorization"].removeprefix("Bearer "))
        return answer

    async def is_first_shown() -> bool:
        return first in tokens_seen

    monkeypatch.setattr(ApiServer, "handle", noting)
    async with (
        Sandbox(kubelets=False, token="admin", now=lambda: utc_now() + timedelta(hours=hours[0])) as sandbox,
        Client(sandbox.url, token="admin") as admin,
    ):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "podium", "namespace": "default"}}
        sandbox.store.create(account)
        first = await admin.service_account_token("default", "podium")
        file.write_text(first)
        content = sandbox.kubeconfig()
        content["users"][0]["user"] = {"tokenFile": str(file)}
        kubeconfig.write_text(yaml.safe_dump(content))
        async with running(kind, kubeconfig, tmp_path) as run:
            await run.begun.wait()
            await eventually(is_first_shown)
            request = {"spec": {"expirationSeconds": 7 * 24 * 3600}}
            path = "/api/v1/namespaces/default/serviceaccounts/podium/token"
            second = (await admin.create(path, request))["status"]["token"]
            file.write_text(second)
            hours[0] = 12

            async def is_shown() -> bool:
                sandbox.faults.expire_watches()
                return second in tokens_seen

            await eventually(is_shown)
    assert tokens_seen == {first, second}
    assert "API server does not accept our credentials" not in [line["event"] for line in run.log]


# ---------------------------------------------------------------- signals


@five
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_in_order(kind: Kind, kubeconfig: Path, tmp_path: Path, number: signal.Signals) -> None:
    async with running(kind, kubeconfig, tmp_path) as run:
        await run.begun.wait()
        os.kill(os.getpid(), number)
        await run.end.wait()
    events = run.events(kind.component)
    assert events[-3:] == ["Requested to terminate, exiting", "Stopping", "Stopped"]


@five
async def test_a_second_signal_ends_it_at_once(
    kind: Kind, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: list[int] = []
    exited, drain = anyio.Event(), Process._drain

    def exit_at_once(status: int) -> None:
        exits.append(status)
        exited.set()

    async def drain_until_exit(*args: Any) -> bool:
        await exited.wait()
        return await drain(*args)

    monkeypatch.setattr(process.os, "_exit", exit_at_once)
    monkeypatch.setattr(Process, "_drain", drain_until_exit)
    async with running(kind, kubeconfig, tmp_path) as run:
        await run.begun.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await run.wait_logged("Requested to terminate, exiting")
        assert exits == []
        os.kill(os.getpid(), signal.SIGTERM)
        await run.end.wait()
    assert exits == [1]
    assert "Requested to terminate again, exiting at once" in run.events(kind.component)
