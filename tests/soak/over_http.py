"""`podium run` as a process of its own against the sandbox, while pods and nodes come and go."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio

from podium.sandbox import Sandbox
from tests.e2e.daemon import Daemon
from tests.soak import pods
from tests.soak.growth import Sample, sample

_ALIVE: Final = 1_000
_WAITING_MAX: Final = 300
_NODE_EVERY: Final = 500
_SETTLE_S: Final = 5.0
_BOUND_S_MAX: Final = 120.0
_LOOK_S: Final = 0.02
_NAMESPACE: Final = "default"
_FLAGS: Final = ("--recorder-memory", "2Mi")
"""The flight recorder is full as soon as the other caches are."""


async def run(
    seconds: float, count: int, tell: Callable[[Sample], None], *, recording: Path | None = None
) -> list[Sample]:
    """Go on for so long; that many samples, equally far apart. podium records into `recording`, if given."""
    flags = _FLAGS if recording is None else (*_FLAGS, "--record", str(recording))
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as directory:
        async with Sandbox(kubelets=False, history_limit=5_000) as sandbox:
            place = Path(directory)
            kubeconfig = sandbox.write_kubeconfig(place / "kubeconfig")
            daemon = Daemon(place / "podium", kubeconfig, token="soak", flags=flags)
            try:
                await daemon.wait_ready()
                churn, started_s = _Churn(sandbox), time.monotonic()
                for _ in range(count):
                    await churn.until(time.monotonic() + seconds / count)
                    tasks = int(await daemon.metric("scheduler_goroutines"))
                    last_sample = sample(daemon.pid, seconds=time.monotonic() - started_s, pods=churn.made, tasks=tasks)
                    samples.append(last_sample)
                    tell(last_sample)
                assert await daemon.stop() == 0, daemon.output()[-2000:]
            finally:
                daemon.kill()
    return samples


class _Churn:
    """Works on the sandbox's store, as users and kubelets would over HTTP."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.made = 0
        self._store = sandbox.store
        self._nodes = list(range(pods.NODES))
        for number in self._nodes:
            self._store.create(pods.numbered_node(number))

    async def until(self, ends_s: float) -> None:
        """Make pods till then; returns when all is at rest."""
        while time.monotonic() < ends_s:
            waiting = self._tidy()
            for _ in range(max(0, _WAITING_MAX - waiting)):
                self._store.create(pods.numbered_pod(self.made))
                self.made += 1
                if self.made % _NODE_EVERY == 0:
                    self._replace_node()
            await anyio.sleep(_LOOK_S)
        give_up_s = time.monotonic() + _BOUND_S_MAX
        while self._tidy():
            assert time.monotonic() < give_up_s, "pods are not bound"
            await anyio.sleep(_LOOK_S)
        await anyio.sleep(_SETTLE_S)

    def _tidy(self) -> int:
        """Let the oldest pods go; returns how many wait that fit somewhere."""
        every = self._store.list("pods")
        settled = [pod for pod in every if pod["spec"].get("nodeName") or _is_hopeless(pod)]
        for pod in settled[: max(0, len(settled) - _ALIVE)]:
            self._delete(pod)
        return len(every) - len(settled)

    def _replace_node(self) -> None:
        name = f"node-{self._nodes.pop(0)}"
        for pod in self._store.list("pods"):
            if pod["spec"].get("nodeName") == name:
                self._delete(pod)
        self._store.delete("nodes", name)
        self._nodes.append(self._nodes[-1] + 1)
        self._store.create(pods.numbered_node(self._nodes[-1]))

    def _delete(self, item: pods.Json) -> None:
        self._store.delete("pods", item["metadata"]["name"], _NAMESPACE, grace_period_s=0)


def _is_hopeless(item: pods.Json) -> bool:
    return pods.fits_nowhere(int(item["metadata"]["name"].removeprefix("pod-")))
