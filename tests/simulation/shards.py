"""Three schedulers that divide the nodes among them, with one API server between them, in virtual time.

`python -m tests.simulation --shards` runs seeds. After every step no node has two owners or is overfull, no pod has
left its node, and every member knows the pods on its own nodes; after every calm no pod waits that would fit, and the
members have divided all nodes. With `--gangs` some pods are members of gangs, with `--devices` some have claims for
devices.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import anyio

from podium.cli.options.shards import shard_configuration
from podium.config import IN_TREE_PLUGINS, KubeSchedulerConfiguration, load
from podium.daemon.app import App
from podium.daemon.face import Face
from podium.daemon.faces import FACES, stall_watch
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.framework.profile.runtime import points_of
from podium.objects.coscheduling import GROUP_LABEL
from podium.plugins import IN_TREE
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from podium.plugins.shards import Shards
from podium.plugins.shared.shard_state import ShardState
from podium.sandbox.embedded import Sandbox
from podium.sandbox.resources import resource_named
from podium.server.election import LeadershipLostError
from podium.shards import ShardIdentity
from tests.manifests import HOSTNAME, ZONE
from tests.simulation import checkers, random_objects
from tests.simulation.actors import Actors
from tests.simulation.checkers import Violation
from tests.simulation.devices import TEMPLATES, DeviceActors, check_devices, objects
from tests.simulation.gangs import PERMIT_S, GangActors, check_no_gang_forgotten
from tests.simulation.network import SimulatedLoop, client_name
from tests.simulation.simulation import History, quietly, run_seed
from tests.virtual_time import START_S, LoopClock

MEMBERS: Final = ("m1", "m2", "m3")
CALM_EVERY: Final = 400
_CALM_S: Final = 180
_CATCH_UP_S: Final = 150
_RIVALS_AFTER_S: Final = 60
_KEYS: Final = (ZONE, HOSTNAME, "simulation/absent")
_WITHOUT_RULES: Final = 2
"""The seeds without rules: those whose quotient by the number of labels has this remainder by three."""
_KILL, _STOP, _SPLIT, _REVIVE = 0.006, 0.003, 0.006, 0.05
_SPLIT_S: Final = (1.0, 4.0, 9.0, 14.0, 40.0)
_PODS = resource_named("pods")
_PLUGINS = {**IN_TREE, Coscheduling.name: Coscheduling, Shards.name: Shards}
_TEXT = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {random_objects.OURS}"""
_GANGS = f"""
  plugins: {{multiPoint: {{disabled: [{{name: PrioritySort}}], enabled: [{{name: Coscheduling}}]}}}}
  pluginConfig: [{{name: Coscheduling, args: {{permitWaitingTimeSeconds: {PERMIT_S}}}}}]
"""


def shard_of(member: str, shard_key: str, *, gangs: bool) -> tuple[KubeSchedulerConfiguration, ShardIdentity]:
    """Return the configuration and the identity of a member; with gangs, Coscheduling is enabled."""
    identity = ShardIdentity("shards", member, shard_key)
    registry = {**IN_TREE_PLUGINS, **{name: points_of(_PLUGINS[name]) for name in (Coscheduling.name, Shards.name)}}
    text = _TEXT + (_GANGS if gangs else "")
    return shard_configuration(load(text, "simulation", registry).config, identity), identity


class Actions(Actors):
    """Without a neighbour and without nodes that shrink: then only a mistake between members can fill a node.

    In some seeds no pod has rules that reach over nodes: such pods make members decode all pods of the others.
    """

    has_rules = True

    def place_foreign_pod(self) -> str | None:
        """Place nothing."""
        return None

    def resize_node(self) -> str | None:
        """Leave nodes as they are."""
        return None

    def _draw_pod(self, name: str) -> dict[str, Any]:
        pod = super()._draw_pod(name)
        if not self.has_rules:
            for field in ("affinity", "topologySpreadConstraints"):
                pod["spec"].pop(field, None)
        return pod


class Member(App):
    """One daemon of the group, whose parts can be looked at."""

    def __init__(self, name: str, shard_key: str, url: str, random: Random, *, gangs: bool = False) -> None:
        config, identity = shard_of(name, shard_key, gangs=gangs)
        options = Options(master=url, secure_port=0, plugins=_PLUGINS, shards=identity)
        faces = (*(face for face in FACES if face is not stall_watch), self._look_on)
        super().__init__(config, options, clock=LoopClock(), random=random, faces=faces)
        self.name = name
        self.parts: Scheduler | None = None
        self.surprises: list[str] = []
        self.life = anyio.CancelScope()
        self.ended = anyio.Event()
        self.metrics.count_unexpected_error = self._note_surprise  # type: ignore[method-assign]

    @property
    def shards(self) -> ShardState:
        assert self.parts is not None
        return self.parts.share(ShardState)

    @property
    def may_act(self) -> bool:
        """True while the member's Lease allows it to write."""
        return self._term is not None and self._term.may_write()

    async def live(self) -> None:
        """Run until it is stopped, killed, or has lost its Lease."""
        try:
            with self.life:
                await self.run()
        except* LeadershipLostError:
            pass
        except* Exception as group:  # noqa: BLE001 - whatever else ends the daemon is a finding
            if group.subgroup(lambda error: "leader election" in str(error)) is None:
                self.surprises.append(f"{self.name} ended: {group.exceptions!r}")
        finally:
            self.ended.set()

    def _note_surprise(self, where: str, name: str) -> None:
        if (where, name) != ("task", "leader election"):
            self.surprises.append(f"unexpected error in {where} {name}")

    def _look_on(self, scheduler: Scheduler) -> Face:
        self.parts = scheduler
        return Face()


class ShardSimulation:
    """One run of a seed."""

    def __init__(self, history: History, steps: int, *, devices: bool, gangs: bool) -> None:
        self._history, self._steps = history, steps
        self._has_devices, self._has_gangs = devices, gangs
        self._random = Random(history.seed)
        self._shard_key = _KEYS[history.seed % len(_KEYS)]
        self._members: dict[str, Member] = {}
        self._mended_at_s: dict[str, float] = {}

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self._loop, self._network = loop, loop.network
        uids = Random(self._history.seed)
        async with Sandbox(
            now=lambda: datetime.fromtimestamp(START_S + loop.time(), UTC),
            new_uid=lambda: f"{uids.getrandbits(64):016x}",
            history_limit=2000,
            controllers=self._has_devices,
        ) as self._sandbox:
            self._actors = Actions(self._sandbox, self._network, self._random, restores=False)
            self._actors.has_rules = self._history.seed // len(_KEYS) % 3 != _WITHOUT_RULES
            self._actors.furnish()
            self._devices = DeviceActors(self._sandbox, self._history.seed) if self._has_devices else None
            if self._devices is not None:
                self._devices.furnish()
            templates = TEMPLATES if self._has_devices else ()
            self._gangs = GangActors(self._sandbox, self._history.seed, templates) if self._has_gangs else None
            self._pods = self._sandbox.store.collection(_PODS)
            self._cursor = self._pods.end
            async with anyio.create_task_group() as self._tasks:
                for name in MEMBERS:
                    self._start(name)
                for step in range(1, self._steps + 1):
                    self._history.steps = step
                    await self._step()
                    if step % CALM_EVERY == 0 or step == self._steps:
                        await self._calm()
                for member in self._members.values():
                    member.life.cancel()

    async def _step(self) -> None:
        await self._fate()
        self._read_changes()
        actors = [actors for actors in (self._actors, self._devices, self._gangs) if actors is not None]
        for line in [actor.act() for actor in actors]:
            if line is not None:
                self._tell(line)
        self._history.faults = self._actors.faults
        if self._devices is not None:
            self._history.claimants = self._devices.pods_made
        await asyncio.sleep(self._random.choice((0.0, 0.001, 0.01, 0.1, 0.5, 1.5)))
        self._check()

    async def _fate(self) -> None:
        """Kill, stop, split and revive members by chance."""
        for name in MEMBERS:
            member, chance = self._members.get(name), self._random.random()
            if member is not None and member.ended.is_set():
                self._bury(member)
            elif member is None:
                if chance < _REVIVE:
                    self._start(name)
            elif chance < _KILL:
                await self._kill(member)
            elif chance < _KILL + _STOP:
                self._tell(f"stop {name}")
                member.stop()
            elif chance < _KILL + _STOP + _SPLIT and name not in self._mended_at_s:
                seconds = self._random.choice(_SPLIT_S)
                self._tell(f"split {name} from the API server for {seconds:.0f} s")
                self._network.cut_off(name)
                self._mended_at_s[name] = self._loop.time() + seconds
        self._mend(self._loop.time())

    def _mend(self, now_s: float) -> None:
        for name in [name for name, at_s in self._mended_at_s.items() if at_s <= now_s]:
            del self._mended_at_s[name]
            self._network.mend(name)

    async def _kill(self, member: Member) -> None:
        # Nothing that the dying process still does may reach the API server.
        self._network.cut_off(member.name)
        member.life.cancel()
        await member.ended.wait()
        self._tell(f"kill {member.name}")
        self._bury(member)

    def _bury(self, member: Member) -> None:
        self._tell(f"{member.name} has ended")
        self._history.deaths += 1
        _check_no_surprise(member)
        del self._members[member.name]
        self._mended_at_s.pop(member.name, None)
        self._network.mend(member.name)

    def _start(self, name: str) -> None:
        self._history.lives += 1
        self._tell(f"start {name}")
        random = Random(self._random.getrandbits(32))
        member = Member(name, self._shard_key, self._sandbox.url, random, gangs=self._has_gangs)
        self._members[name] = member
        token = client_name.set(name)
        self._tasks.start_soon(member.live)
        client_name.reset(token)

    # ------------------------------------------------------------ what must be true

    def _check(self) -> None:
        self._read_changes()
        nodes = checkers.stored_objects(self._sandbox, "nodes")
        check_one_owner(self._members.values(), nodes)
        check_own_nodes_known(self._members.values())
        check_no_node_overfull(checkers.stored_objects(self._sandbox, "pods"), nodes)
        if self._has_devices:
            check_devices(self._sandbox)
        for member in self._members.values():
            _check_no_surprise(member)

    def _read_changes(self) -> None:
        for change in self._pods.changes_from(max(self._cursor, self._pods.start)):
            checkers.check_binding(change)
            pod, name = change.record.obj, change.record.key[1]
            node = pod["spec"].get("nodeName")
            if node and change.previous is not None and not change.previous.obj["spec"].get("nodeName"):
                self._history.bound_count += 1
                self._tell(f"{name} is bound to {node}")
        self._cursor = self._pods.end

    async def _calm(self) -> None:
        """Let everything come to rest, and see that all nodes are divided and no pod is forgotten."""
        self._sandbox.faults.clear()
        self._network.heal()
        self._network.break_connections()
        self._mend(float("inf"))
        self._tell("calm")
        for second in range(_CALM_S):
            for name in MEMBERS:
                member = self._members.get(name)
                if member is not None and member.ended.is_set():
                    self._bury(member)
                elif member is None:
                    self._start(name)
            await asyncio.sleep(1.0)
            if self._gangs is not None and second == _RIVALS_AFTER_S and (line := self._gangs.create_rivals()):
                self._tell(line)
            self._check()
            if second >= _CATCH_UP_S:
                self._check_divided()
        pods, nodes = self._sandbox.store.list("pods"), self._sandbox.store.list("nodes")
        for member in self._members.values():
            assert member.parts is not None
            if assumed_count := member.parts.cache.statistics()["assumed_pods"]:
                raise Violation("assumed", f"{assumed_count} pods are still assumed by {member.name}")
        device_objects = objects(self._sandbox) if self._has_devices else []
        check_nobody_forgotten(pods, nodes, device_objects)
        if self._gangs is not None:
            self._gangs.check_rivals()
            check_no_gang_forgotten(self._sandbox, self._gangs.min_members, device_objects)
            self._gangs.delete_rivals()

    def _check_divided(self) -> None:
        for node in checkers.stored_objects(self._sandbox, "nodes"):
            name = node["metadata"]["name"]
            if not any(member.shards.owns(name) for member in self._members.values()):
                raise Violation("divided", f"no member owns {name}")

    def _tell(self, line: str) -> None:
        self._history.lines.append(f"{self._loop.time():10.3f} {line}")


def check_one_owner(members: Any, nodes: list[Any]) -> None:
    """Of the members whose Leases are valid, one at most decides on a node, and one on pods that need all nodes."""
    active = [member for member in members if member.parts is not None and not member.ended.is_set() and member.may_act]
    overseers = [member.name for member in active if member.shards.oversees]
    if len(overseers) > 1:
        raise Violation("one overseer", f"{' and '.join(overseers)} see all nodes")
    for node in nodes:
        name = node["metadata"]["name"]
        owners = [member.name for member in active if member.shards.owns(name)]
        if len(owners) > 1:
            raise Violation("one owner", f"{' and '.join(owners)} own {name}")


def check_own_nodes_known(members: Any) -> None:
    """No member has left a pod undecoded that is bound to a node that it decides on."""
    for member in members:
        for pod in () if member.parts is None else member.parts.pods_aside():
            if pod.node_name and member.shards.owns(pod.node_name):
                raise Violation("known", f"{member.name} owns {pod.node_name}, and has not decoded {pod.key} on it")


def check_no_node_overfull(pods: list[Any], nodes: list[Any]) -> None:
    """No node has more than it offers."""
    for node in nodes:
        name = node["metadata"]["name"]
        requests = [
            random_objects.requests_of(pod)
            for pod in pods
            if pod["spec"].get("nodeName") == name and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        amounts, capacity = random_objects.total_amounts(requests), random_objects.room(node["status"])
        if any(need > has for need, has in zip(amounts, capacity, strict=True)):
            raise Violation("overfull", f"{name} holds {amounts} and offers {capacity}")


def check_nobody_forgotten(pods: list[Any], nodes: list[Any], device_objects: list[Any]) -> None:
    """After a calm, no pod waits that one scheduler of all nodes would place; members of gangs may have to."""
    for pod in pods:
        spec = pod["spec"]
        if spec["schedulerName"] != random_objects.OURS or spec.get("nodeName") or spec.get("schedulingGates"):
            continue
        if "deletionTimestamp" in pod["metadata"] or GROUP_LABEL in pod["metadata"].get("labels", {}):
            continue
        checkers.check_fits_nowhere(pod, pods, [*nodes, *device_objects])


def _check_no_surprise(member: Member) -> None:
    if member.surprises:
        raise Violation("surprise", member.surprises[0])


def simulate_shards(seed: int, steps: int, *, devices: bool = False, gangs: bool = False) -> History:
    """Run a seed to its end, or to the first violation."""
    history = History(seed)
    return run_seed(history, lambda: ShardSimulation(history, steps, devices=devices, gangs=gangs).run())


def simulate_shards_quietly(job: tuple[int, int, bool, bool]) -> History:
    """Run a seed for a number of steps, with devices and with gangs or without, and without the members' own log."""
    seed, steps, devices, gangs = job
    return quietly(seed, lambda: simulate_shards(seed, steps, devices=devices, gangs=gangs))
