"""One run: a seed, a number of steps, and the history they make.

Every step is one action, some time, and all checks; with even seeds podium runs with `--avoid-conflicts`. From time to
time there is a calm: no more bad luck, and time enough for everything to come to rest; then nothing may be left over,
and a trial is held: one misfortune by itself (`trials`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import anyio
import structlog

from podium.lib.garbage_collection import thaw
from podium.sandbox.embedded import Sandbox
from podium.sandbox.resources import resource_named
from tests.simulation import checkers
from tests.simulation.actors import Actors
from tests.simulation.checkers import Violation
from tests.simulation.devices import TEMPLATES, DeviceActors, check_devices, check_no_claim_held, objects
from tests.simulation.gangs import GangActors, GangChecker, check_no_gang_forgotten
from tests.simulation.network import SimulatedLoop
from tests.simulation.observed import ObservedApp
from tests.simulation.trials import OLDER_STATE, Trials
from tests.virtual_time import START_S

CALM_EVERY: Final = 400
_CALM_S: Final = 120.0
_RIVALS_AFTER_S: Final = 60
_DEATH_CHANCE: Final = 0.004
_STOP_CHANCE: Final = 0.3
_PODS = resource_named("pods")


@dataclass
class History:
    """The events of one seed, and the violation, if there is one."""

    seed: int
    lines: list[str] = field(default_factory=list)
    steps: int = 0
    faults: int = 0
    lives: int = 0
    deaths: int = 0
    bound_count: int = 0
    claimants: int = 0
    violation: Violation | None = None
    simulated_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def digest(self) -> str:
        """The same for the same history."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]


def simulate(
    seed: int,
    steps: int,
    trial: str | None = None,
    *,
    devices: bool = False,
    gangs: bool = False,
    recorded_to: Path | None = None,
) -> History:
    """Run a seed to its end, or to the first violation.

    Args:
        trial: is held after every calm; without it one that is chosen by chance.
        devices: whether nodes have devices, and some pods claims for them.
        gangs: whether some pods are members of gangs.
        recorded_to: each life of podium leaves a recording in this directory.
    """
    history = History(seed)
    return run_seed(
        history,
        lambda: _Simulation(history, steps, trial, devices=devices, gangs=gangs, recorded_to=recorded_to).run(),
    )


def run_seed(history: History, simulate_seed: Callable[[], Coroutine[Any, Any, None]]) -> History:
    """Simulate a seed to its end, or to the first violation, and return its history."""
    started_s = time.process_time()
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        try:
            runner.run(simulate_seed())
        except* Violation as group:
            history.violation = _first(group)
            history.lines.append(f"VIOLATION {history.violation}")
        finally:
            history.simulated_s = runner.get_loop().time()
            history.cpu_s = time.process_time() - started_s
            # Daemons freeze what they find at their start; the next run must not carry this one's objects along.
            thaw()
    return history


def simulate_quietly(job: tuple[int, int, bool, bool], recorded_to: Path | None = None) -> History:
    """A seed, a number of steps, whether there are devices and whether there are gangs; without podium's own log."""
    seed, steps, devices, gangs = job
    return quietly(seed, lambda: simulate(seed, steps, devices=devices, gangs=gangs, recorded_to=recorded_to))


def quietly(seed: int, run: Callable[[], History]) -> History:
    """Run a seed without podium's own log."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - whatever it is
        # A group of errors does not find its way back from another process.
        raise RuntimeError(f"seed {seed}:\n{''.join(traceback.format_exception(error))}") from None


def _first(group: BaseExceptionGroup[Violation]) -> Violation:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


class _Simulation:
    def __init__(
        self,
        history: History,
        steps: int,
        trial: str | None,
        *,
        devices: bool,
        gangs: bool,
        recorded_to: Path | None,
    ) -> None:
        self._has_gangs, self._gang_checker = gangs, GangChecker()
        self._recorded_to = recorded_to
        self._history, self._steps, self._trial, self._has_devices = history, steps, trial, devices
        self._random = Random(history.seed)
        self._avoids_conflicts = history.seed % 2 == 0
        self._assumed: dict[str, str] = {}
        self._violation: Violation | None = None
        self._app: ObservedApp | None = None
        self._life: anyio.CancelScope | None = None
        self._dead_until_s = 0.0

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        assert isinstance(self._loop, SimulatedLoop)
        self._network = self._loop.network
        uids = Random(self._history.seed)
        async with Sandbox(
            now=lambda: datetime.fromtimestamp(START_S + self._loop.time(), UTC),
            new_uid=lambda: f"{uids.getrandbits(64):016x}",
            history_limit=2000,
            controllers=self._has_devices,
        ) as self._sandbox:
            self._actors = Actors(self._sandbox, self._network, self._random, restores=not self._has_devices)
            self._actors.furnish()
            self._devices = DeviceActors(self._sandbox, self._history.seed) if self._has_devices else None
            if self._devices is not None:
                self._devices.furnish()
            templates = TEMPLATES if self._has_devices else ()
            self._gangs = GangActors(self._sandbox, self._history.seed, templates) if self._has_gangs else None
            self._trials = Trials(self._sandbox, self._network, self._random, self._pause)
            self._pods = self._sandbox.store.collection(_PODS)
            self._cursor = self._pods.end
            async with anyio.create_task_group() as self._tasks:
                await self._live()
                for step in range(1, self._steps + 1):
                    self._history.steps = step
                    await self._step()
                    if step % CALM_EVERY == 0 or step == self._steps:
                        await self._calm()
                await self._die(abruptly=False)

    # ------------------------------------------------------------ steps

    async def _step(self) -> None:
        if self._app is None:
            if self._loop.time() >= self._dead_until_s:
                await self._live()
        elif self._random.random() < _DEATH_CHANCE:
            await self._die(abruptly=self._random.random() > _STOP_CHANCE)
            self._dead_until_s = self._loop.time() + self._random.choice((0.0, 2.0, 30.0))
        # What they do may be to have the API server forget its past, or to go back into it.
        self._read_changes()
        line = self._actors.act()
        self._history.faults = self._actors.faults
        if line is not None:
            self._tell(line)
        if self._devices is not None:
            line = self._devices.act()
            self._history.claimants = self._devices.pods_made
            if line is not None:
                self._tell(line)
        if self._gangs is not None and (line := self._gangs.act()) is not None:
            self._tell(line)
        await asyncio.sleep(self._random.choice((0.0, 0.001, 0.01, 0.1, 0.5, 1.5)))
        self._check()

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._check()

    def _check(self) -> None:
        self._read_changes()
        if self._violation is not None:
            raise self._violation
        if self._has_devices:
            check_devices(self._sandbox)
        app = self._app
        if app is None or not app.started:
            return
        checkers.check_no_surprise(app)
        checkers.check_one_place(app)
        checkers.check_reserves(app)
        if self._has_gangs:
            self._gang_checker.check_none_holds_on(app, self._loop.time())

    async def _calm(self) -> None:
        """Let everything come to rest, see that nothing is left over, and hold a trial."""
        self._sandbox.faults.clear()
        self._network.heal()
        self._network.break_connections()
        if self._app is None:
            await self._live()
        self._tell("calm")
        app = self._app
        assert app is not None
        for second in range(int(_CALM_S)):
            await asyncio.sleep(1.0)
            if self._gangs is not None and second == _RIVALS_AFTER_S and (line := self._gangs.create_rivals()):
                self._tell(line)
            if app.started:
                app.is_calm = True
            self._check()
        if not app.started:
            raise Violation("started", "podium has not started after all that time")
        store = self._sandbox.store
        pods, nodes = store.list("pods"), store.list("nodes")
        checkers.check_informed(app, pods, nodes)
        checkers.check_nothing_held(app)
        other_objects = objects(self._sandbox) if self._has_devices else []
        checkers.check_nobody_forgotten(app, pods, nodes, other_objects)
        if self._has_devices:
            check_no_claim_held(app, self._sandbox)
        if self._gangs is not None:
            self._gangs.check_rivals()
            check_no_gang_forgotten(self._sandbox, self._gangs.min_members, other_objects)
            self._gangs.delete_rivals()
        names = [trial for trial in self._trials.all if not (self._has_devices and trial == OLDER_STATE)]
        name = self._trial or self._random.choice(names)
        self._tell(f"trial: {name}")
        await self._trials.run(name)
        app.is_calm = False

    # ------------------------------------------------------------ life and death

    async def _live(self) -> None:
        self._history.lives += 1
        app = self._app = ObservedApp(
            self._sandbox.url,
            Random(self._random.getrandbits(32)),
            self._on_assumed,
            avoids_conflicts=self._avoids_conflicts,
            recorded_to=self._recorded_to and self._recorded_to / f"life-{self._history.lives:02}",
            gangs=self._has_gangs,
        )
        self._assumed.clear()
        self._gang_checker = GangChecker()
        self._life = anyio.CancelScope()
        self._ended = anyio.Event()
        self._tell("start podium" + " --avoid-conflicts" * self._avoids_conflicts)
        self._tasks.start_soon(self._run_app, app, self._life, self._ended)

    async def _run_app(self, app: ObservedApp, life: anyio.CancelScope, end: anyio.Event) -> None:
        def mark_started() -> None:
            app.started = True

        try:
            with life:
                await app.run(mark_started)
        except* Exception as group:  # noqa: BLE001 - whatever ends the daemon is a finding
            app.surprises.append(f"podium ended: {group.exceptions!r}")
        finally:
            if app.recorder is not None:
                app.recorder.close()
            end.set()

    async def _die(self, *, abruptly: bool) -> None:
        app, life = self._app, self._life
        assert app is not None
        assert life is not None
        if abruptly:
            # Nothing that the dying process still does may reach the API server.
            self._network.is_cut = True
            self._network.break_connections()
            life.cancel()
        else:
            app.stop()
        self._tell("kill podium" if abruptly else "stop podium")
        await self._ended.wait()
        self._network.is_cut = False
        self._history.deaths += 1
        checkers.check_no_surprise(app)
        self._app = None

    # ------------------------------------------------------------ what is seen

    def _on_assumed(self, pod: Any, node_name: str) -> None:
        assert self._app is not None
        assert self._app.parts is not None
        self._assumed[pod.uid] = node_name
        if pod.uid in self._app.parts.binding_cycles.under_way:
            return  # Not decided anew: a restore of etcd has made it pending again amid its binding.
        node_by_uid = {uid: name for uid, name in self._assumed.items() if self._is_held(uid)}
        self._assumed = node_by_uid
        try:
            checkers.check_room_at_assumption(self._app, node_by_uid, node_name)
        except Violation as violation:
            # Raised here it would look like a failure of the scheduler's.
            self._violation = self._violation or violation

    def _is_held(self, uid: str) -> bool:
        assert self._app is not None
        assert self._app.parts is not None
        return self._app.parts.cache.is_assumed(uid)

    def _read_changes(self) -> None:
        """Write down what has happened to pods since the last look, and check each change."""
        for change in self._pods.changes_from(max(self._cursor, self._pods.start)):
            checkers.check_binding(change)
            pod, name = change.record.obj, change.record.key[1]
            node = pod["spec"].get("nodeName")
            if node and change.previous is not None and not change.previous.obj["spec"].get("nodeName"):
                self._history.bound_count += 1
                self._tell(f"{name} is bound to {node}")
            elif change.type == "DELETED":
                self._tell(f"{name} is gone")
        self._cursor = self._pods.end

    def _tell(self, text: str) -> None:
        self._history.lines.append(f"{self._loop.time():.4f} {text}")
