"""Requests over real connections."""

from __future__ import annotations

import base64
import errno
import json
import socket
import stat
import sys
import tempfile
import textwrap
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

import podium
from podium.client.credentials import Credentials, in_cluster, load
from podium.client.observer import RequestObserver
from podium.client.requests import MERGE_PATCH
from podium.client.session import ApiSession
from podium.lib.clock import ManualClock
from podium.lib.system_clock import SystemClock
from podium.objects import api_errors
from podium.objects.api_errors import (
    ApiError,
    ConnectionLost,
    Gone,
    NotFound,
    NotLeading,
    OutcomeUnknown,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from podium.objects.resource_types import PODS
from tests.control_plane.processes import free_ports
from tests.integration.client.certificates import Authority
from tests.integration.client.fault_server import FaultServer, Request, reset, silence, status
from tests.integration.client.waiting import eventually

pytestmark = pytest.mark.anyio

BINDING = "/api/v1/namespaces/default/pods/a/binding"


@pytest.fixture
async def session(server: FaultServer) -> AsyncIterator[ApiSession]:
    credentials = await load(None, SystemClock(), master=f"http://127.0.0.1:{server.port}")
    async with ApiSession(credentials) as api_session:
        yield api_session


@asynccontextmanager
async def tls_server(authority: Authority, **names: Any) -> AsyncIterator[FaultServer]:
    server = FaultServer(PODS.path, "Pod")
    listening = await server.start(authority.server_context(**names))
    try:
        yield server
    finally:
        await server.stop(listening)


def kubeconfig(directory: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None) -> str:
    path = directory / "kubeconfig"
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}] if user is not None else [],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def list_pods(credentials: Credentials) -> Any:
    async with ApiSession(credentials) as session:
        return json.loads(await session.request("GET", PODS.path))


async def test_a_write_that_may_not_be_made_is_held_back_and_reads_are_not(server: FaultServer) -> None:
    credentials = await load(None, SystemClock(), master=f"http://127.0.0.1:{server.port}")
    may_write = True
    async with ApiSession(credentials, may_write=lambda: may_write) as session:
        await session.post(BINDING, b'{"kind":"Binding"}')
        assert server.requests[-1].body == b'{"kind":"Binding"}'
        assert server.requests[-1].headers["content-type"] == "application/json"
        await session.request("DELETE", "/api/v1/namespaces/default/pods/a")
        may_write = False
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            with pytest.raises(NotLeading):
                await session.request(method, BINDING, b"{}")
        with pytest.raises(NotLeading):
            await session.request("DELETE", "/api/v1/namespaces/default/pods/a")
        await session.request("GET", PODS.path)
        may_write = True
        await session.post(BINDING, b"{}")
    assert [request.method for request in server.requests] == ["POST", "DELETE", "GET", "POST"]


async def test_whether_a_write_may_be_made_is_asked_when_there_is_a_connection_and_not_before(
    server: FaultServer,
) -> None:
    credentials = await load(None, SystemClock(), master=f"http://127.0.0.1:{server.port}")
    request_counts: list[int] = []

    def may_write() -> bool:
        request_counts.append(len(server.requests))
        return True

    async with (
        ApiSession(credentials, connections_max=1, may_write=may_write) as session,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(3):
            tasks.start_soon(session.post, BINDING, b"{}")
    # With one connection, each is asked only after the one before has been answered.
    assert request_counts == [0, 1, 2]


async def test_a_request_carries_its_body_and_says_who_asks(server: FaultServer, session: ApiSession) -> None:
    assert b"Success" in await session.post(BINDING, b'{"kind":"Binding"}')
    await session.request("PATCH", "/api/v1/pods%2Fx?a=%20b", b"{}", content_type=MERGE_PATCH)
    binding, patch = server.requests
    assert (binding.method, binding.path, binding.body) == ("POST", BINDING, b'{"kind":"Binding"}')
    assert binding.headers["content-type"] == "application/json"
    assert binding.headers["user-agent"] == f"podium/{podium.__version__}"
    assert binding.headers["accept-encoding"] == "identity"
    assert "authorization" not in binding.headers
    assert patch.path == "/api/v1/pods%2Fx"
    assert patch.query == {"a": " b"}
    assert patch.headers["content-type"] == MERGE_PATCH


async def test_nothing_listening_is_unreachable_and_certainly_not_sent() -> None:
    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))
        credentials = await load(None, SystemClock(), master=f"http://127.0.0.1:{bound_socket.getsockname()[1]}")
        async with ApiSession(credentials) as session:
            with pytest.raises(Unreachable, match=r"127\.0\.0\.1") as caught:
                await session.post(BINDING, b"{}")
            assert not caught.value.may_have_happened


@pytest.mark.parametrize("fault", [reset, silence])
async def test_a_write_that_is_not_answered_may_have_happened(
    server: FaultServer, session: ApiSession, fault: Any
) -> None:
    server.write_faults.append(fault)
    with pytest.raises(OutcomeUnknown) as caught:
        await session.request("POST", BINDING, b"{}", deadline_s=0.5)
    assert caught.value.may_have_happened
    assert len(server.requests) == 1


async def test_a_read_that_is_not_answered_is_only_lost(server: FaultServer, session: ApiSession) -> None:
    server.list_faults.append(silence)
    with pytest.raises(ConnectionLost):
        await session.request("GET", PODS.path, deadline_s=0.5)


async def test_a_session_goes_on_after_a_request_was_cancelled(server: FaultServer, session: ApiSession) -> None:
    server.write_faults.append(silence)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.post, BINDING, b"{}")
        await eventually(lambda: server.requests)
        tasks.cancel_scope.cancel()
    assert b"Success" in await session.post(BINDING, b"{}")


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", api_errors.BadRequest),
        (403, "Forbidden", api_errors.Forbidden),
        (404, "NotFound", api_errors.NotFound),
        (409, "Conflict", api_errors.Conflict),
        (409, "AlreadyExists", api_errors.AlreadyExists),
        (410, "Expired", api_errors.Expired),
        (422, "Invalid", api_errors.Invalid),
        (500, "InternalError", api_errors.InternalError),
        (503, "ServiceUnavailable", api_errors.Unavailable),
        (504, "Timeout", api_errors.ServerTimeout),
    ],
)
async def test_an_error_answer_becomes_its_exception(
    server: FaultServer, session: ApiSession, code: int, reason: str, kind: type[ApiError]
) -> None:
    server.write_faults.append(status(code, reason))
    with pytest.raises(kind) as caught:
        await session.post(BINDING, b"{}")
    assert type(caught.value) is kind
    assert str(caught.value) == f"{code} {reason}: as the test asked"
    assert caught.value.may_have_happened is (code >= 500)


async def test_429_says_how_long_to_wait(server: FaultServer, session: ApiSession) -> None:
    server.write_faults.append(status(429, "TooManyRequests", retry_after="7"))
    with pytest.raises(TooManyRequests) as caught:
        await session.post(BINDING, b"{}")
    assert caught.value.retry_after_s == 7.0


async def test_429_by_priority_and_fairness_is_told_apart(server: FaultServer, session: ApiSession) -> None:
    async def refuse(request: Request) -> None:
        headers = [("Retry-After", "7"), ("X-Kubernetes-Pf-Flowschema-Uid", "a-b-c")]
        await request.connection.answer(429, b"Too many requests, please try again later.\n", headers)

    server.write_faults.extend([refuse, status(429, "TooManyRequests", retry_after="7")])
    for is_server_wide in (True, False):
        with pytest.raises(TooManyRequests) as caught:
            await session.post(BINDING, b"{}")
        assert (caught.value.is_server_wide, caught.value.retry_after_s) == (is_server_wide, 7.0)


async def endless(request: Request) -> None:
    """Answer by code 409 to what is asked with a name, by 201 to all else, and never end."""
    code = b"409" if "refused" in request.path else b"201"
    await request.connection.send(b"HTTP/1.1 " + code + b" X\r\nContent-Length: 1500000000\r\n\r\n")
    while True:
        await request.connection.send(b"x" * 65536)


async def test_a_body_without_end_is_no_answer_and_one_of_a_refusal_does_not_matter(
    server: FaultServer, session: ApiSession
) -> None:
    server.write_faults.extend([endless, endless])
    server.list_faults.append(endless)
    server.watch_faults.append(endless)
    with pytest.raises(OutcomeUnknown, match="more than"):
        await session.post(BINDING, b"{}")
    with pytest.raises(api_errors.Conflict):
        await session.post("/refused", b"{}")
    with pytest.raises(ConnectionLost, match="more than"):
        await session.request("GET", PODS.path)
    with pytest.raises(api_errors.Conflict):
        await session.stream("/refused?watch=1", deadline_s=30.0, idle_s_max=30.0)


async def test_a_line_that_comes_in_many_small_pieces_costs_no_more_than_its_length(
    server: FaultServer, session: ApiSession
) -> None:
    long = b"x" * 8_000_000

    async def dribble(request: Request) -> None:
        await request.connection.start_chunks()
        for start in range(0, len(long), 2000):
            await request.connection.chunk(long[start : start + 2000])
        await request.connection.chunk(b"\nb\nc")
        await request.connection.chunk(b"d\ntorn")
        await request.connection.end_chunks()

    server.watch_faults.append(dribble)
    stream = await session.stream(f"{PODS.path}?watch=1", deadline_s=60.0, idle_s_max=60.0)
    lines: list[bytes] = []
    while lines_read := await stream.read_lines():
        lines += lines_read
    assert lines == [long, b"b", b"cd"]


async def test_every_request_is_reported(server: FaultServer) -> None:
    reports: list[tuple[Any, ...]] = []

    class Observer(RequestObserver):
        def answered(self, method: str, status: int | None, seconds: float, *sizes: int | None) -> None:
            assert seconds > 0
            reports.append((method, status, *sizes))

        def stream_answered(self, status: int | None) -> None:
            reports.append(("stream", status))

    server.write_faults.extend([None, status(404, "NotFound"), reset])
    server.watch_faults.extend([None, status(410, "Expired"), reset, reset])
    credentials = await load(None, SystemClock(), master=f"http://127.0.0.1:{server.port}")
    async with ApiSession(credentials, observer=Observer()) as session:
        for error in (None, NotFound, OutcomeUnknown):
            with pytest.raises(error) if error else nullcontext():
                await session.post(BINDING, b"{}")
        for error in (None, Gone, ConnectionLost):
            with pytest.raises(error) if error else nullcontext():
                path = f"{PODS.path}?watch=1&resourceVersion=100"
                (await session.stream(path, deadline_s=5.0, idle_s_max=5.0)).close()
    assert reports[:3] == [("POST", 201, 2, 36), ("POST", 404, 2, 106), ("POST", None, 2, None)]
    assert reports[3:] == [("stream", 200), ("stream", 410), ("stream", None)]


# ---------------------------------------------------------------- credentials in use


async def test_a_token_file_that_was_rewritten_is_read_again_after_a_401(server: FaultServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    server.token = "first"
    path = kubeconfig(tmp_path, {"server": f"http://127.0.0.1:{server.port}"}, {"tokenFile": "token"})
    async with ApiSession(await load(path, SystemClock())) as session:
        await session.request("GET", PODS.path)
        token.write_text("second\n")
        server.token = "second"
        await session.request("GET", PODS.path)
        assert [request.headers["authorization"] for request in server.requests] == [
            "Bearer first",
            "Bearer first",
            "Bearer second",
        ]
        server.token = "third"
        with pytest.raises(Unauthorized):
            await session.request("GET", PODS.path)


async def test_a_token_file_is_read_again_each_minute(server: FaultServer, tmp_path: Path) -> None:
    clock = ManualClock()
    token = tmp_path / "token"
    token.write_text("first")
    path = kubeconfig(tmp_path, {"server": f"http://127.0.0.1:{server.port}"}, {"tokenFile": str(token)})
    credentials = await load(path, clock)
    token.write_text("second")
    clock.advance(59)
    assert await credentials.authorization() == "Bearer first"
    clock.advance(2)
    assert await credentials.authorization() == "Bearer second"
    token.unlink()
    clock.advance(61)
    assert await credentials.authorization() == "Bearer second"


PLUGIN = """
    import json, os, pathlib
    runs = pathlib.Path(__file__).with_name("runs")
    count = int(runs.read_text()) + 1 if runs.exists() else 1
    runs.write_text(str(count))
    status = {"token": f"{os.environ['PREFIX']}-{count}"}
    if "EXPIRES" in os.environ:
        status["expirationTimestamp"] = os.environ["EXPIRES"]
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


HANGING = """
    import os, pathlib, time
    pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()))
    time.sleep(3600)
"""


def exec_user(directory: Path, **environment: str) -> dict[str, Any]:
    script = directory / "plugin.py"
    script.write_text(textwrap.dedent(PLUGIN))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "env": [{"name": name, "value": value} for name, value in environment.items()],
        }
    }


async def test_an_exec_plugin_is_run_again_when_its_token_is_refused(server: FaultServer, tmp_path: Path) -> None:
    server.token = "t-1"
    path = kubeconfig(tmp_path, {"server": f"http://127.0.0.1:{server.port}"}, exec_user(tmp_path, PREFIX="t"))
    clock = ManualClock()
    async with ApiSession(await load(path, clock)) as session:
        await session.request("GET", PODS.path)
        clock.advance(3600)
        await session.request("GET", PODS.path)
        server.token = "t-2"
        await session.request("GET", PODS.path)
        assert (tmp_path / "runs").read_text() == "2"


async def test_an_exec_plugin_that_hangs_is_ended_and_what_is_known_goes_on(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.client.token_sources._EXEC_S_MAX", 5.0)
    user = exec_user(tmp_path, PREFIX="t", EXPIRES="2020-01-01T00:00:00Z")
    clock = ManualClock()
    path = kubeconfig(tmp_path, {"server": f"http://127.0.0.1:{server.port}"}, user)
    async with ApiSession(await load(path, clock)) as session:
        (tmp_path / "plugin.py").write_text(textwrap.dedent(HANGING))
        clock.advance(61)
        await session.request("GET", PODS.path)
        assert server.requests[-1].headers["authorization"] == "Bearer t-1"
    assert not (Path("/proc") / (tmp_path / "pid").read_text()).exists()


async def test_many_requests_refused_at_once_run_an_exec_plugin_once(server: FaultServer, tmp_path: Path) -> None:
    server.token = "never this"
    path = kubeconfig(tmp_path, {"server": f"http://127.0.0.1:{server.port}"}, exec_user(tmp_path, PREFIX="t"))
    refusal_count = 0
    async with ApiSession(await load(path, SystemClock())) as session:

        async def ask() -> None:
            nonlocal refusal_count
            with pytest.raises(Unauthorized):
                await session.request("GET", PODS.path)
            refusal_count += 1

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(ask)
    assert refusal_count == 10
    assert (tmp_path / "runs").read_text() == "2"


async def test_an_exec_plugin_is_run_again_when_its_token_expires(server: FaultServer, tmp_path: Path) -> None:
    user = exec_user(tmp_path, PREFIX="t", EXPIRES="2020-01-01T00:00:00Z")
    path = kubeconfig(tmp_path, {"server": f"http://127.0.0.1:{server.port}"}, user)
    clock = ManualClock()
    credentials = await load(path, clock)
    assert await credentials.authorization() == "Bearer t-1"
    clock.advance(61)
    assert await credentials.authorization() == "Bearer t-2"


async def test_a_new_token_that_no_header_can_hold_is_not_used(tmp_path: Path) -> None:
    user = exec_user(tmp_path, PREFIX="t", EXPIRES="2020-01-01T00:00:00Z")
    clock = ManualClock()
    credentials = await load(kubeconfig(tmp_path, {"server": "http://127.0.0.1:1"}, user), clock)
    (tmp_path / "plugin.py").write_text(textwrap.dedent(PLUGIN.replace("{count}", "{count}\\r\\nX: y")))
    clock.advance(61)
    assert await credentials.authorization() == "Bearer t-1"
    assert (tmp_path / "runs").read_text() == "2"


# ---------------------------------------------------------------- TLS


async def test_a_certificate_of_the_configured_authority_is_accepted(anyio_backend: object, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ca_data = base64.b64encode(authority.file.read_bytes()).decode()
    async with tls_server(authority, ip="127.0.0.1") as server:
        url = f"https://127.0.0.1:{server.port}"
        for cluster in (
            {"server": url, "certificate-authority": authority.file.name},
            {"server": url, "certificate-authority-data": ca_data},
            {"server": url, "insecure-skip-tls-verify": True},
        ):
            pod_list = await list_pods(await load(kubeconfig(tmp_path, cluster), SystemClock()))
            assert pod_list["kind"] == "PodList"


async def test_a_certificate_of_another_authority_is_refused_before_anything_is_sent(
    anyio_backend: object, tmp_path: Path
) -> None:
    other_authority = Authority(tmp_path, "other-authority")
    async with tls_server(Authority(tmp_path), ip="127.0.0.1") as server:
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": str(other_authority.file)}
        credentials = await load(kubeconfig(tmp_path, cluster), SystemClock())
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await list_pods(credentials)
        assert server.requests == []


async def test_the_server_is_checked_under_its_tls_name(anyio_backend: object, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with tls_server(authority, dns="kubernetes.test") as server:
        cluster = {
            "server": f"https://127.0.0.1:{server.port}",
            "certificate-authority": str(authority.file),
            "tls-server-name": "kubernetes.test",
        }
        pod_list = await list_pods(await load(kubeconfig(tmp_path, cluster), SystemClock()))
        assert pod_list["kind"] == "PodList"


async def test_a_client_certificate_that_was_rewritten_is_used_for_new_connections(
    anyio_backend: object, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    cert_file, key_file = authority.issue("client")
    async with tls_server(authority, ip="127.0.0.1", clients=True) as server:
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": str(authority.file)}
        user = {"client-certificate": str(cert_file), "client-key": str(key_file)}
        clock = ManualClock()
        credentials = await load(kubeconfig(tmp_path, cluster, user), clock)
        async with ApiSession(credentials) as session:
            await session.request("GET", PODS.path)
            first = server.requests[-1].connection
            cert_file.rename(tmp_path / "old.crt")
            authority.issue("client")
            server.list_faults.append(status(401, "Unauthorized"))
            await session.request("GET", PODS.path)
            assert credentials.generation == 1
            assert server.requests[-1].connection is not first


async def test_a_server_under_another_authority_is_believed_as_soon_as_its_file_says_so(
    anyio_backend: object, tmp_path: Path
) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    file = tmp_path / "ca.crt"
    file.write_bytes(old.file.read_bytes())
    async with tls_server(new, ip="127.0.0.1") as server:
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": str(file)}
        # No time passes: the failure is the reason to look.
        credentials = await load(kubeconfig(tmp_path, cluster), ManualClock())
        async with ApiSession(credentials) as session:
            with pytest.raises(Unreachable, match=r"(?i)certificate"):
                await session.request("GET", PODS.path)
            file.write_text("-----BEGIN")
            with pytest.raises(Unreachable, match=r"(?i)certificate"):
                await session.request("POST", PODS.path, b"{}")
            file.write_bytes(new.file.read_bytes())
            await session.request("GET", PODS.path)
            (await session.stream(PODS.path, deadline_s=20.0, idle_s_max=20.0)).close()
    assert credentials.generation == 1


async def test_a_stream_is_made_with_new_authorities_too(anyio_backend: object, tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    async with tls_server(new, ip="127.0.0.1") as server:
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": str(old.file)}
        credentials = await load(kubeconfig(tmp_path, cluster), ManualClock())
        old.file.write_bytes(new.file.read_bytes())
        async with ApiSession(credentials) as session:
            (await session.stream(PODS.path, deadline_s=20.0, idle_s_max=20.0)).close()


async def test_new_authorities_hold_for_the_next_request_after_a_minute(anyio_backend: object, tmp_path: Path) -> None:
    authority, other_authority = Authority(tmp_path), Authority(tmp_path, "other")
    async with tls_server(authority, ip="127.0.0.1") as server:
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": str(authority.file)}
        clock = ManualClock()
        credentials = await load(kubeconfig(tmp_path, cluster), clock)
        async with ApiSession(credentials) as session:
            await session.request("GET", PODS.path)
            authority.file.write_bytes(other_authority.file.read_bytes())
            await session.request("GET", PODS.path)
            clock.advance(61)
            # The connection that is open was verified by an authority that counts no longer.
            with pytest.raises(Unreachable, match=r"(?i)certificate"):
                await session.request("GET", PODS.path)


async def test_certificates_in_the_kubeconfig_need_no_directory(
    anyio_backend: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    async with tls_server(authority, ip="127.0.0.1", clients=True) as server:
        certificate, key = authority.issue("client")

        def data(file: Path) -> str:
            return base64.b64encode(file.read_bytes()).decode()

        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority-data": data(authority.file)}
        user = {"client-certificate-data": data(certificate), "client-key-data": data(key)}
        path = kubeconfig(tmp_path, cluster, user)
        monkeypatch.setattr(tempfile, "_get_default_tempdir", no_directory)
        monkeypatch.setattr(tempfile, "tempdir", None)
        pod_list = await list_pods(await load(path, SystemClock()))
        assert pod_list["kind"] == "PodList"


def no_directory() -> str:
    raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in []")


async def test_a_user_in_the_servers_url_is_shown_to_the_server_and_to_nobody_else(
    server: FaultServer, tmp_path: Path
) -> None:
    cluster = {"server": f"http://ann:s3%40cr3t@127.0.0.1:{server.port}"}
    credentials = await load(kubeconfig(tmp_path, cluster), SystemClock())
    await list_pods(credentials)
    assert server.requests[-1].headers["authorization"] == f"Basic {base64.b64encode(b'ann:s3@cr3t').decode()}"
    async with ApiSession(credentials) as session:
        (await session.stream(PODS.path, deadline_s=20.0, idle_s_max=20.0)).close()
    assert server.requests[-1].headers["authorization"] == f"Basic {base64.b64encode(b'ann:s3@cr3t').decode()}"
    assert credentials.base_url == f"http://127.0.0.1:{server.port}"


async def test_no_error_holds_the_password_of_a_url(anyio_backend: object, tmp_path: Path) -> None:
    nowhere = f"http://ann:s3cr3t@127.0.0.1:{free_ports(1)[0]}"
    for cluster in (
        {"server": nowhere},
        {"server": "http://api.invalid", "proxy-url": nowhere},
        {"server": "https://api.invalid", "proxy-url": nowhere},
    ):
        async with ApiSession(await load(kubeconfig(tmp_path, cluster), SystemClock())) as session:
            for ask in (
                lambda session=session: session.request("GET", PODS.path),
                lambda session=session: session.stream(PODS.path, deadline_s=20.0, idle_s_max=20.0),
            ):
                with pytest.raises(ApiError) as caught:
                    await ask()
                text = "".join(traceback.format_exception(caught.value))
                assert "s3cr3t" not in text


async def test_the_service_account_of_a_pod_is_used_in_a_cluster(anyio_backend: object, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.file.rename(tmp_path / "ca.crt")
    (tmp_path / "token").write_text("of-the-pod\n")
    async with tls_server(authority, ip="127.0.0.1") as server:
        server.token = "of-the-pod"
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
        pod_list = await list_pods(in_cluster(SystemClock(), environ=environ, directory=tmp_path))
        assert pod_list["kind"] == "PodList"


async def test_requests_go_through_the_configured_proxy(server: FaultServer, tmp_path: Path) -> None:
    cluster = {"server": "http://api.invalid:8080", "proxy-url": f"http://ann:s3cr3t@127.0.0.1:{server.port}"}
    pod_list = await list_pods(await load(kubeconfig(tmp_path, cluster), SystemClock()))
    assert pod_list["kind"] == "PodList"
    headers = server.requests[-1].headers
    assert headers["host"] == "api.invalid:8080"
    assert headers["proxy-authorization"] == f"Basic {base64.b64encode(b'ann:s3cr3t').decode()}"


async def test_bodies_have_limits_behind_a_proxy_too(server: FaultServer, tmp_path: Path) -> None:
    cluster = {"server": "http://api.invalid:8080", "proxy-url": f"http://127.0.0.1:{server.port}"}
    server.write_faults.extend([endless, endless])
    async with ApiSession(await load(kubeconfig(tmp_path, cluster), SystemClock())) as session:
        with pytest.raises(OutcomeUnknown, match="more than"):
            await session.post(BINDING, b"{}")
        with pytest.raises(api_errors.Conflict):
            await session.post("/refused", b"{}")


async def test_pools_of_old_certificates_are_closed_after_some_more(anyio_backend: object, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with tls_server(authority, ip="127.0.0.1") as server:
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": str(authority.file)}
        clock = ManualClock()
        async with ApiSession(await load(kubeconfig(tmp_path, cluster), clock)) as session:
            for _ in range(6):
                await session.request("GET", PODS.path)
                authority.file.write_bytes(authority.file.read_bytes() + b"\n")
                clock.advance(61)
            await session.request("GET", PODS.path)
            assert len(session._retired) == 4


async def test_credentials_that_were_replaced_hold_for_the_next_request(anyio_backend: object, tmp_path: Path) -> None:
    old_authority, new_authority = Authority(tmp_path, "before"), Authority(tmp_path, "after")
    async with (
        tls_server(old_authority, ip="127.0.0.1") as old,
        tls_server(new_authority, dns="kubernetes.test") as new,
    ):
        old.token, new.token = "first", "second"
        cluster = {"server": f"https://127.0.0.1:{old.port}", "certificate-authority": str(old_authority.file)}
        credentials = await load(kubeconfig(tmp_path, cluster, {"token": "first"}), SystemClock())
        async with ApiSession(credentials) as session:
            await session.request("GET", PODS.path)
            cluster = {
                "server": f"https://127.0.0.1:{new.port}",
                "certificate-authority": str(new_authority.file),
                "tls-server-name": "kubernetes.test",
            }
            credentials.take(await load(kubeconfig(tmp_path, cluster, {"token": "second"}), SystemClock()))
            await session.request("GET", PODS.path)
            (await session.stream(PODS.path, deadline_s=20.0, idle_s_max=20.0)).close()
    assert (len(old.requests), len(new.requests)) == (1, 2)


async def test_a_proxy_that_replaced_credentials_name_is_used(server: FaultServer, tmp_path: Path) -> None:
    cluster = {"server": f"http://127.0.0.1:{server.port}"}
    credentials = await load(kubeconfig(tmp_path, cluster), SystemClock())
    async with ApiSession(credentials) as session:
        await session.request("GET", PODS.path)
        cluster = {"server": "http://api.invalid:8080", "proxy-url": f"http://ann:s3cr3t@127.0.0.1:{server.port}"}
        credentials.take(await load(kubeconfig(tmp_path, cluster), SystemClock()))
        await session.request("GET", PODS.path)
    headers = server.requests[-1].headers
    assert headers["host"] == "api.invalid:8080"
    assert headers["proxy-authorization"] == f"Basic {base64.b64encode(b'ann:s3cr3t').decode()}"
