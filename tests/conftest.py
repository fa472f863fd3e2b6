"""Fixtures every test may ask for: the event loop's backend, the real control plane, and a browser."""

from __future__ import annotations

import gc
import io
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from benchmarks import light_server
from podium.lib import garbage_collection
from podium.plugins.loading import discovery
from podium.telemetry import configure_logging, set_verbosity, verbosity
from tests.browser import chromium, npm
from tests.control_plane.cleanup import empty_cluster
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.control_plane.requirement import built_or_skipped
from tests.control_plane.servers import LARGE_HEAPS, ControlPlane
from tests.distribution import LongestFirst, in_part, is_left_by_check, may_be_left_by_check
from tests.go_tools import binaries as go_tools
from tests.helm.chart import Helm
from tests.patience import PATIENCE_S
from tests.skew import releases

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

# Most of what a worker holds are tests and modules, which last: looking there for garbage is a tenth of its work.
gc.set_threshold(25_000, 50, 100)

# How long an example takes by the wall clock tells of the machine, not of the code.
settings.register_profile("podium", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("podium")


class _TestsFrozen:
    """`gc` as podium has it in tests: only the tests themselves are frozen, for good.

    A daemon collects at its start. Half a million objects of the tests would make that take as long as the test.
    """

    def freeze(self) -> None:
        """Freeze nothing more, which would hide garbage."""

    def unfreeze(self) -> None:
        """Leave the tests frozen."""

    def __getattr__(self, name: str) -> Any:
        return getattr(gc, name)


garbage_collection.gc = _TestsFrozen()


def pytest_collection_finish() -> None:
    """All tests are there."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def lasting_objects_frozen() -> Iterator[None]:
    """What outlives the tests of a file, such as answers that are kept, is not searched for garbage again.

    Each podium that starts within a test collects everything: half a second in a worker that keeps recorded answers.
    """
    yield
    # Of a file that has left few objects nothing need be exempted.
    if any(gc.get_count()[1:]):
        gc.collect()
        gc.freeze()


_configure = structlog.configure


def _without_cache(**values: Any) -> None:
    """A process of podium keeps its loggers as they were on first use. Here a later test captures what they write."""
    _configure(**{**values, "cache_logger_on_first_use": False})


structlog.configure = _without_cache
# Until podium configures its log: a traceback in colours, with the values of variables, takes longer than most tests.
_plain_renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _plain_renderer])

# A file of every installed package is read to find the installed plugins, and they stay while tests run.
discovery.entry_points = lru_cache(discovery.entry_points)


def pytest_addoption(parser: pytest.Parser) -> None:
    """One of several processes may run each part of the tests, and another what those of `make check` have left."""
    parser.addoption("--part", help="run only the files of this part, such as 1/2")
    parser.addoption("--after-check", action="store_true", help="leave out the unit tests that `make check` runs")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of the other parts, and those that `make check` runs as a whole."""
    if not collection_path.name.startswith("test_"):
        return None
    part = config.getoption("part", None)
    is_of_another = part is not None and not in_part(collection_path, part)
    is_run_by_check = config.getoption("after_check", False) and not may_be_left_by_check(collection_path)
    return is_of_another or is_run_by_check or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other tests that `make check` runs."""
    if config.getoption("after_check", False):
        config.hook.pytest_deselected(items=[item for item in items if not is_left_by_check(item)])
        items[:] = [item for item in items if is_left_by_check(item)]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: gzip writes the second into its header, and all workers collect one name."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """`--dist loadfile` begins with the longest files; otherwise xdist chooses."""
    if config.getoption("dist") != "loadfile":
        return None
    return LongestFirst(config, log)


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    """What a test, or podium in it, changes in the log and the garbage collector of the process ends with the test.

    Else it would hide what the next one logs, add to it, or have it count the objects that were exempted for good.
    """
    root, structlog_config, thresholds = logging.getLogger(), structlog.get_config(), gc.get_threshold()
    handlers, level, podium_verbosity = list(root.handlers), root.level, verbosity()
    yield
    set_verbosity(podium_verbosity)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**structlog_config)
    garbage_collection.thaw()
    gc.set_threshold(*thresholds)


@pytest.fixture(scope="module")
def no_log() -> Iterator[None]:
    """podium's own log is off."""
    structlog_config = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**structlog_config)


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": False}


@pytest.fixture
def json_log() -> io.BytesIO:
    """The log lines, as JSON."""
    stream = io.BytesIO()
    configure_logging(form="json", stream=stream)
    return stream


@pytest.fixture(scope="session")
def control_plane_binaries(pytestconfig: pytest.Config) -> Binaries:
    """The binaries of the control plane and kubectl; built on first use, which takes minutes.

    The environment variable `releases.VARIABLE` selects another minor release.
    """
    return built_or_skipped(pytestconfig, "real control plane", releases.obtain)


@pytest.fixture(scope="session")
def tools(pytestconfig: pytest.Config) -> Mapping[str, Path]:
    """helm and promtool; built on first use, which takes minutes. Mark their tests `control_plane`."""
    return built_or_skipped(pytestconfig, "helm and promtool", go_tools.obtain)


@pytest.fixture(scope="session")
def light_server_binary(pytestconfig: pytest.Config) -> Path:
    """The light API server of the benchmarks; built on first use, in seconds. Mark its tests `control_plane`."""
    return built_or_skipped(pytestconfig, "light API server", light_server.obtain)


@pytest.fixture(scope="session")
def helm(tools: Mapping[str, Path]) -> Helm:
    """helm, and the chart."""
    return Helm(tools[go_tools.HELM])


@pytest.fixture(scope="session")
def control_plane(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver, shared by all tests of one process. Mark their tests `control_plane`."""
    plane = ControlPlane.start(control_plane_binaries, LARGE_HEAPS)
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


@pytest.fixture(scope="module")
async def browser(anyio_backend: object, pytestconfig: pytest.Config) -> AsyncIterator[Browser]:
    """A headless Chromium, fetched on first use, which takes half a minute."""
    chromium_binary = built_or_skipped(pytestconfig, "Chromium", chromium.obtain)
    # Imported here: most runs of tests have no page to look at.
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        environ = {**os.environ, **chromium_binary.environ}
        running = await playwright.chromium.launch(executable_path=chromium_binary.program, env=environ)
        yield running
        await running.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """An empty page of 1280 x 800 pixels, with nothing kept from others.

    The test fails if a script of it does, or if the console says that something is wrong.
    """
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    opened, faults = await context.new_page(), []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    yield opened
    await context.close()
    assert faults == []


@pytest.fixture(scope="session")
def axe(pytestconfig: pytest.Config) -> Path:
    """The folder of axe-core, for `tests.browser.axe.serious_faults`."""
    from tests.browser.axe import PACKAGE

    return built_or_skipped(pytestconfig, "axe-core", lambda progress: npm.obtain(PACKAGE, progress))
