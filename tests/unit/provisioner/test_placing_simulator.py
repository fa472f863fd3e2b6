"""Where pods go when nodes go, by podium's own plugins."""

from functools import partial

from podium.engine.cluster import Cluster
from podium.provisioner.disruption_state import DisruptionState
from podium.provisioner.placing_simulator import PlacingSimulator
from podium.provisioner.reading import read_objects
from podium.provisioner.settings import Settings
from podium.provisioner.simulation import Simulation
from tests.unit.provisioner.clusters import CAPACITY_TYPE, NOW, catalogue, pod, required
from tests.unit.provisioner.fleets import TYPES, cluster, machine, node_pool


def _without(name: str, *parts) -> Simulation:
    objects = cluster(*parts, node_pool(requirements=[required(CAPACITY_TYPE, "In", "on-demand")]))
    known = Cluster.load([{"apiVersion": "v1", **each} for each in objects if each["kind"] in ("Node", "Pod")])
    make = partial(PlacingSimulator, known)
    state = DisruptionState.of(read_objects(objects), catalogue(*TYPES), Settings(), NOW, make)
    found = state.simulator.without([each for each in state.candidates if each.name == name])
    assert found is not None
    assert len(known.nodes) == sum(each["kind"] == "Node" for each in objects)
    return found


def test_a_pod_goes_to_a_node_that_has_room():
    found = _without("a", machine("a"), machine("b"), pod("web", node="a"))
    assert {name: [each.key for each in pods] for name, pods in found.outcome.existing.items()} == {
        "b": ["default/web"]
    }
    assert (found.outcome.purchases, found.stranded) == ((), {})


def test_the_cheapest_node_is_bought_for_a_pod_that_has_no_room():
    (purchase,) = _without("a", machine("a", 8), pod("web", node="a")).outcome.purchases
    assert [each.name for each in purchase.instance_types] == ["c-2"]
    assert [each.key for each in purchase.claim.pods] == ["default/web"]


def test_a_pod_that_fits_nowhere_is_stranded():
    found = _without("a", machine("a"), machine("b"), pod("stays", node="a", nodeSelector={"gpu": "yes"}))
    assert list(found.stranded) == ["default/stays"]


def test_a_pod_that_would_be_preempted_is_stranded():
    only_there = {"nodeSelector": {"node.kubernetes.io/instance-type": "c-1"}}
    high = pod("high", node="a", priority=10, **only_there)
    found = _without("a", machine("a"), machine("b", 1), pod("low", node="b", priority=-10), high)
    assert found.stranded == {"default/low": "would be preempted"}
