"""The estimator as a process: members, the gRPC port, and what else it adds to the shell (`server.process`).

Tasks: one for each live member (its informers), or one for the directory of kubeconfigs. Start: certificates →
credentials of every member → gRPC port and endpoints → informers. Stop: informers end → endpoints close → running
requests end (5 s at most).

Source: karmada cmd/scheduler-estimator/app, v1.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from podium.client.session import ApiSession
from podium.estimator.accurate import Rules
from podium.estimator.member import Gates, MemberCluster
from podium.estimator.server.folder import Folder
from podium.estimator.server.grpc_server import serve_grpc
from podium.estimator.server.live import LiveMember
from podium.estimator.server.member_rules import rules_of_member
from podium.estimator.server.members import Members, OnUnsynced, Served, StaticMember
from podium.estimator.server.metrics import EstimatorMetrics
from podium.estimator.server.service import EstimatorService
from podium.estimator.server.status_report import StatusReport
from podium.estimator.server.tls import ReloadingCertificates, TlsFiles
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.server.process import Parts, Process, connect
from podium.server.supervision import Tasks

log = get_logger("estimator")


@dataclass(frozen=True, slots=True)
class Source:
    """The location of a member cluster's API server, as the arguments of `podium.client.credentials.load`."""

    name: str
    kubeconfig: str | None = None
    context: str | None = None
    master: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a server.

    Addresses are a host ("" for any) and a port; None disables the endpoint.
    Without `tls` the server uses plain text.

    `rules`: with these, live members give accurate estimates. Members that never change have their own view, or none.
    `look_s`: the interval between two checks of a directory of kubeconfigs.
    `report`: None if the members' summaries are not reported.
    """

    address: tuple[str, int] = ("0.0.0.0", 10352)
    health_address: tuple[str, int] | None = ("", 10351)
    metrics_address: tuple[str, int] | None = ("", 8080)
    tls: TlsFiles | None = None
    gates: Gates = field(default_factory=Gates)
    on_unsynced: OnUnsynced = OnUnsynced.LAST_KNOWN
    rules: Rules | None = None
    look_s: float = 5.0
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Where and how the members' summaries are reported.

    Attributes:
        karmada: Karmada's API server.
        interval_s: between two reports.
        with_models: count the nodes of each grade.
    """

    karmada: Source
    interval_s: float = 10.0
    with_models: bool = True


class EstimatorApp(Process):
    """One estimator server.

    Args:
        still: member clusters that never change, by name.
        folder: a directory of kubeconfigs, which is checked regularly.
    """

    def __init__(
        self,
        options: Options,
        sources: Sequence[Source] = (),
        still: Mapping[str, MemberCluster] | None = None,
        folder: Path | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.metrics = EstimatorMetrics()
        super().__init__(log, "estimator", self.metrics, clock=clock)
        self._options = options
        self._sources = sources
        self._still = still or {}
        self._folder = folder

    async def run(self, started: Callable[[int], None] = lambda _: None) -> None:
        """Serve until SIGTERM, SIGINT or `stop`.

        Args:
            started: called with the gRPC port once the server listens.

        Raises:
            CertificateError, ServingError, ConnectionConfigError: it cannot start.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        options = self._options
        self._prepare()
        credentials = ReloadingCertificates(options.tls).credentials() if options.tls is not None else None
        live = await self._live(*self._sources)
        members_by_name: dict[str, Served] = {name: StaticMember(cluster) for name, cluster in self._still.items()}
        members_by_name |= {member.cluster.name: member for member in live}
        members = Members(members_by_name, options.on_unsynced)
        follows = {f"member {member.cluster.name}": member.run for member in live}
        if self._folder is not None:
            folder: Folder[LiveMember] = Folder(self._folder, members, self._from_file, options.look_s)
            # Looked at once before serving, so that the first requests find the members.
            await folder.look()
            follows["directory of kubeconfigs"] = folder.run
        if options.report is not None:
            follows["status report"] = (await self._status_report(options.report, members)).run
        service = EstimatorService(members, self.metrics, self._clock)

        def not_listed() -> str | None:
            missing = members.unsynced_names()
            return f"not listed yet: {missing}" if missing else None

        async with (
            serve_grpc(
                service.handler(), *options.address, credentials, options="--server-port or --bind-address"
            ) as port,
            self._serving(options.health_address, options.metrics_address, not_listed),
        ):

            def begin() -> Iterable[Tasks]:
                mode = "accurate, sets of components as in parity mode" if options.rules is not None else "parity"
                log.info("Serving estimates", address=options.address[0], port=port, clusters=len(members), mode=mode)
                started(port)
                return ()

            await self._run_parts(Parts(begin=begin, tasks=[follows]))
        log.info("Stopped")

    async def _from_file(self, name: str, kubeconfig: Path) -> LiveMember:
        (member,) = await self._live(Source(name, str(kubeconfig)))
        return member

    async def _status_report(self, report: Report, members: Members) -> StatusReport:
        source = report.karmada
        connection = await connect(self._clock, source.kubeconfig, context=source.context, master=source.master)
        return StatusReport(
            connection.session(), members.fresh, with_models=report.with_models, interval_s=report.interval_s
        )

    async def _live(self, *sources: Source) -> list[LiveMember]:
        """Return the members that are watched. All are asked for their versions at once."""
        connections = {
            source.name: await connect(self._clock, source.kubeconfig, context=source.context, master=source.master)
            for source in sources
        }
        rules: dict[str, Rules | None] = {}

        async def ask(name: str) -> None:
            member_rules = self._options.rules
            rules[name] = member_rules and await rules_of_member(name, connections[name], member_rules, log)

        async with anyio.create_task_group() as group:
            for name in connections:
                group.start_soon(ask, name)
        return [self._member(name, connection.session(), rules[name]) for name, connection in connections.items()]

    def _member(self, name: str, session: ApiSession, rules: Rules | None) -> LiveMember:
        informers = self._informer_set(session, rules.config.release if rules is not None else None)
        return LiveMember(name, session, informers, self._options.gates, self._clock, self._random, rules=rules)
