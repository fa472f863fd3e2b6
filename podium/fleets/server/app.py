"""The fleet's server as a process: members, both interfaces, and what else it adds to the shell (`server.process`).

Tasks: one for each member (its informers), or one for the directory of kubeconfigs; one that looks which members fail.
Start: certificates → credentials of every member → interfaces and endpoints → informers. A member whose kubeconfig
cannot be used is named in every answer, and the others are served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from podium.client.credentials import ConnectionConfigError
from podium.estimator.accurate import Rules
from podium.estimator.server.app import Source
from podium.estimator.server.folder import Folder
from podium.estimator.server.grpc_server import serve_grpc
from podium.estimator.server.member_rules import rules_of_member
from podium.estimator.server.tls import ReloadingCertificates, TlsFiles
from podium.fleets.ordering import Prices
from podium.fleets.server.fleet import Staleness, WatchedFleet
from podium.fleets.server.metrics import FleetMetrics
from podium.fleets.server.requests import RequestReader
from podium.fleets.server.service import FleetService, serve_http
from podium.fleets.server.watched import WatchedCluster
from podium.lib.log import get_logger
from podium.server.process import Address, Parts, Process, connect
from podium.server.serving import serving_tls
from podium.server.supervision import Tasks

log = get_logger("fleets")


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The settings of a server. Addresses are a host ("" for any) and a port, or None to serve nothing there.

    Attributes:
        tls: of both interfaces; without it they use plain text.
        rules: decide in each member, as its own release has them if they say so.
        look_s: the interval between two checks of a directory of kubeconfigs.
    """

    http_address: Address = ("127.0.0.1", 8090)
    grpc_address: Address | None = ("127.0.0.1", 8091)
    health_address: Address | None = ("", 10351)
    metrics_address: Address | None = ("", 8080)
    tls: TlsFiles | None = None
    rules: Rules = field(default_factory=Rules)
    prices: Prices = field(default_factory=Prices)
    staleness: Staleness = field(default_factory=Staleness)
    look_s: float = 5.0


class FleetApp(Process):
    """One server of a fleet.

    Args:
        folder: a directory of kubeconfigs, which is checked regularly.
    """

    def __init__(
        self,
        options: FleetOptions,
        sources: Sequence[Source] = (),
        folder: Path | None = None,
    ) -> None:
        self.metrics = FleetMetrics()
        super().__init__(log, "fleet", self.metrics)
        self._options = options
        self._sources = sources
        self._folder = folder
        self.fleet = WatchedFleet(self._clock, options.staleness)

    async def run(self, on_started: Callable[[int, int], None] = lambda _http, _grpc: None) -> None:
        """Serve until SIGTERM, SIGINT or `stop`.

        Args:
            on_started: called with the ports of HTTP and gRPC once the server listens; 0 without gRPC.

        Raises:
            CertificateError, ServingError: it cannot start.
            ExceptionGroup: of `ComponentFailedError`; everything else has been cancelled.
        """
        options, fleet = self._options, self.fleet
        self._prepare()
        follows: Tasks = {"staleness": fleet.run}
        for member in await self._watch_all():
            follows = {**follows, f"member {member.name}": member.run}
        if self._folder is not None:
            folder = Folder(self._folder, fleet, self._from_file, options.look_s, self._on_fault)
            # Looked at once before serving, so that the first requests find the members.
            await folder.look()
            follows = {**follows, "directory of kubeconfigs": folder.run}
        service = FleetService(fleet, RequestReader(options.prices), self.metrics, self._clock)

        def not_listed() -> str | None:
            # One member that cannot be reached must not take the answers of the others away.
            names = fleet.unlisted_names()
            return f"not listed yet: {names}" if names and len(names) == len(fleet) else None

        async with AsyncExitStack() as stack:
            tls = None if options.tls is None else serving_tls(options.tls.certificate, options.tls.key)
            http_port = await stack.enter_async_context(serve_http(service, *options.http_address, tls))
            grpc_port = 0
            if options.grpc_address is not None:
                credentials = None if options.tls is None else ReloadingCertificates(options.tls).credentials()
                advice = "--grpc-bind-address ('' disables it)"
                serving = serve_grpc(service.handler(), *options.grpc_address, credentials, options=advice)
                grpc_port = await stack.enter_async_context(serving)
            await stack.enter_async_context(self._serving(options.health_address, options.metrics_address, not_listed))
            if tls is not None:
                follows = {**follows, "certificates": tls.run}

            def begin() -> Iterable[Tasks]:
                log.info("Serving", http=http_port, grpc=grpc_port, clusters=len(fleet))
                on_started(http_port, grpc_port)
                return ()

            await self._run_parts(Parts(begin=begin, tasks=[follows]))
        log.info("Stopped")

    async def _watch_all(self) -> list[WatchedCluster]:
        """Watch all members that can be watched. They are asked for their versions at once."""
        members: list[WatchedCluster] = []

        async def watch(source: Source) -> None:
            try:
                member = await self._watch(source)
            except ConnectionConfigError as error:
                log.error("Kubeconfig cannot be used", member=source.name, error=str(error))
                self.fleet.refuse(source.name, str(error))
                return
            self.fleet.put(source.name, member)
            members.append(member)

        async with anyio.create_task_group() as group:
            for source in self._sources:
                group.start_soon(watch, source)
        return members

    def _on_fault(self, name: str, fault: str) -> None:
        if fault:
            self.fleet.refuse(name, fault)
        else:
            self.fleet.let_go(name)

    async def _from_file(self, name: str, kubeconfig: Path) -> WatchedCluster:
        return await self._watch(Source(name, str(kubeconfig)))

    async def _watch(self, source: Source) -> WatchedCluster:
        connection = await connect(self._clock, source.kubeconfig, context=source.context, master=source.master)
        rules = await rules_of_member(source.name, connection, self._options.rules, log)
        session = connection.session()
        informers = self._informer_set(session, rules.config.release)
        return WatchedCluster(source.name, session, informers, rules, self._clock)
