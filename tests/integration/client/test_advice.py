"""What people are told of each way in which an API server cannot be reached, from the errors that really come up."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from podium.client.advice import advice_on_configuration, diagnosis_of
from podium.client.credentials import ConnectionConfigError, load
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, from_response
from podium.objects.resource_types import PODS
from tests.control_plane.processes import free_ports
from tests.integration.client.certificates import Authority
from tests.integration.client.test_session import kubeconfig, tls_server

pytestmark = pytest.mark.anyio


async def _diagnose(kubeconfig: str) -> list[str]:
    """The cause by a request and by a watch, which go over different clients, then the advice."""
    credentials = await load(kubeconfig, SystemClock())
    async with ApiSession(credentials) as session:
        with pytest.raises(ApiError) as request:
            await session.request("GET", PODS.path, deadline_s=10)
        with pytest.raises(ApiError) as stream:
            await session.stream(PODS.path, deadline_s=10, idle_s_max=10)
        diagnoses = [diagnosis_of(caught.value) for caught in (request, stream)]
    assert diagnoses[0] == diagnoses[1]
    return list(diagnoses[0])


@pytest.mark.parametrize(
    ("server", "cause", "advice"),
    [
        ("http://127.0.0.1:{free}", "nothing listens at its address", "check that the API server runs"),
        ("https://127.0.0.1:{free}", "nothing listens at its address", "check that the API server runs"),
        ("https://no-such-host.invalid:6443", "its host name cannot be resolved", "DNS"),
    ],
)
async def test_an_address_without_a_server(tmp_path: Path, server: str, cause: str, advice: str) -> None:
    diagnosis = await _diagnose(kubeconfig(tmp_path, {"server": server.format(free=free_ports(1)[0])}))
    assert diagnosis[0] == cause
    assert advice in diagnosis[1]


async def test_a_proxy_that_is_not_there(tmp_path: Path) -> None:
    proxy = f"http://127.0.0.1:{free_ports(1)[0]}"
    diagnosis = await _diagnose(kubeconfig(tmp_path, {"server": "https://10.0.0.1:6443", "proxy-url": proxy}))
    assert diagnosis[0] == "the proxy does not let us through"
    assert "proxy-url" in diagnosis[1]


async def test_certificates_that_do_not_fit(tmp_path: Path) -> None:
    ours, other_authority = Authority(tmp_path), Authority(tmp_path, "other-authority")
    async with tls_server(ours, ip="127.0.0.1") as server:
        cluster: dict[str, Any] = {
            "server": f"https://127.0.0.1:{server.port}",
            "certificate-authority": str(other_authority.file),
        }
        diagnosis = await _diagnose(kubeconfig(tmp_path, cluster))
        assert diagnosis[0] == "its certificate is not from the authority that the kubeconfig names"
        assert "certificate-authority" in diagnosis[1]
        cluster = {**cluster, "certificate-authority": str(ours.file), "tls-server-name": "elsewhere.test"}
        diagnosis = await _diagnose(kubeconfig(tmp_path, cluster))
        assert diagnosis[0] == "its certificate is for other names"
        assert "tls-server-name" in diagnosis[1]


async def test_a_port_that_does_not_speak_tls(tmp_path: Path) -> None:
    async with await _plain_http() as server:
        port = server.sockets[0].getsockname()[1]
        diagnosis = await _diagnose(kubeconfig(tmp_path, {"server": f"https://127.0.0.1:{port}"}))
    assert diagnosis[0] == "it does not speak TLS as we do"
    assert "https or http" in diagnosis[1]


async def _plain_http() -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


async def test_credentials_that_are_refused(anyio_backend: object) -> None:
    diagnosis = diagnosis_of(from_response(401, b""))
    assert diagnosis.cause == "the API server does not accept our credentials"
    assert "exec plugin" in diagnosis.advice


_EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("cluster", "user", "advice"),
    [
        ({}, {"exec": {**_EXEC, "command": "no-such-plugin"}}, "install the plugin's command"),
        ({}, {"exec": {**_EXEC, "command": "false"}}, "run it by hand"),
        ({"certificate-authority": "/no/such/file"}, {}, "certificate-authority must be a PEM file"),
        ({"certificate-authority-data": "?"}, {}, "certificate-authority must be a PEM file"),
        (
            {"certificate-authority-data": base64.b64encode(b"no certificate").decode()},
            {},
            "certificate-authority must be a PEM file",
        ),
        ({}, {"client-certificate": "/no/such/file"}, "client-certificate and client-key"),
        ({}, {"tokenFile": "/no/such/token"}, "write a valid token"),
        ({"server": "nowhere"}, {}, "correct the cluster's server"),
        ({"proxy-url": "socks5://x"}, {}, "correct proxy-url"),
        ({}, {"as": "somebody"}, "credentials of its own"),
    ],
)
async def test_a_connection_that_cannot_be_configured(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], advice: str
) -> None:
    path = kubeconfig(tmp_path, {"server": "https://127.0.0.1:1", **cluster}, user)
    with pytest.raises(ConnectionConfigError) as error:
        await load(path, SystemClock())
    assert advice in advice_on_configuration(str(error.value)), error.value


@pytest.mark.parametrize(
    ("content", "advice"),
    [("", "correct the kubeconfig"), ("clusters: []\ncurrent-context: gone\n", "kubectl config use-context")],
)
async def test_a_kubeconfig_that_says_nothing(tmp_path: Path, content: str, advice: str) -> None:
    (tmp_path / "kubeconfig").write_text(content)
    with pytest.raises(ConnectionConfigError) as error:
        await load(str(tmp_path / "kubeconfig"), SystemClock())
    assert advice in advice_on_configuration(str(error.value)), error.value


async def test_no_kubeconfig_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError) as error:
        await load(None, SystemClock(), environ={"HOME": str(tmp_path)})
    assert advice_on_configuration(str(error.value)) == "give a kubeconfig with --kubeconfig, or run in a pod"
