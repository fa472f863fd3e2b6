"""A few seeds of the simulation of shards; `python -m tests.simulation --shards` runs many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random

import anyio
import pytest
from structlog.testing import capture_logs

import podium
from podium.objects.coscheduling import GROUP_LABEL, MIN_MEMBER
from podium.sandbox.embedded import Sandbox
from podium.shards import OVERSEER, owner
from podium.shards.announcement import PROTOCOL
from tests import manifests
from tests.manifests import HOSTNAME, ZONE
from tests.simulation import random_objects
from tests.simulation.actors import BINDINGS
from tests.simulation.devices import RESOURCE, DeviceActors, check_devices
from tests.simulation.network import SimulatedLoop, client_name
from tests.simulation.shards import (
    Member,
    check_no_node_overfull,
    check_own_nodes_known,
    simulate_shards_quietly,
)
from tests.virtual_time import START_S

KEPT = {
    # A member that had just started dropped the pods of the first list.
    1: 200,
    # A plugin that was asked last let pods be bound to other members' nodes.
    4: 400,
    # Nodes that lack the label are divided one by one.
    2: 200,
    # The overseer, the last member to try a pod on its own nodes, did not try it on all nodes then.
    70051: 400,
}
"""Seeds worth so many steps each time: those that broke a rule, with what was wrong."""


@pytest.mark.parametrize(("seed", "steps"), KEPT.items())
def test_members_share_nodes_and_pods_whatever_happens(seed: int, steps: int) -> None:
    history = simulate_shards_quietly((seed, steps, False, False))
    assert history.violation is None, "\n".join(history.lines[-25:])
    assert history.bound_count
    assert history.deaths


def test_the_same_seed_makes_the_same_history() -> None:
    first, second = (simulate_shards_quietly((5, 60, False, False)) for _ in range(2))
    assert first.digest == second.digest


# ---------------------------------------------------------------- one event at a time

NODES = 12
SPREAD = {
    "maxSkew": 99,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
"""By which the overseer decides on a pod."""
LEASE_S = 15.0
NOTICED_S = 2.0


@dataclass
class Group:
    """Members beside a sandbox with nodes, in virtual time."""

    sandbox: Sandbox
    loop: SimulatedLoop
    tasks: anyio.abc.TaskGroup
    members: list[Member] = field(default_factory=list)

    def start(self, name: str, shard_key: str = HOSTNAME, *, gangs: bool = False) -> Member:
        member = Member(name, shard_key, self.sandbox.url, Random(len(self.members)), gangs=gangs)
        self.members.append(member)
        token = client_name.set(f"{name} {len(self.members)}")
        self.tasks.start_soon(member.live)
        client_name.reset(token)
        return member

    def kill(self, member: Member) -> None:
        """End it as a crash does: its Lease stays as it is."""
        self.loop.network.cut_off(f"{member.name} {self.members.index(member) + 1}")
        member.life.cancel()
        self.members[self.members.index(member)] = Member("gone", HOSTNAME, self.sandbox.url, Random(0))

    def owners(self, node_name: str) -> list[str]:
        return [member.name for member in self.members if member.parts is not None and member.shards.owns(node_name)]

    def is_divided(self) -> bool:
        return all(len(self.owners(f"node-{number}")) == 1 for number in range(NODES))

    async def wait_divided(self, seconds_max: float) -> float:
        return await self.wait_until(self.is_divided, seconds_max)

    async def wait_bound(self, count: int, seconds_max: float = 30.0) -> None:
        pods = partial(self.sandbox.store.list, "pods")
        await self.wait_until(lambda: sum(bool(pod["spec"].get("nodeName")) for pod in pods()) == count, seconds_max)

    async def wait_until(self, is_so: Callable[[], bool], seconds_max: float) -> float:
        """Return how long it took, in virtual seconds."""
        started_s = self.loop.time()
        for _ in range(int(10 * seconds_max)):
            if is_so():
                return self.loop.time() - started_s
            await asyncio.sleep(0.1)
        raise AssertionError(f"not within {seconds_max} s")

    def create_pods(self, *names: str, cpu: str = "100m", **spec: object) -> None:
        for name in names:
            self.sandbox.store.create(manifests.pod(name, cpu=cpu, memory="64Mi", labels={"app": "web"}, **spec))


def in_virtual_time(test: Callable[[Group], Awaitable[None]], labels: Callable[[int], dict[str, str]]) -> None:
    """Run a test with twelve nodes of these labels."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        async with AsyncExitStack() as stack:
            sandbox = await stack.enter_async_context(
                Sandbox(now=lambda: datetime.fromtimestamp(START_S + loop.time(), UTC))
            )
            for number in range(NODES):
                amounts = random_objects.allocatable(random_objects.NODE_CPU_MILLI)
                sandbox.store.create(manifests.node(f"node-{number}", labels=labels(number), **amounts))
            async with anyio.create_task_group() as tasks:
                await test(Group(sandbox, loop, tasks))
                tasks.cancel_scope.cancel()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(main())


def hosts(number: int) -> dict[str, str]:
    return {HOSTNAME: f"node-{number}", ZONE: f"zone-{number % 3}"}


def test_a_member_that_is_killed_is_taken_over_within_a_lease_duration() -> None:
    async def test(group: Group) -> None:
        members = [group.start(f"m{number}") for number in (1, 2, 3)]
        await group.wait_divided(30.0)
        assert all(
            sum(group.owners(f"node-{number}") == [member.name] for number in range(NODES)) for member in members
        )
        group.create_pods(*(f"web-{number}" for number in range(12)))
        await group.wait_bound(12)
        group.kill(members[1])
        assert await group.wait_divided(60.0) < LEASE_S + NOTICED_S
        group.create_pods(*(f"later-{number}" for number in range(12)))
        await group.wait_bound(24)

    in_virtual_time(test, hosts)


def test_a_second_member_of_one_name_stands_by_and_says_so() -> None:
    async def test(group: Group) -> None:
        first = group.start("m1")
        await group.wait_divided(30.0)
        with capture_logs() as lines:
            second = group.start("m1")
            await asyncio.sleep(60.0)
        assert any(line["event"] == "New leader elected" and line["lock"] == "kube-system/shards-m1" for line in lines)
        assert (first.may_act, second.may_act) == (True, False)
        group.kill(first)
        await group.wait_divided(LEASE_S + 2 * NOTICED_S)
        assert second.may_act

    in_virtual_time(test, hosts)


def test_nodes_without_the_label_are_divided_one_by_one() -> None:
    async def test(group: Group) -> None:
        members = [group.start(f"m{number}", ZONE) for number in (1, 2, 3)]
        await group.wait_divided(30.0)
        assert all(
            any(group.owners(f"node-{number}") == [member.name] for number in range(NODES)) for member in members
        )

    in_virtual_time(test, lambda number: {ZONE: "east"} if number == 0 else {})


def test_two_members_of_one_name_that_start_at_once_never_both_act() -> None:
    async def test(group: Group) -> None:
        twins = [group.start("m1"), group.start("m1")]
        group.start("m2")
        await group.wait_divided(30.0)
        for _ in range(30):
            assert [twin.may_act for twin in twins].count(True) == 1
            await asyncio.sleep(1.0)
        assert group.is_divided()

    in_virtual_time(test, hosts)


def test_a_member_that_joins_takes_nodes_from_all_others_and_moves_none_between_them() -> None:
    async def test(group: Group) -> None:
        names = [f"node-{number}" for number in range(NODES)]
        for number in (1, 2, 3):
            group.start(f"m{number}")
        await group.wait_divided(30.0)
        former_owners = {name: group.owners(name) for name in names}
        group.start("m4")
        await group.wait_until(lambda: group.is_divided() and any(group.owners(name) == ["m4"] for name in names), 30.0)
        moved_names = [name for name in names if group.owners(name) != former_owners[name]]
        assert all(group.owners(name) == ["m4"] for name in moved_names)
        assert len(moved_names) <= NODES // 4 + 1

    in_virtual_time(test, hosts)


def test_members_of_different_versions_divide_the_nodes_amid_a_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        group.start("m1")
        await group.wait_divided(30.0)
        monkeypatch.setattr(podium, "__version__", "99.0.0")
        group.start("m2")
        await group.wait_until(lambda: {*map(tuple, map(group.owners, names))} == {("m1",), ("m2",)}, 30.0)
        # The newer one takes over from the older one, and is replaced itself.
        group.kill(group.members[0])
        await group.wait_until(lambda: all(group.owners(name) == ["m2"] for name in names), LEASE_S + NOTICED_S)
        group.start("m1")
        await group.wait_until(lambda: {*map(tuple, map(group.owners, names))} == {("m1",), ("m2",)}, 2 * LEASE_S)

    names = [f"node-{number}" for number in range(NODES)]
    in_virtual_time(test, hosts)


def test_a_member_of_another_protocol_keeps_all_nodes_and_the_log_says_why() -> None:
    async def test(group: Group) -> None:
        group.start("m1")
        stranger = group.start("m2")
        await group.wait_divided(30.0)
        with capture_logs() as lines:
            group.kill(stranger)
            lease = next(item for item in group.sandbox.store.list("leases") if item["metadata"]["name"] == "shards-m2")
            lease["metadata"]["annotations"][PROTOCOL] = "99"
            group.sandbox.store.update(lease)
            await asyncio.sleep(5.0)
            assert not any(group.owners(f"node-{number}") for number in range(NODES))
            await asyncio.sleep(LEASE_S)
        assert any("cannot be understood" in str(line.get("cause")) for line in lines)
        assert group.is_divided()

    in_virtual_time(test, hosts)


def test_a_pod_that_fits_only_in_another_shard_is_placed_there() -> None:
    async def test(group: Group) -> None:
        for number in (1, 2, 3):
            group.start(f"m{number}")
        await group.wait_divided(30.0)
        group.create_pods(*(f"web-{number}" for number in range(NODES)), cpu="2500m")
        await group.wait_bound(NODES, 60.0)

    in_virtual_time(test, hosts)


def held_pods(member: Member) -> int:
    """How many pods the member has not decoded."""
    return 0 if member.parts is None else len(list(member.parts.pods_aside()))


def test_a_member_knows_the_pods_on_nodes_that_it_takes_over_though_it_held_them_undecoded() -> None:
    async def test(group: Group) -> None:
        members = [group.start(f"m{number}") for number in (1, 2, 3)]
        await group.wait_divided(30.0)
        # Two of them fill a node.
        group.create_pods(*(f"web-{number}" for number in range(NODES)), cpu="1900m")
        await group.wait_bound(NODES, 60.0)
        overseer = owner(OVERSEER, ("m1", "m2", "m3"))
        killed_member, survivor = (member for member in members if member.name != overseer)
        assert held_pods(survivor)
        group.kill(killed_member)
        await group.wait_divided(60.0)
        check_own_nodes_known(group.members)
        group.create_pods(*(f"later-{number}" for number in range(NODES)), cpu="1900m")
        await group.wait_bound(2 * NODES, 60.0)
        check_no_node_overfull(group.sandbox.store.list("pods"), group.sandbox.store.list("nodes"))

    in_virtual_time(test, hosts)


def test_only_the_members_that_decide_on_a_pod_that_counts_all_others_decode_these() -> None:
    async def test(group: Group) -> None:
        members = {name: group.start(name) for name in ("m1", "m2", "m3")}
        await group.wait_divided(30.0)
        group.create_pods(*(f"web-{number}" for number in range(3 * NODES)))
        await group.wait_bound(3 * NODES)
        assert all(held_pods(member) for member in members.values())
        group.create_pods("spread", topologySpreadConstraints=[SPREAD | {"maxSkew": 1}])
        await group.wait_bound(3 * NODES + 1)
        node_name = group.sandbox.store.get("pods", "spread", "default")["spec"]["nodeName"]
        deciders = {owner(OVERSEER, members), *group.owners(node_name)}
        assert {name for name, member in members.items() if not held_pods(member)} == deciders

    in_virtual_time(test, hosts)


def test_gangs_over_the_nodes_of_several_members_start_as_a_whole() -> None:
    async def test(group: Group) -> None:
        for number in (1, 2, 3):
            group.start(f"m{number}", gangs=True)
        await group.wait_divided(30.0)
        for gang in ("train", "serve"):
            for number in range(NODES // 2):
                member = manifests.pod(f"{gang}-{number}", cpu="2500m", memory="64Mi")
                member["metadata"] |= {"labels": {GROUP_LABEL: gang}, "annotations": {MIN_MEMBER: str(NODES // 2)}}
                member["spec"]["schedulerName"] = random_objects.OURS
                group.sandbox.store.create(member)
        await group.wait_bound(NODES, 30.0)

    in_virtual_time(test, hosts)


def test_pods_for_nodes_that_are_handed_over_do_not_delay_that() -> None:
    async def test(group: Group) -> None:
        overseer, newcomer = sorted(("m1", "m2"), key=lambda name: name != owner(OVERSEER, ("m1", "m2")))
        names = [f"node-{number}" for number in range(NODES)]
        group.start(overseer)
        await group.wait_divided(30.0)
        # Bindings that are under way when the other member joins, so that nodes are given up only later.
        group.sandbox.faults.latency(5.0, 4, **BINDINGS)
        group.create_pods("early-1", "early-2", "early-3", "early-4")
        group.start(newcomer)
        for number in range(40):
            group.create_pods(f"later-{number}", cpu="10m", topologySpreadConstraints=[SPREAD])
            await asyncio.sleep(0.2)
        await group.wait_until(
            lambda: group.is_divided() and any(group.owners(name) == [newcomer] for name in names), NOTICED_S
        )
        await group.wait_bound(44, LEASE_S)

    in_virtual_time(test, hosts)


def test_pods_that_were_placed_on_the_nodes_of_a_dead_member_are_placed_again_once_its_lease_has_run_out() -> None:
    async def test(group: Group) -> None:
        names = ("m1", "m2", "m3")
        overseer = owner(OVERSEER, names)
        members = {name: group.start(name) for name in names}
        await group.wait_divided(30.0)
        for name in names:
            if name != overseer:
                group.kill(members[name])
        group.create_pods(*(f"web-{number}" for number in range(NODES)), topologySpreadConstraints=[SPREAD])
        await group.wait_bound(NODES, LEASE_S + 2 * NOTICED_S)

    in_virtual_time(test, hosts)


def test_pods_that_request_devices_as_an_extended_resource_are_placed_on_nodes_of_all_members() -> None:
    async def test(group: Group) -> None:
        devices = DeviceActors(group.sandbox, 1)
        devices.furnish()
        devices.publish()
        for number in (1, 2, 3):
            group.start(f"m{number}")
        await group.wait_divided(30.0)
        count = sum(len(item["spec"]["devices"]) for item in group.sandbox.store.list("resourceslices"))
        for number in range(count):
            claimant = manifests.pod(f"web-{number}", cpu="100m", memory="64Mi")
            claimant["spec"]["schedulerName"] = random_objects.OURS
            claimant["spec"]["tolerations"] = [{"operator": "Exists"}]
            resources = claimant["spec"]["containers"][0]["resources"]
            resources["requests"] |= {RESOURCE: "1"}
            resources["limits"] = {RESOURCE: "1"}
            group.sandbox.store.create(claimant)
        await group.wait_bound(count, 90.0)
        check_devices(group.sandbox)

    in_virtual_time(test, hosts)
