"""A store with controllers that work when they are told to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from podium.sandbox.controllers import Controllers
from podium.sandbox.pods import bind
from podium.sandbox.store import Store

Json = dict[str, Any]

_ROUNDS_MAX = 50


class ControllersBench:
    """The bench of controllers: objects in, rounds of work, pods that run."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, 12, tzinfo=UTC)
        self._timers: list[tuple[datetime, Callable[[], None]]] = []
        self.store = Store(now=lambda: self._now)
        self._controllers = Controllers(self.store, self._call_later)

    def _call_later(self, delay_s: float, function: Callable[..., None], *arguments: Any) -> None:
        self._timers.append((self._now + timedelta(seconds=delay_s), partial(function, *arguments)))

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass, and run the timers that are due then."""
        self._now += timedelta(seconds=seconds)
        due = [function for time, function in self._timers if time <= self._now]
        self._timers = [(time, function) for time, function in self._timers if time > self._now]
        for function in due:
            function()

    def settle(self, *, running: bool = False) -> None:
        """Work until nothing changes any more; with `running`, all pods get a node and become ready."""
        for _ in range(_ROUNDS_MAX):
            revision = self.store.revision
            self._controllers.work()
            for pod in self.pods() if running else ():
                self.run(pod)
            if self.store.revision == revision:
                return
        raise AssertionError("the controllers come to no end")

    def run(self, pod: Json, node: str = "n1") -> None:
        """Bind a pod and have it ready."""
        if "nodeName" not in pod["spec"]:
            bind(self.store, "default", pod["metadata"]["name"], {"target": {"name": node}})
            ready = [{"type": "Ready", "status": "True"}]
            self.set_phase(pod["metadata"]["name"], "Running", conditions=ready)

    def set_phase(self, name: str, phase: str, **status: Any) -> None:
        pod = self.store.get("pods", name)
        self.store.update(pod | {"status": pod["status"] | {"phase": phase} | status}, subresource="status")

    def pods(self) -> list[Json]:
        """Those that are not being deleted."""
        return [pod for pod in self.store.list("pods") if "deletionTimestamp" not in pod["metadata"]]

    def names(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.pods()}


@pytest.fixture
def bench() -> ControllersBench:
    return ControllersBench()


@pytest.fixture
def workload() -> Callable[..., Json]:
    """A manifest of a kind with a pod template, `restart` and other fields of the spec."""

    def make(kind: str, *, image: str = "web:1", restart: str = "Always", **spec: Any) -> Json:
        labels = {"app": "web"}
        pod = {"containers": [{"name": "main", "image": image}], "restartPolicy": restart}
        selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
        template = {"metadata": {"labels": labels}, "spec": pod}
        version = "batch/v1" if kind == "Job" else "apps/v1"
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": selector | {"template": template} | spec,
        }

    return make
