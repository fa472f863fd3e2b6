"""What a pod gives up, in which order."""

from __future__ import annotations

from podium.objects.core import Pod
from podium.provisioner.provisioning.relaxation import relax, tolerating_preferences
from tests.unit.provisioner.clusters import HOSTNAME, ZONE, as_pod, node_affinity, pod, requirement, spread


def weighted_terms(*weights: int) -> dict[str, object]:
    terms = [{"weight": weight, "podAffinityTerm": {"topologyKey": f"key-{weight}"}} for weight in weights]
    return {"preferredDuringSchedulingIgnoredDuringExecution": terms}


def steps(subject: Pod, *, tolerate: bool = False) -> list[Pod]:
    steps_taken = []
    while (next_one := relax(subject, tolerate_preferences=tolerate)) is not None:
        steps_taken.append(next_one)
        subject = next_one
    return steps_taken


def test_a_pod_without_wishes_gives_up_nothing() -> None:
    assert steps(as_pod(pod("a"))) == []
    only = node_affinity(requirement(ZONE, "In", "a"))
    assert steps(as_pod(pod("a", affinity=only, topologySpreadConstraints=[spread()]))) == []


def test_everything_is_given_up_in_order() -> None:
    affinity = {
        **node_affinity(
            requirement(ZONE, "In", "a"), requirement(ZONE, "In", "b"), preferences=[(1, requirement("x", "Exists"))]
        ),
        "podAffinity": weighted_terms(1, 5),
        "podAntiAffinity": weighted_terms(3),
    }
    first = as_pod(pod("a", affinity=affinity, topologySpreadConstraints=[spread(when="ScheduleAnyway")]))
    specs = []
    for step in steps(first, tolerate=True):
        spec = step.spec
        rules = spec.affinity
        assert rules
        assert rules.node_affinity
        assert rules.node_affinity.required
        assert rules.pod_affinity
        assert rules.pod_anti_affinity
        specs.append(
            (
                len(rules.node_affinity.required.node_selector_terms),
                [term.weight for term in rules.pod_affinity.preferred],
                len(rules.pod_anti_affinity.preferred),
                len(rules.node_affinity.preferred),
                len(spec.topology_spread_constraints),
                len(spec.tolerations),
            )
        )
    assert specs == [
        (1, [5, 1][::-1], 1, 1, 1, 0),
        (1, [1], 1, 1, 1, 0),
        (1, [], 1, 1, 1, 0),
        (1, [], 0, 1, 1, 0),
        (1, [], 0, 0, 1, 0),
        (1, [], 0, 0, 0, 0),
        (1, [], 0, 0, 0, 1),
    ]


def test_the_last_spread_takes_the_place_of_one_that_is_dropped() -> None:
    soft = [spread(ZONE, when="ScheduleAnyway"), spread("rack"), spread(HOSTNAME, when="ScheduleAnyway")]
    first, second = steps(as_pod(pod("a", topologySpreadConstraints=soft)))
    assert [constraint.topology_key for constraint in first.spec.topology_spread_constraints] == [HOSTNAME, "rack"]
    assert [constraint.topology_key for constraint in second.spec.topology_spread_constraints] == ["rack"]


def test_preferences_are_tolerated_once() -> None:
    tolerant = tolerating_preferences(as_pod(pod("a")).spec)
    assert tolerating_preferences(tolerant) is tolerant


def test_the_pod_itself_stays_as_it_was() -> None:
    subject = as_pod(pod("a", affinity={"podAffinity": weighted_terms(1)}))
    (relaxed_pod,) = steps(subject)
    assert relaxed_pod.metadata is subject.metadata
    assert subject.spec.affinity
    assert subject.spec.affinity.pod_affinity
    assert len(subject.spec.affinity.pod_affinity.preferred) == 1
