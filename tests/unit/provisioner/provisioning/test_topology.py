"""Rules about other pods: those on nodes, those that were just planned, and those that repel."""

from __future__ import annotations

from typing import Any

import pytest

from podium.provisioner.provisioning.topology import domains_of
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import (
    HOSTNAME,
    ZONE,
    Document,
    catalogue,
    daemon_set,
    instance_type,
    node,
    node_pool,
    plan,
    pod,
    pod_affinity,
    requirement,
    spread,
)

WEB = {"app": "web"}
BIG = [instance_type("big", 64, "64Gi", 50)]


def zone_of(answer: Document, name: str) -> list[str]:
    for claim in answer["claims"]:
        if f"default/{name}" in claim["pods"]:
            return next(
                (requirement["values"] for requirement in claim["requirements"] if requirement["key"] == ZONE), []
            )
    raise AssertionError(answer)


def test_pods_on_nodes_count_for_a_spread() -> None:
    cluster = [node("n1", cpu="1", zone="zone-1"), pod("old", node="n1", labels=WEB)]
    new = [pod(f"web-{index}", labels=WEB, topologySpreadConstraints=[spread()]) for index in range(2)]
    answer = plan(*cluster, *new, types=BIG)
    assert sorted(zone_of(answer, pod_name)[0] for pod_name in ("web-0", "web-1")) == ["zone-2", "zone-3"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_do_not_count(phase: str) -> None:
    cluster = [node("n1", cpu="1", zone="zone-1"), pod("old", node="n1", labels=WEB, status={"phase": phase})]
    answer = plan(*cluster, pod("web", cpu="2", labels=WEB, topologySpreadConstraints=[spread()]), types=BIG)
    assert zone_of(answer, "web") == ["zone-1"]


def test_a_pod_goes_where_those_are_that_it_follows() -> None:
    cluster = [node("n1", cpu="1", zone="zone-2"), pod("old", node="n1", labels=WEB)]
    answer = plan(*cluster, pod("new", cpu="2", affinity=pod_affinity("web")), types=BIG)
    assert zone_of(answer, "new") == ["zone-2"]


def test_a_pod_that_follows_its_own_kind_may_be_the_first() -> None:
    answer = plan(pod("web", labels=WEB, affinity=pod_affinity("web")), types=BIG)
    assert zone_of(answer, "web") == ["zone-1"]


def test_a_pod_that_follows_nobody_stays() -> None:
    answer = plan(pod("new", affinity=pod_affinity("web")), types=BIG)
    assert answer["errors"]["default/new"] == (
        f"unsatisfiable topology constraint for pod affinity, key={ZONE} (counts = zone-1: 0, zone-2: 0, zone-3: 0, "
        f"podDomains = {ZONE} Exists, nodeDomains = {ZONE} Exists"
    )


def test_a_pod_on_a_node_repels_those_it_wants_to_be_apart_from() -> None:
    hermit = pod("hermit", node="n1", affinity=pod_affinity("web", anti=True))
    answer = plan(node("n1", cpu="8", zone="zone-1"), hermit, pod("web", labels=WEB), types=BIG)
    assert answer["existing"] == {}
    assert "zone-1" not in zone_of(answer, "web")


def test_a_pod_apart_from_others_may_be_anywhere_so_it_keeps_them_out_of_everywhere() -> None:
    apart = [pod(f"web-{index}", labels=WEB, affinity=pod_affinity("web", anti=True)) for index in range(2)]
    answer = plan(*apart, types=BIG)
    assert (len(answer["claims"]), len(answer["errors"])) == (1, 1)


def test_a_namespace_selector_reaches_other_namespaces() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "a"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    neighbour = pod("old", node="n1", metadata={"namespace": "team-a"})
    spaces = [{"kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}]
    assert plan(node("n1"), neighbour, pod("new", affinity=affinity), *spaces)["existing"] == {"n1": ["default/new"]}


def test_match_label_keys_narrow_a_spread_to_the_pods_own_values() -> None:
    constraint = spread(matchLabelKeys=["version"])
    old = pod("old", node="n1", labels={**WEB, "version": "1"})
    new = pod("new", cpu="9", labels={**WEB, "version": "2"}, topologySpreadConstraints=[constraint])
    assert zone_of(plan(node("n1", zone="zone-1"), old, new, types=BIG), "new") == ["zone-1"]


def test_domains_are_what_types_and_pools_say_together() -> None:
    pool = node_pool(
        requirements=[requirement(ZONE, "In", "zone-1", "zone-9"), requirement("team", "NotIn", "x")],
        labels={"tier": "a"},
    )
    domains = domains_of(read_objects([pool]).node_pools, catalogue().instance_types)
    assert sorted(domains[ZONE].open_to((), "Ignore")) == ["zone-1", "zone-9"]
    assert domains["tier"].open_to((), "Ignore") == ["a"]
    # As upstream: of a label that types do not define, what is excluded becomes a domain.
    assert domains["team"].open_to((), "Ignore") == ["x"]
    assert domains_of(read_objects([pool]).node_pools, ()) == {}


def test_a_node_that_the_pod_cannot_use_does_not_count() -> None:
    cluster = [node("n1", cpu="1", zone="zone-1", pool="old"), pod("old", node="n1", labels=WEB)]
    new = pod("web", cpu="2", labels=WEB, topologySpreadConstraints=[spread()], nodeSelector={"pool": "new"})
    assert zone_of(plan(*cluster, new, node_pool(labels={"pool": "new"}), types=BIG), "web") == ["zone-1"]
    ignoring = spread(nodeAffinityPolicy="Ignore")
    new = pod("web", cpu="2", labels=WEB, topologySpreadConstraints=[ignoring], nodeSelector={"pool": "new"})
    assert zone_of(plan(*cluster, new, node_pool(labels={"pool": "new"}), types=BIG), "web") == ["zone-2"]


# ---------------------------------------------------------------- Karpenter's own vectors


def zones(answer: Document) -> list[int]:
    """How many pods go to each zone, in the order of their names."""
    counts: dict[str, int] = {}
    for claim in answer["claims"]:
        (zone,) = next(requirement["values"] for requirement in claim["requirements"] if requirement["key"] == ZONE)
        counts[zone] = counts.get(zone, 0) + len(claim["pods"])
    return [counts.get(f"zone-{number}", 0) for number in (1, 2, 3)]


def replicas(count: int, *, app: str = "web", key: str = ZONE, **fields: Any) -> list[Document]:
    """Pods of an app that are spread over the domains of a key. They fit on no node that is there."""
    skew = fields.pop("skew", 1)
    constraint = spread(key, skew=skew, app=app)
    return [
        pod(f"{app}-{number}", cpu="2", labels={"app": app}, topologySpreadConstraints=[constraint], **fields)
        for number in range(count)
    ]


def in_zone(zone: str, count: int = 1) -> list[Document]:
    """A full node there, with that many pods."""
    name = f"node-{zone}"
    return [node(name, cpu="1", zone=zone), *(pod(f"old-{zone}-{n}", node=name, labels=WEB) for n in range(count))]


def test_vector_a_zone_that_cannot_be_bought_keeps_the_others_within_the_skew() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "In", "zone-1", "zone-2")])
    answer = plan(*in_zone("zone-3"), *replicas(6), pool, types=BIG)
    assert zones(answer) == [2, 2, 0]
    assert len(answer["errors"]) == 2


def test_vector_a_zone_takes_as_many_more_as_the_skew_allows() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "In", "zone-3")])
    answer = plan(*in_zone("zone-1"), *in_zone("zone-2"), *replicas(10, skew=5), pool, types=BIG)
    assert zones(answer) == [0, 0, 6]
    assert len(answer["errors"]) == 4


def test_vector_a_spread_that_is_too_uneven_is_evened_out() -> None:
    answer = plan(*in_zone("zone-1", 3), *replicas(3), types=BIG)
    assert zones(answer)[0] == 0
    assert sorted(zones(answer)) == [0, 1, 2]


@pytest.mark.parametrize(("archs", "nodes"), [(("amd64", "amd64"), 2), (("amd64", "arm64"), 4)])
def test_vector_two_apps_share_nodes_unless_they_need_others(archs: tuple[str, str], nodes: int) -> None:
    pods = [
        replica
        for app, arch in zip(("web", "api"), archs, strict=True)
        for replica in replicas(2, app=app, key=HOSTNAME, nodeSelector={"kubernetes.io/arch": arch})
    ]
    types = [*BIG, instance_type("big-arm", 64, "64Gi", 50, arch="arm64")]
    answer = plan(*pods, types=types)
    assert (len(answer["claims"]), answer["errors"]) == (nodes, {})


def test_vector_a_spread_over_others_puts_no_limit_on_ones_own() -> None:
    constraint = spread(HOSTNAME, app="other")
    pods = [pod(f"web-{number}", labels=WEB, topologySpreadConstraints=[constraint]) for number in range(5)]
    assert len(plan(*pods, types=BIG)["claims"]) == 1


def test_vector_a_type_must_have_room_for_the_agent_too() -> None:
    answer = plan(daemon_set(cpu="2", memory="2Gi"), pod("web", cpu="1", memory="1Gi"))
    assert answer["claims"][0]["types"][0] == "default"


def test_vector_a_port_that_the_agent_has_on_every_node_is_free_on_none() -> None:
    answer = plan(daemon_set(ports=[80]), pod("web", ports=[80]))
    assert answer["claims"] == []
    assert "default/web" in answer["errors"]


def test_trap_two_spreads_over_one_key_that_choose_different_zones_leave_the_pod_waiting() -> None:
    """Zone 3 would do for both, but each constraint has chosen its own zone by then."""
    api = pod("api", node="node-zone-2", labels={"app": "api"})
    cluster = [*in_zone("zone-1"), node("node-zone-2", cpu="1", zone="zone-2"), api]
    spreads = [spread(), spread(app="api")]
    answer = plan(*cluster, pod("web", cpu="2", labels=WEB, topologySpreadConstraints=spreads), types=BIG)
    assert answer["claims"] == []
    assert "default/web" in answer["errors"]
    assert zone_of(
        plan(*cluster, pod("web", cpu="2", labels=WEB, topologySpreadConstraints=spreads[:1]), types=BIG), "web"
    ) == ["zone-2"]


def test_trap_constraints_that_differ_only_in_min_domains_are_one_with_the_firsts() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "In", "zone-1", "zone-2")])

    def webs(**first: int) -> list[Document]:
        constraints = [spread(**first), spread(minDomains=3), spread(minDomains=3)]
        return [
            pod(f"web-{number}", cpu=str(4 - number), labels=WEB, topologySpreadConstraints=[constraint])
            for number, constraint in enumerate(constraints)
        ]

    assert sum(zones(plan(*webs(minDomains=3), pool, types=BIG))) == 2
    assert sum(zones(plan(*webs(), pool, types=BIG))) == 3


def test_trap_of_pools_of_one_weight_the_last_by_name_is_used() -> None:
    answer = plan(pod("web"), node_pool("a"), node_pool("b"), types=BIG)
    assert [claim["pool"] for claim in answer["claims"]] == ["b"]
    answer = plan(pod("web"), node_pool("a", weight=2), node_pool("b", weight=1), types=BIG)
    assert [claim["pool"] for claim in answer["claims"]] == ["a"]
