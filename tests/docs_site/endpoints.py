"""The page of endpoints: every path that podium's servers answer, from the routes and their handlers' docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final

import click
from aiohttp import web

from podium.cli.estimator import command as estimator
from podium.cli.provisioner import command as provisioner
from podium.cli.run import command as run
from podium.cli.shadow import command as shadow
from podium.client.informer_set import InformerSet
from podium.config import default_configuration
from podium.daemon.faces import FACES
from podium.daemon.observers import Observers
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.lib.clock import ManualClock
from podium.server.access_options import OPEN_PATHS
from podium.server.serving.health import Health
from podium.server.serving.plain import health_and_metrics_pages
from podium.server.serving.server import application
from podium.telemetry import Metrics
from tests.docs_site.tables import table

Row = tuple[str, str, str]

_HEAD: Final = """\
# Endpoints

## podium run

Over HTTPS, at `--bind-address` and `--secure-port` ({port} unless set). *Open* paths are for everybody:
`--authorization-always-allow-paths` names others. For all other paths the API server is asked who the user is and
whether they may, which a ClusterRole allows with `nonResourceURLs: [PATH]` and `verbs: [get]` (`delete` for DELETE);
else the answer is 401 or 403. [operations.md](../operations.md#access-to-the-endpoints) has an example. Anything else
is 404.
"""
_PLAIN: Final = """
## {name}

Over plain HTTP, for everybody who reaches the port.
"""
_OPEN: Final = "open"


def endpoints() -> str:
    """Every path of each server, who may ask, and what is answered."""
    parts = [_HEAD.format(port=_default(run, "--secure-port")), *table(_COLUMNS, daemon_rows())]
    servers = {
        "podium estimator serve": estimator.commands["serve"],
        "podium provisioner run": provisioner.commands["run"],
    }
    for name, command in {**servers, "podium shadow": shadow}.items():
        parts += [_PLAIN.format(name=name), *table(_COLUMNS, plain_rows(command))]
    return "".join(parts)


_COLUMNS: Final = ("request", "who may ask", "answer")


def daemon_rows() -> list[Row]:
    """The requests that `podium run` answers, with all that can be turned on."""
    nowhere: Any = None
    clock, random, metrics = ManualClock(), Random(0), Metrics()
    scheduler = Scheduler(
        default_configuration(),
        Options(has_live_page=True),
        nowhere,
        InformerSet(nowhere, clock=clock, random=random),
        Observers(metrics, ""),
        clock=clock,
        random=random,
        metrics=metrics,
    )
    faces = [make(scheduler) for make in FACES]
    own = {path: page for face in faces for path, page in face.pages.items()}
    open_pages = {path: page for face in faces for path, page in face.open_pages.items()}
    app = application(Health(), metrics, dict, pages={**own, **open_pages})
    return list(_rows(app.router.routes(), {*OPEN_PATHS, *open_pages}))


def plain_rows(command: click.Command) -> Iterator[Row]:
    """The requests that a command answers at its addresses for health and for metrics."""
    health, metrics = health_and_metrics_pages(bytes, str, str)
    for flag, pages in {"--health-probe-bind-address": health, "--metrics-bind-address": metrics}.items():
        place = f"`{flag}`, {_default(command, flag) or 'nowhere'} unless set"
        app = web.Application()
        app.add_routes([web.get(path, page) for path, page in pages.items()])
        yield from (
            (request, _OPEN, f"{answer} At {place}.") for request, _, answer in _rows(app.router.routes(), pages)
        )


def _rows(routes: Iterable[web.AbstractRoute], opened: Iterable[str]) -> Iterator[Row]:
    for route in sorted(routes, key=lambda endpoint: (_path(endpoint), endpoint.method)):
        if route.method != "HEAD":  # answered wherever GET is
            who = _OPEN if _path(route) in set(opened) else "authorized"
            yield f"`{route.method} {_path(route)}`", who, inspect.getdoc(route.handler) or ""


def _path(route: web.AbstractRoute) -> str:
    assert route.resource is not None
    return route.resource.canonical


def _default(command: click.Command, flag: str) -> str:
    (option,) = (parameter for parameter in command.params if flag in parameter.opts)
    return str(option.default)
