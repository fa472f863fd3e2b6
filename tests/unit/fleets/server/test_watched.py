"""One watched member, filled as its informers fill it."""

from random import Random

import orjson
import pytest

from podium.client.credentials import load
from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.estimator.accurate import Rules
from podium.fleets.server.fleet import Staleness, WatchedFleet
from podium.fleets.server.kinds import SHARED_NODES, SHARED_PODS
from podium.fleets.server.watched import WatchedCluster
from podium.lib.clock import ManualClock
from podium.objects.resource_types import REPLICA_SETS
from podium.objects.wire import ObjectDecoder
from tests.manifests import node, pod
from tests.unit.fleets.fleets import workload_of
from tests.workload_manifests import workload

pytestmark = pytest.mark.anyio

JOB = workload("Job", "train", parallelism=2, completions=2, cpu="2")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def informers(clock, anyio_backend):
    session = ApiSession(await load(None, clock, master="http://127.0.0.1:1"))
    return InformerSet(session, clock=clock, random=Random(1))


@pytest.fixture
def member(informers, clock):
    cluster = WatchedCluster("m1", None, informers, Rules(), clock)
    _put(informers, SHARED_NODES, node("n1", "4"))
    for resource in informers.resources:
        informers.informer(resource).set_synced()
    return cluster


def _put(informers, resource, *manifests):
    items = [{**item, "metadata": {**item["metadata"], "uid": item["metadata"]["name"]}} for item in manifests]
    for item in ObjectDecoder(resource).items(orjson.dumps(items)).items:
        informers.informer(resource).set(item)


@pytest.fixture
def fleet(member, clock):
    fleet = WatchedFleet(clock, Staleness())
    fleet.put("m1", member)
    return fleet


async def _best(fleet, workload_asked):
    from podium.fleets.search import FleetQuestion

    return (await fleet.ask(FleetQuestion(workload_asked))).best


async def test_the_same_workload_is_tried_again_only_after_a_change(fleet, member, informers):
    job = workload_of(JOB)
    assert await _best(fleet, job) == "m1"
    outcome = job.outcomes["m1"]
    assert await _best(fleet, job) == "m1"
    assert job.outcomes["m1"] is outcome
    # A heartbeat.
    _put(informers, SHARED_NODES, node("n1", "4"))
    assert await _best(fleet, job) == "m1"
    assert job.outcomes["m1"] is outcome
    _put(informers, SHARED_PODS, pod("runs", "1", node="n1"))
    assert await _best(fleet, job) is None
    informers.informer(SHARED_PODS).remove("default/runs")
    assert await _best(fleet, job) == "m1"
    _put(informers, SHARED_PODS, pod("waits", "1", scheduler="default-scheduler"))
    assert await _best(fleet, job) is None


async def test_what_is_lent_for_a_question_is_gone_afterwards(fleet, informers):
    assert await _best(fleet, workload_of(workload("Deployment", replicas=2))) == "m1"
    assert not list(informers.informer(REPLICA_SETS).list())


async def test_nodes_change_only_between_dry_runs(member, informers):
    with member.dry_run():
        _put(informers, SHARED_NODES, node("n2", "4"))
        assert member.statistics()["nodes"] == 1
        with member.dry_run():
            pass
        assert member.statistics()["nodes"] == 1
    assert member.statistics()["nodes"] == 2


async def test_replicas_share_what_they_have_in_common(member, informers):
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    labels = {"app": "web", "tier": "front"}
    _put(informers, SHARED_PODS, *(pod(name, node="n1", labels=labels, status=status) for name in ("a", "b")))
    first, second = informers.informer(SHARED_PODS).list()
    assert first.metadata.labels is second.metadata.labels == labels
    assert first.status is second.status
    assert (first.status.phase, first.status.conditions) == ("Running", ())


async def test_a_pod_that_is_bound_stops_waiting_and_one_created_anew_is_moved(fleet, member, informers):
    pods = informers.informer(SHARED_PODS)

    def write(version, **fields):
        manifest = pod("web-0", "3", scheduler="default-scheduler", **fields)
        manifest["metadata"] |= {"uid": f"uid-{version}", "resourceVersion": str(version)}
        for item in ObjectDecoder(SHARED_PODS).items(orjson.dumps([manifest])).items:
            pods.put(item)

    write(1)
    assert [item.uid for item in member.member(None).waiting] == ["uid-1"]
    assert await _best(fleet, workload_of(JOB)) is None
    _put(informers, SHARED_NODES, node("n2", "4"))
    write(2, node="n1")
    assert (member.member(None).waiting, member.statistics()) == ([], {"nodes": 2, "pods": 1, "decidesAs": "1.37"})
    (running_pod,) = pods.list()
    assert running_pod.uid is running_pod.key
    # Deleted and created again while nothing was watched.
    write(3, node="n2")
    assert [member._state.cache.pods_on(name) != [] for name in ("n1", "n2")] == [False, True]
    write(4)
    assert [item.uid for item in member.member(None).waiting] == ["uid-4"]
    assert member.statistics() == {"nodes": 2, "pods": 1, "decidesAs": "1.37"}
    # What is older than the deletion stays away.
    write(3, node="n2")
    assert [item.uid for item in member.member(None).waiting] == ["uid-4"]


async def test_a_pending_pod_keeps_the_time_by_which_it_is_queued(member, informers):
    waiting = pod("waits", scheduler="default-scheduler")
    waiting["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    _put(informers, SHARED_PODS, waiting)
    (item,) = member.member(None).waiting
    assert item.metadata.creation_timestamp == "2026-01-01T00:00:00Z"


async def test_nodes_share_their_images_and_amounts(member, informers):
    image = {"names": ["registry.invalid/app:1"], "sizeBytes": 7}
    manifests = [node("n2"), node("n3")]
    for manifest in manifests:
        manifest["status"]["images"] = [image]
    _put(informers, SHARED_NODES, *manifests)
    _, first, second = informers.informer(SHARED_NODES).list()
    assert first.status.images is second.status.images
    assert first.status.allocatable is second.status.allocatable
    assert first.metadata.labels["kubernetes.io/hostname"] == "n2"


async def test_a_member_is_stale_after_its_time_and_fresh_at_once(fleet, member, informers, clock):
    (statistics, *_) = informers.statistics().values()
    statistics.is_failing = True
    fleet.look()
    assert await _best(fleet, workload_of(JOB)) == "m1"
    clock.advance(29.0)
    assert await _best(fleet, workload_of(JOB)) == "m1"
    clock.advance(1.0)
    assert await _best(fleet, workload_of(JOB)) is None
    statistics.is_failing = False
    fleet.look()
    assert await _best(fleet, workload_of(JOB)) == "m1"


async def test_a_pod_or_a_node_that_cannot_be_read_closes_the_node(fleet, member, informers):
    job = workload_of(JOB)
    assert await _best(fleet, job) == "m1"
    bad_pod = pod("bad", node="n1")
    bad_pod["spec"]["volumes"] = "none"
    _put(informers, SHARED_PODS, bad_pod)
    assert await _best(fleet, job) is None
    assert "cannot be read" in job.outcomes["m1"][1].reason
    bad_node = node("n2", "4")
    bad_node["spec"]["taints"] = "none"
    _put(informers, SHARED_NODES, bad_node)
    assert member.statistics()["nodes"] == 2
    assert await _best(fleet, job) is None
