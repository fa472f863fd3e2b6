"""Fixtures every test may ask for: the event loop's backend and the real control plane."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from podium.telemetry import configure_logging, set_verbosity
from tests.control_plane.builder import obtain
from tests.control_plane.cleanup import empty_cluster
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.control_plane.requirement import built_or_skipped
from tests.control_plane.servers import ControlPlane
from tests.go_tools import binaries as go_tools
from tests.helm.chart import Helm

# How long an example takes by the wall clock tells of the machine, not of the code.
settings.register_profile("podium", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("podium")


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": False}


@pytest.fixture
def json_log() -> Iterator[io.BytesIO]:
    """What is logged, as lines of JSON; the process's logging is as before afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.BytesIO()
    configure_logging(form="json", stream=stream)
    yield stream
    set_verbosity(2)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def control_plane_binaries(pytestconfig: pytest.Config) -> Binaries:
    """The binaries of the control plane and kubectl; built on first use, which takes minutes."""
    return built_or_skipped(pytestconfig, "real control plane", obtain)


@pytest.fixture(scope="session")
def tools(pytestconfig: pytest.Config) -> Mapping[str, Path]:
    """helm and promtool; built on first use, which takes minutes. Mark their tests `control_plane`."""
    return built_or_skipped(pytestconfig, "helm and promtool", go_tools.obtain)


@pytest.fixture(scope="session")
def helm(tools: Mapping[str, Path]) -> Helm:
    """helm, and the chart."""
    return Helm(tools[go_tools.HELM])


@pytest.fixture(scope="session")
def control_plane(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver, shared by all tests of one process. Mark their tests `control_plane`."""
    plane = ControlPlane.start(control_plane_binaries)
    yield plane
    plane.stop()


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """A client that may do anything on the real API server."""
    tls = control_plane.ssl_context()
    async with Client(control_plane.url, token=control_plane.admin_token, tls=tls) as client:
        yield client


@pytest.fixture
async def empty_control_plane(control_plane: ControlPlane, admin: Client) -> ControlPlane:
    """The real control plane with nothing in it that an earlier test has made."""
    await empty_cluster(admin)
    return control_plane
