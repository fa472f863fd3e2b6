"""Counts by domain, and the domains that are left for a pod."""

from __future__ import annotations

from podium.objects.core import Taint, Toleration
from podium.objects.meta import LabelSelector
from podium.provisioner.provisioning.topology_groups import Domains, NodeFilter, Rule, TopologyGroup, TopologyKind
from podium.provisioner.scheduling.requirements import Requirement
from tests.unit.provisioner.clusters import HOSTNAME, ZONE, as_pod, node_affinity, pod, requirement

WEB = LabelSelector(match_labels={"app": "web"})
MEMBER = as_pod(pod("member", labels={"app": "web"}))
STRANGER = as_pod(pod("stranger"))
GPU = Taint(key="gpu", effect="NoSchedule")


def group(kind: TopologyKind, *domains: str, key: str = ZONE, **fields: int) -> TopologyGroup:
    return TopologyGroup(Rule(kind, key, frozenset({"default"}), WEB, max_skew=1, **fields), domains)


def zones(*values: str) -> Requirement:
    return Requirement.of(ZONE, "In" if values else "Exists", values)


def test_a_spread_takes_the_first_of_the_emptiest_domains() -> None:
    spread = group(TopologyKind.SPREAD, "c", "b", "a")
    assert spread.next_domains(MEMBER, zones(), zones()).values == {"a"}
    spread.record("a")
    assert spread.next_domains(MEMBER, zones(), zones()).values == {"b"}
    assert not spread.next_domains(MEMBER, zones(), zones("a")).values
    assert spread.next_domains(STRANGER, zones(), zones("a")).values == {"a"}
    assert spread.next_domains(MEMBER, zones("a"), zones("a")).values == {"a"}


def test_too_few_domains_count_as_if_one_were_empty() -> None:
    spread = group(TopologyKind.SPREAD, "a", "b", min_domains=3)
    spread.record("ab")
    assert not spread.next_domains(MEMBER, zones(), zones()).values


def test_an_affinity_goes_where_pods_are_or_starts_anywhere() -> None:
    affinity = group(TopologyKind.AFFINITY, "a", "b")
    assert affinity.next_domains(MEMBER, zones(), zones("b")).values == {"a", "b"}
    assert not affinity.next_domains(STRANGER, zones(), zones()).values
    affinity.record("b")
    assert affinity.next_domains(STRANGER, zones(), zones()).values == {"b"}
    assert affinity.next_domains(MEMBER, zones("a"), zones("a")).values == {"a"}


def test_an_anti_affinity_goes_where_no_pods_are() -> None:
    anti = group(TopologyKind.ANTI_AFFINITY, "a", "b", "c")
    anti.record("b")
    assert anti.next_domains(MEMBER, zones(), zones()).values == {"a", "c"}
    assert not anti.next_domains(MEMBER, zones(), zones("b")).values


def test_a_node_is_its_own_domain() -> None:
    own = Requirement.of(HOSTNAME, "In", ("n1",))
    anywhere = Requirement.of(HOSTNAME, "Exists")
    for kind in TopologyKind:
        fresh = group(kind, key=HOSTNAME)
        assert fresh.next_domains(MEMBER, anywhere, own).values == {"n1"}
        fresh.record(["n1"])
        stays = kind is TopologyKind.AFFINITY
        assert bool(fresh.next_domains(MEMBER, anywhere, own).values) is stays


def test_a_refusal_counts_the_domains() -> None:
    anti = group(TopologyKind.ANTI_AFFINITY, *(f"zone-{index:02}" for index in range(27)))
    anti.record(["zone-00"])
    answer = anti.refusal(zones(), zones("zone-00"))
    assert answer.startswith(
        f"unsatisfiable topology constraint for pod anti-affinity, key={ZONE} (counts = zone-00: 1, zone-01: 0, "
    )
    assert answer.endswith(f"zone-24: 0 and 2 other(s), podDomains = {ZONE} Exists, nodeDomains = {ZONE} In [zone-00]")


def test_groups_that_upstream_cannot_tell_apart_are_one() -> None:
    def node_filter(*values: str) -> NodeFilter:
        affinity = node_affinity(*(requirement(ZONE, "In", value) for value in values))
        return NodeFilter.of(as_pod(pod("a", affinity=affinity)), "Honor", "Ignore")

    assert node_filter("a").identity == node_filter("b").identity
    assert node_filter("a").identity == node_filter("a", "b", "c").identity
    assert node_filter("a").identity != node_filter("a", "b").identity


def test_domains_behind_taints_are_open_to_those_who_tolerate_them() -> None:
    domains = Domains()
    domains.add("a", (GPU,))
    domains.add("b", ())
    domains.add("b", (GPU,))
    assert domains.open_to((), "Honor") == ["b"]
    assert domains.open_to((), "Ignore") == ["a", "b"]
    assert domains.open_to((Toleration(operator="Exists"),), "Honor") == ["a", "b"]


def test_a_filter_is_open_while_it_leaves_no_node_out() -> None:
    in_zone = NodeFilter.of(as_pod(pod("a", affinity=node_affinity(requirement(ZONE, "In", "a")))), "Honor", "Ignore")
    plain = NodeFilter.of(as_pod(pod("a")), "Honor", "Ignore")
    assert NodeFilter().is_open
    assert plain.is_open
    assert not in_zone.is_open
    assert not NodeFilter(taints_policy="Honor").is_open
