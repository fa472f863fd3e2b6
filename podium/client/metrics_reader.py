"""Requests to metrics sources: a load watcher and Prometheus over HTTP, metrics-server through the API server.

Owns connections, deadlines and the size limit of an answer. Never interprets an answer (`client.metrics_answers`), and
never retries: the next reading is the retry.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import aiohttp
import anyio

import podium
from podium.client.client_tls import Pem, TlsSource
from podium.client.dispatcher import Requester
from podium.client.metrics_answers import (
    MetricsError,
    NodeNames,
    Readings,
    read_metrics_server,
    read_prometheus,
    read_watcher,
)
from podium.client.streams import content_encoding, read_body, timeouts
from podium.lib.bounded_read import read_file
from podium.lib.error_text import cut, error_text
from podium.lib.thread_call import ThreadCall
from podium.objects.api_errors import ApiError, ConnectionLost
from podium.objects.core import Node
from podium.objects.meta import ObjectMeta
from podium.objects.node_metrics import (
    KUBERNETES_METRICS_SERVER,
    WATCHER,
    MetricsQuery,
    MetricsSource,
    MetricsWindow,
    NodeMetricsReport,
    ReportedNodes,
)

ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024
"""No answer may be longer, however many nodes there are."""
_BYTES_BESIDE_NODES_MAX: Final = 1024 * 1024
_BYTES_OF_NODE_MAX: Final = 8 * 1024
"""A load watcher writes 3 KB about a node if it reports every kind of load."""
_TOKEN_BYTES_MAX: Final = 64 * 1024
_DEADLINE_S: Final = 20.0
_QUERY_DEADLINE_S: Final = 10.0
_WINDOW_S: Final = 900
_OK: Final = 200
_NOT_POSTED: Final = (405, 501)
_METRICS_PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
_FAILURES: Final = (aiohttp.ClientError, ConnectionLost, OSError, TimeoutError, ValueError)


class Reading(NamedTuple):
    """One reading of a source: the report, and what is wrong with it ("" if nothing is)."""

    report: NodeMetricsReport
    problems: str


class MetricsReader:
    """Reads one source.

    Args:
        nodes: the nodes, called before the source is asked and after it has answered.
        wall_clock: returns the time in Unix seconds.
    """

    def __init__(
        self,
        source: MetricsSource,
        api: Requester,
        nodes: Callable[[], Iterable[Node]],
        wall_clock: Callable[[], float],
    ) -> None:
        self.source = source
        self._api = api
        self._nodes = nodes
        self._wall_clock = wall_clock

    async def read(self) -> Reading:
        """Read the loads of all nodes.

        Raises:
            MetricsError: the source cannot be read, or has no answer to any query.
        """
        try:
            if self.source.type == KUBERNETES_METRICS_SERVER:
                body = await self._api.request(
                    "GET", _METRICS_PATH, deadline_s=_DEADLINE_S, answer_bytes_max=self._answer_bytes_max()
                )
                return await self._interpret(lambda readings, nodes: read_metrics_server(readings, body, nodes))
            async with await self._session() as session:
                if self.source.type == WATCHER:
                    body = await self._get_watcher(session)
                    return await self._interpret(lambda readings, _: read_watcher(readings, body))
                return await self._query_prometheus(session)
        except ApiError as error:
            raise MetricsError(cut(str(error))) from error
        except TimeoutError:
            raise MetricsError(f"no answer within {_DEADLINE_S:.0f} s") from None
        except _FAILURES as error:
            raise MetricsError(error_text(error)) from error

    async def _interpret(self, interpret: Callable[[Readings, dict[str, Node]], None]) -> Reading:
        """Interpret answers in a thread, since one of megabytes would hold up the loop."""
        nodes = {node.name: node for node in self._nodes()}
        now_s = self._wall_clock()
        end_s = int(now_s)

        def read() -> Reading:
            readings = Readings(NodeNames(nodes.values()))
            readings.window = MetricsWindow(start=end_s - _WINDOW_S, end=end_s)
            interpret(readings, nodes)
            report = NodeMetricsReport(
                metadata=ObjectMeta(name=self.source.name),
                window=readings.window,
                data=ReportedNodes(by_name=readings.nodes),
                fetched_s=now_s,
            )
            for type_ in readings.types:
                # Computed here, so that the first attempt that asks for them need not.
                report.loads(type_)
            return Reading(report, readings.problems)

        return await ThreadCall(read, "node metrics").result()

    # ------------------------------------------------------------ HTTP

    async def _session(self) -> aiohttp.ClientSession:
        source, headers = self.source, {"User-Agent": f"podium/{podium.__version__}", "Accept-Encoding": "identity"}
        tls: ssl.SSLContext | None = None
        if source.address.startswith("https:"):
            authorities = Pem(path=source.ca_file) if source.ca_file else None
            settings = TlsSource(authorities, verify=not source.insecure_skip_verify)
            tls = await ThreadCall(lambda: settings.context(settings.read()), "node metrics").result()
        token = source.token
        if source.token_file:
            content = await ThreadCall(lambda: read_file(source.token_file, _TOKEN_BYTES_MAX), "node metrics").result()
            token = content.decode("ascii", "replace").strip()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=True if tls is None else tls),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            # A few compressed bytes could expand to gigabytes.
            auto_decompress=False,
        )

    async def _get_watcher(self, session: aiohttp.ClientSession) -> bytes:
        headers = {"Content-Type": "application/json"}
        url = f"{self.source.address}/watcher"
        async with session.get(url, headers=headers, timeout=timeouts(_DEADLINE_S), allow_redirects=False) as response:
            body = await self._body(response)
        if response.status != _OK:
            raise MetricsError(f"received status code {response.status} from watcher")
        return body

    async def _query_prometheus(self, session: aiohttp.ClientSession) -> Reading:
        answers: list[tuple[MetricsQuery, bytes]] = []
        failures: dict[MetricsQuery, str] = {}
        for query in self.source.queries:
            try:
                answers.append((query, await self._query(session, query.expr)))
            except TimeoutError:
                failures[query] = f"no answer within {_QUERY_DEADLINE_S:.0f} s"
            except _FAILURES as error:
                failures[query] = error_text(error)

        def interpret(readings: Readings, _: object) -> None:
            for query, body in answers:
                try:
                    read_prometheus(readings, body, query)
                except MetricsError as error:
                    failures[query] = str(error)
            for failure in failures.values():
                readings.note("a query failed", failure)
            if len(failures) == len(self.source.queries):
                raise MetricsError(next(iter(failures.values())))

        return await self._interpret(interpret)

    async def _query(self, session: aiohttp.ClientSession, expr: str) -> bytes:
        """Return the body of the answer, which for a query that Prometheus refuses says why."""
        url = f"{self.source.address.rstrip('/')}/api/v1/query"
        timeout = timeouts(_QUERY_DEADLINE_S)
        with anyio.fail_after(_QUERY_DEADLINE_S):
            async with session.post(url, data={"query": expr}, timeout=timeout, allow_redirects=False) as response:
                body = await self._body(response)
            if response.status in _NOT_POSTED:
                async with session.get(url, params={"query": expr}, timeout=timeout, allow_redirects=False) as response:
                    body = await self._body(response)
        if response.status != _OK and not body.lstrip().startswith(b"{"):
            raise ValueError(f"status code {response.status}")
        return body

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        if content_encoding(response):
            raise ValueError("the answer is compressed, which was not asked for")
        return await read_body(response, self._answer_bytes_max())

    def _answer_bytes_max(self) -> int:
        """Return how long an answer may be. The loop waits while its outer form is read: a few ms for each MB."""
        node_count = sum(1 for _ in self._nodes())
        return min(_BYTES_BESIDE_NODES_MAX + node_count * _BYTES_OF_NODE_MAX, ANSWER_BYTES_MAX)
