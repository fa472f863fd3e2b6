"""Three members of a group on a real API server, killed and stopped round after round while pods come and go."""

from __future__ import annotations

import itertools
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import aiohttp
import anyio
import anyio.to_thread

from tests.e2e.cluster import PODS, ApiError, RealCluster
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.manifests import HOSTNAME, ZONE, node, pod
from tests.patience import PATIENCE_S
from tests.shard_kills.ledger import Ledger
from tests.shard_kills.rounds import Round, Trouble
from tests.shard_kills.server import audit_log, binding_requests, etcd_changes

Json = dict[str, Any]

MEMBERS: Final = ("m1", "m2", "m3")
_GROUP: Final = "shards"
_NAMESPACE: Final = "kube-system"
_ATTEMPTING: Final = "Attempting to acquire leader lease..."
_NODES, _ZONES = 24, 4
_POD_MILLI: Final = (100, 200, 300, 500)
_RUNNING_PODS: Final = 110
"""Three quarters of what the nodes have: many pods do not fit at first, and there is always a node with room."""
_PODS_PER_TICK, _TICK_S = 2, 0.25
_SPREAD_EVERY: Final = 6
"""Such pods the overseer places on nodes of all members."""
_LOOK_S: Final = 0.1
_FAIR_EXITS: Final = (-signal.SIGKILL, 1)
"""Killed, or ended because the Lease was lost."""


@dataclass(frozen=True, slots=True)
class Timings:
    """How long a Lease is valid, until when it must be renewed, and how often that is tried, in seconds."""

    lease_s: float = 8.0
    renew_deadline_s: float = 6.0
    retry_s: float = 1.0

    def election(self) -> Json:
        """Return the election of a configuration."""
        return {
            "leaderElect": True,
            "leaseDuration": f"{self.lease_s}s",
            "renewDeadline": f"{self.renew_deadline_s}s",
            "retryPeriod": f"{self.retry_s}s",
        }


class Member:
    """A member that is started again whenever it has ended, as by a kubelet.

    Attributes:
        is_held: whether it stays ended for now.
    """

    def __init__(self, name: str, directory: Path, kubeconfig: Path, timings: Timings) -> None:
        self.name = name
        self.lives: list[Daemon] = []
        self.is_held = False
        self._directory, self._kubeconfig, self._timings = directory, kubeconfig, timings

    def keep_running(self) -> None:
        """Start it if it has ended. Raises: AssertionError if it ended in another way than it should."""
        if self.lives and not self.lives[-1].is_running:
            self.check_end()
        if not self.is_held and (not self.lives or not self.lives[-1].is_running):
            directory = self._directory / f"{self.name}-{len(self.lives)}"
            flags = ("--shards", _GROUP, "--shard-member", self.name, "--shard-key", HOSTNAME)
            config = configuration(leaderElection=self._timings.election())
            self.lives.append(Daemon(directory, self._kubeconfig, config, flags=flags))

    def check_end(self) -> None:
        """Check how the last life has ended, if it has."""
        life = self.lives[-1]
        is_fair = life.exit_code in (None, *_FAIR_EXITS) and "Traceback" not in life.output()
        assert is_fair, f"{self.name} ended with {life.exit_code}:\n{life.output()[-3000:]}"

    @property
    def holder(self) -> str:
        """The name by which the running process holds its Lease; "" if it has not tried yet."""
        return next((entry["identity"] for entry in self.lives[-1].log(_ATTEMPTING)), "")


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What came of a round.

    Attributes:
        seconds: from the kill until each node had a living member that may decide on it.
        limit_s: what it may have been; None if no other member lived through it. Then new processes have to see first
            that the Leases of their predecessors and of each other run out.
    """

    trouble: Trouble
    seconds: float
    limit_s: float | None

    @property
    def is_late(self) -> bool:
        """Whether another member should have taken over earlier."""
        return self.limit_s is not None and self.seconds > self.limit_s


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run whose rules all held.

    Attributes:
        ends: how often members have ended, by exit code.
        unattributed: bindings of which the audit log does not say who made them.
        refusals: requests for bindings that the API server has refused.
    """

    take_overs: list[TakeOver]
    ends: Counter[int]
    bound_count: int
    unattributed: int
    refusals: int


@dataclass
class Trial:
    """A run.

    Args:
        allowance_s: how much longer than a Lease's duration it may take until a killed member's nodes are taken over.
    """

    cluster: RealCluster
    directory: Path
    timings: Timings
    allowance_s: float = 3.0
    report: Callable[[str], None] = lambda _: None
    members: list[Member] = field(default_factory=list)

    async def run(self, rounds: Sequence[Round]) -> Outcome:
        """Play the rounds.

        Raises:
            AssertionError: a pod was bound twice or not at all, a node was overfull, two members acted on one, or a
                member failed.
        """
        nodes = [
            node(f"node-{number}", "2000m", memory="8192Mi", pods="20", labels={ZONE: f"zone-{number % _ZONES}"})
            for number in range(_NODES)
        ]
        self._ledger = Ledger(_GROUP, nodes)
        self._is_over, self._down_s = False, 0.0
        await self._admit_members()
        await self.cluster.create(*nodes)
        try:
            for member in self.members:
                member.keep_running()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch)
                tasks.start_soon(self._keep_running)
                await self._wait_divided()
                tasks.start_soon(self._create_pods)
                take_overs = [await self._play(number, item) for number, item in enumerate(rounds, 1)]
                self._is_over = True
                await self._wait_divided()
                await eventually(self._all_bound)
                tasks.cancel_scope.cancel()
        except BaseException as error:
            for member in self.members:
                error.add_note(f"{member.name}: {member.lives[-1].output()[-3000:]}")
            raise
        finally:
            for member in self.members:
                for life in member.lives:
                    life.kill()
        requests, refusals = binding_requests(audit_log(self.directory))
        unattributed = self._ledger.check_acts(requests)
        ends = Counter(life.exit_code or 0 for member in self.members for life in member.lives[:-1])
        return Outcome(take_overs, ends, len(self._ledger.bindings), unattributed, refusals)

    async def _admit_members(self) -> None:
        admin, plane = self.cluster.admin, self.cluster.plane
        subjects = [{"kind": "ServiceAccount", "namespace": _NAMESPACE, "name": name} for name in MEMBERS]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"metadata": {"name": _GROUP}, "roleRef": role, "subjects": subjects}
        await admin.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        for name in MEMBERS:
            await admin.create(f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts", {"metadata": {"name": name}})
            token = await admin.service_account_token(_NAMESPACE, name)
            self.members.append(Member(name, self.directory, plane.kubeconfig(token), self.timings))

    # ------------------------------------------------------------ tasks of the whole run

    async def _watch(self) -> None:
        async for change in etcd_changes(self.cluster.plane.etcd_address):
            self._ledger.take(change)

    async def _keep_running(self) -> None:
        while True:
            await anyio.sleep(_LOOK_S)
            for member in self.members:
                member.keep_running()

    async def _create_pods(self) -> None:
        """Have pods come steadily, and the oldest ones leave."""
        random, numbers = Random(1), itertools.count(1)
        while not self._is_over:
            # Never more wait than fit together.
            is_full = len(self._ledger.waiting) > _RUNNING_PODS
            for number in itertools.islice(numbers, 0 if is_full else _PODS_PER_TICK):
                item = _pod(number, random.choice(_POD_MILLI))
                await _until_answered(lambda item=item: self.cluster.admin.create(PODS, item))
            for name in self._ledger.bound_pods()[:-_RUNNING_PODS]:
                await _until_answered(lambda name=name: self.cluster.delete_pod(name))
            await anyio.sleep(_TICK_S)

    # ------------------------------------------------------------ rounds

    async def _play(self, number: int, item: Round) -> TakeOver:
        victim = self.members[item.victim]

        async def is_member() -> bool:
            return victim.holder in self._ledger.holders(time.time())

        await (eventually(is_member) if item.is_early else self._wait_divided())
        self._down_s = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._make_trouble, item)
            await anyio.sleep(item.kill_after_s)
            victim.is_held = not item.restarts_at_once
            dead_holder = victim.holder
            victim.lives[-1].kill()
            killed_s = time.monotonic()
            survivors = self._survivors(item)

            async def is_taken_over() -> bool:
                return self._ledger.is_divided(time.time(), dead_holder)

            await eventually(is_taken_over)
            seconds = time.monotonic() - killed_s
        victim.is_held = False
        has_survivor = any(life.is_running for life in survivors)
        result = TakeOver(item.trouble, seconds, self._limit_s(item) if has_survivor else None)
        alone = "" if has_survivor else ", no other member lived through it"
        count = len(self._ledger.bindings)
        self.report(f"{number:4} {victim.name} {item.trouble.value}: {seconds:.1f} s{alone}, {count} bound")
        return result

    def _survivors(self, item: Round) -> list[Daemon]:
        """Return the processes that hold a Lease and are not meant to lose it in this round."""
        holders = self._ledger.holders(time.time())
        stopped_member = self.members[item.bystander] if item.trouble is Trouble.LOST else None
        candidates = [member for member in self.members if member not in (self.members[item.victim], stopped_member)]
        return [member.lives[-1] for member in candidates if member.holder in holders]

    def _limit_s(self, item: Round) -> float:
        """Return how long the take-over may last if another member lives through it."""
        limit_s = self.timings.lease_s + self.allowance_s + self._down_s
        if item.is_early:
            # Then the hand-over before is still under way.
            limit_s += self.allowance_s
        lag_s = item.trouble_after_s - item.kill_after_s
        if item.trouble is Trouble.SLOW:
            # Once it goes on, it may see for the first time that the victim had renewed its Lease.
            lag_s += item.stop_share * self.timings.lease_s
        if item.trouble in (Trouble.SLOW, Trouble.LOST):
            # The other member's Lease may run out last.
            limit_s += max(0.0, lag_s)
        return limit_s

    async def _make_trouble(self, item: Round) -> None:
        await anyio.sleep(item.trouble_after_s)
        plane, started_s = self.cluster.plane, time.monotonic()
        match item.trouble:
            case Trouble.SLOW | Trouble.LOST:
                bystander = self.members[item.bystander].lives[-1]
                bystander.signal(signal.SIGSTOP)
                try:
                    await anyio.sleep(item.stop_share * self.timings.lease_s)
                finally:
                    bystander.signal(signal.SIGCONT)
            case Trouble.ETCD:
                await anyio.to_thread.run_sync(plane.restart_etcd)
                self._down_s = time.monotonic() - started_s
            case Trouble.API_SERVER:
                assert plane.apiserver is not None
                plane.apiserver.kill()
                await anyio.to_thread.run_sync(plane.start_apiserver)
                self._down_s = time.monotonic() - started_s

    async def _wait_divided(self) -> None:
        async def is_divided() -> bool:
            now_s = time.time()
            assert {member.holder for member in self.members} == self._ledger.holders(now_s), (
                "not all members are there"
            )
            assert self._ledger.is_divided(now_s), "the nodes are not divided"
            return True

        await eventually(is_divided)

    async def _all_bound(self) -> bool:
        assert not self._ledger.waiting, f"not bound: {sorted(self._ledger.waiting)[:5]}"
        return True


def _pod(number: int, cpu_milli: int) -> Json:
    spread = {
        "maxSkew": _RUNNING_PODS,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    spec = {} if number % _SPREAD_EVERY else {"topologySpreadConstraints": [spread]}
    return pod(f"web-{number}", f"{cpu_milli}m", labels={"app": "web"}, **spec)


async def _until_answered(request: Callable[[], Awaitable[object]]) -> None:
    """Repeat a request until it has been carried out."""
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            await request()
            return
        except ApiError as error:
            # A request whose answer was lost has created or deleted it already.
            if error.status in (404, 409):
                return
            failure: Exception = error
        except (aiohttp.ClientError, TimeoutError) as error:
            failure = error
        if time.monotonic() > ends_s:
            raise failure
        await anyio.sleep(_TICK_S)
