"""Questions about topology spread constraints, pod affinity and default constraints.

Source: karpenter pkg/controllers/provisioning/scheduling/topology_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.parity.karpenter.questions import (
    Question,
    in_zone,
    namespace,
    replica_set,
    replicas,
    selector,
    service,
    solve,
    taint,
    toleration,
)
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    ZONE,
    Document,
    node,
    node_affinity,
    node_pool,
    owned_by,
    pod,
    pod_affinity,
    requirement,
    spread,
)

ARCH: Final = "kubernetes.io/arch"
WEB: Final = {"app": "web"}


def spreading(count: int, *constraints: Document, prefix: str = "web", **fields: Any) -> list[Document]:
    """Small pods of the app under these constraints."""
    labels = fields.pop("labels", WEB)
    return replicas(count, prefix, cpu="100m", labels=labels, topologySpreadConstraints=list(constraints), **fields)


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _zones()
    yield from _other_keys()
    yield from _policies()
    yield from _affinity()
    yield from _anti_affinity()
    yield from _preferred_affinity()
    yield from _namespaces()
    yield from _default_constraints()


def _zones() -> Iterator[Question]:
    def about(sentence: str, *parts: Any, **settings: Any) -> Question:
        return solve("spread", sentence, *parts, **settings)

    yield about("A topology key that no node has", spreading(2, spread("rack")))
    yield about("Pods over three zones", spreading(6, spread()))
    expressions = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "shop"]}]}
    yield about("A selector with expressions", spreading(6, spread() | {"labelSelector": expressions}))
    nothing = spread()
    del nothing["labelSelector"]
    yield about("A constraint without a selector", spreading(3, nothing))
    yield about("A constraint whose selector selects all", spreading(4, spread() | {"labelSelector": {}}))
    yield about(
        "A NodePool of two zones", spreading(4, spread()), node_pool(requirements=[in_zone("zone-1", "zone-2")])
    )
    yield about("A NodePool whose label is one zone", spreading(4, spread()), node_pool(labels={ZONE: "zone-1"}))
    yield about(
        "Two NodePools of one zone each",
        spreading(4, spread()),
        node_pool("one", requirements=[in_zone("zone-1")]),
        node_pool("two", requirements=[in_zone("zone-2")]),
    )
    existing_objects = [node("three", zone="zone-3", cpu="1"), pod("old", cpu="900m", node="three", labels=WEB)]
    two = node_pool(requirements=[in_zone("zone-1", "zone-2")])
    yield about("A zone that only an existing node has", spreading(6, spread()), existing_objects, two)
    yield about(
        "A large skew lets one zone take all",
        spreading(6, spread(skew=5)),
        existing_objects,
        node_pool(requirements=[in_zone("zone-1")]),
    )
    uneven = [node("one", zone="zone-1"), *replicas(3, "old", cpu="100m", node="one", labels=WEB)]
    yield about(
        "A skew that is too large already is evened out",
        spreading(3, spread()),
        uneven,
        node_pool(requirements=[in_zone("zone-1", "zone-2", "zone-3")]),
    )
    yield about(
        "A zone that no NodePool reaches holds up the others",
        spreading(3, spread()),
        existing_objects,
        node_pool(requirements=[in_zone("zone-1")]),
    )
    yield about(
        "The constraint may be broken",
        spreading(3, spread(when="ScheduleAnyway")),
        existing_objects,
        node_pool(requirements=[in_zone("zone-1")]),
    )
    for least in (2, 3, 4):
        yield about(
            f"At least {least} zones, of which there are three", spreading(3, spread(minDomains=least)), node_pool()
        )
        yield about(f"At least {least} zones, of which a NodePool has two", spreading(3, spread(minDomains=least)), two)
    waiting = [
        pod("unrelated", cpu="100m", labels={"app": "other"}),
        pod("ended", node="one", labels=WEB, status={"phase": "Failed"}),
        node("one", zone="zone-1"),
    ]
    yield about("Only pods that run and match are counted", spreading(2, spread()), waiting)
    interdependent = [
        pod(f"web-{index}", cpu="100m", labels={}, topologySpreadConstraints=[spread(HOSTNAME, app="other")])
        for index in range(5)
    ]
    yield about("A selector that the pods themselves do not match", interdependent)
    yield about(
        "A pod's own selector of zones limits the zones", spreading(4, spread(), **selector(**{ZONE: "zone-1"}))
    )
    yield about(
        "A pod's requirement of zones limits the zones",
        spreading(4, spread(), affinity=node_affinity(in_zone("zone-1", "zone-2"))),
    )
    yield about(
        "A preference of zones does not limit them",
        spreading(6, spread(), affinity=node_affinity(preferences=[(1, in_zone("zone-1"))])),
    )


def _other_keys() -> Iterator[Question]:
    def about(sentence: str, *parts: Any, **settings: Any) -> Question:
        return solve("spread", sentence, *parts, **settings)

    yield about("Pods over hosts", spreading(4, spread(HOSTNAME)))
    yield about("Up to four pods on a host", spreading(4, spread(HOSTNAME, skew=4)))
    shops = spreading(2, spread(HOSTNAME, app="shop"), prefix="shop", labels={"app": "shop"})
    yield about("Two apps over hosts share nodes", spreading(2, spread(HOSTNAME)), shops)
    arm = spreading(
        2, spread(HOSTNAME, app="shop"), prefix="shop", labels={"app": "shop"}, **selector(**{ARCH: "arm64"})
    )
    yield about(
        "Two apps of different architectures over hosts",
        spreading(2, spread(HOSTNAME), **selector(**{ARCH: "amd64"})),
        arm,
    )
    yield about("Pods over capacity types", spreading(4, spread(CAPACITY_TYPE)))
    yield about(
        "Over capacity types, of which a NodePool has one",
        spreading(4, spread(CAPACITY_TYPE)),
        node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot")]),
    )
    existing_objects = [
        node("own", zone="zone-1", cpu="1", **{CAPACITY_TYPE: "on-demand"}),
        pod("old", cpu="900m", node="own", labels=WEB),
    ]
    spot = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot")])
    for when in ("DoNotSchedule", "ScheduleAnyway"):
        yield about(
            f"Over capacity types, one of which nothing is bought in: {when}",
            spreading(5, spread(CAPACITY_TYPE, when=when)),
            existing_objects,
            spot,
        )
    yield about("Pods over architectures", spreading(4, spread(ARCH)))
    yield about("Pods over zones and hosts", spreading(5, spread(), spread(HOSTNAME, skew=3)))
    yield about("Pods over zones and capacity types", spreading(6, spread(), spread(CAPACITY_TYPE)))
    yield about(
        "Pods over zones, capacity types and hosts", spreading(5, spread(), spread(CAPACITY_TYPE), spread(HOSTNAME))
    )
    halves = [
        node_pool(name, requirements=[requirement("half", "In", *values), requirement(CAPACITY_TYPE, "In", kind)])
        for name, values, kind in (("spot", "2345", "spot"), ("demand", "1", "on-demand"))
    ]
    yield about("A label of which one NodePool has more values than another", spreading(10, spread("half")), halves)
    yield about(
        "Capacity types by requirement",
        spreading(4, spread(CAPACITY_TYPE), affinity=node_affinity(requirement(CAPACITY_TYPE, "In", "on-demand"))),
    )
    keyed = [
        pod(
            f"{version}-{index}",
            cpu="100m",
            labels={**WEB, "version": version},
            topologySpreadConstraints=[spread(HOSTNAME, matchLabelKeys=["version"])],
        )
        for version in ("a", "b")
        for index in range(2)
    ]
    yield about("Two versions of an app are spread each by itself", keyed)
    yield about("A label key that no pod has", spreading(4, spread(HOSTNAME, matchLabelKeys=["none"])))


def _policies() -> Iterator[Question]:
    domains = [node("foo", cpu="1", half="foo", taints=[taint("team")]), node("bar", cpu="1", half="bar")]
    running = [pod("one", cpu="900m", node="foo", labels=WEB), pod("two", cpu="900m", node="bar", labels=WEB)]
    pool = node_pool(labels={"half": "baz"})
    for policy in ("Ignore", "Honor"):
        yield solve(
            "spread-policies",
            f"nodeTaintsPolicy {policy} with a node that the pods do not tolerate",
            spreading(5, spread("half", nodeTaintsPolicy=policy)),
            domains,
            running,
            pool,
        )
        apart = [
            node_pool("foo", labels={"half": "foo"}, taints=[taint("team")]),
            node_pool("bar", labels={"half": "bar"}),
        ]
        yield solve(
            "spread-policies",
            f"nodeTaintsPolicy {policy} with a NodePool that the pods do not tolerate",
            spreading(2, spread("half", nodeTaintsPolicy=policy)),
            apart,
        )
        app_pods = [
            spreading(
                2,
                spread("half", nodeTaintsPolicy=policy, app=name),
                prefix=name,
                labels={"app": name},
                tolerations=[toleration(name)],
            )
            for name in ("red", "blue")
        ]
        pools = [
            node_pool(name, requirements=[requirement("half", "In", "foo", "bar")], taints=[taint(name)])
            for name in ("red", "blue")
        ]
        yield solve(
            "spread-policies",
            f"nodeTaintsPolicy {policy} with NodePools of which each app tolerates one",
            *app_pods,
            pools,
        )
        nodes = [node("foo", cpu="1", half="foo", selector="no"), node("bar", cpu="1", half="bar", selector="yes")]
        own = node_pool(labels={"half": "baz", "selector": "yes"})
        yield solve(
            "spread-policies",
            f"nodeAffinityPolicy {policy} with a node that the pods do not select",
            spreading(5, spread("half", nodeAffinityPolicy=policy), **selector(selector="yes")),
            nodes,
            running,
            own,
        )


def _affinity() -> Iterator[Question]:
    def about(sentence: str, *parts: Any, **settings: Any) -> Question:
        return solve("affinity", sentence, *parts, **settings)

    target = pod("target", labels={"app": "db"})
    for name, key in (("host", HOSTNAME), ("zone", ZONE), ("architecture", ARCH)):
        yield about(
            f"To a pod that is planned too, by {name}",
            target,
            replicas(3, cpu="100m", affinity=pod_affinity("db", key)),
        )
        own = replicas(3, cpu="100m", labels=WEB, affinity=pod_affinity("web", key))
        yield about(f"To the pods themselves, by {name}", own)
    yield about("An affinity without terms", pod("web", affinity={"podAffinity": {}, "podAntiAffinity": {}}))
    yield about(
        "To the pods themselves, more than one host takes",
        replicas(8, cpu="1", labels=WEB, affinity=pod_affinity("web", HOSTNAME)),
    )
    yield about(
        "To the pods themselves, in a zone that is chosen",
        replicas(3, cpu="100m", labels=WEB, affinity=pod_affinity("web") | node_affinity(in_zone("zone-3"))),
    )
    yield about(
        "To a pod of a fixed zone",
        pod("target", labels={"app": "db"}, **selector(**{ZONE: "zone-2"})),
        replicas(3, cpu="100m", affinity=pod_affinity("db")),
    )
    yield about("To a pod that is not there", pod("web", affinity=pod_affinity("db")))
    yield about(
        "To a pod that runs",
        [
            node("own", zone="zone-2", cpu="1"),
            pod("target", node="own", labels={"app": "db"}),
            pod("web", affinity=pod_affinity("db")),
        ],
    )
    chain = [
        pod(name, cpu="100m", labels={"app": name}, **({"affinity": pod_affinity(to, HOSTNAME)} if to else {}))
        for name, to in (("a", ""), ("b", "a"), ("c", "b"), ("d", "c"))
    ]
    yield about("A chain of pods", chain)
    yield about("A chain without a beginning", chain[1:])
    yield about(
        "Two pods of incompatible selectors, to each other",
        [
            pod(f"web-{zone}", labels=WEB, affinity=pod_affinity("web", HOSTNAME), **selector(**{ZONE: zone}))
            for zone in ("zone-1", "zone-2")
        ],
    )


def _anti_affinity() -> Iterator[Question]:
    def about(sentence: str, *parts: Any, **settings: Any) -> Question:
        return solve("anti-affinity", sentence, *parts, **settings)

    yield about(
        "From each other, by host",
        replicas(3, cpu="100m", labels=WEB, affinity=pod_affinity("web", HOSTNAME, anti=True)),
    )
    yield about(
        "From each other, by zone, in one pass",
        replicas(3, cpu="100m", labels=WEB, affinity=pod_affinity("web", anti=True)),
    )
    zonal_pods = [
        pod(f"db-{zone}", cpu="1", labels={"app": "db"}, **selector(**{ZONE: zone}))
        for zone in ("zone-1", "zone-2", "zone-3")
    ]
    avoiding = pod("web", cpu="100m", affinity=pod_affinity("db", anti=True))
    yield about("From pods that are in every zone", zonal_pods, avoiding)
    yield about("From a pod that may be in any zone", pod("db", cpu="1", labels={"app": "db"}), avoiding)
    inverse = [
        pod(f"web-{zone}", cpu="1", affinity=pod_affinity("db", anti=True), **selector(**{ZONE: zone}))
        for zone in ("zone-1", "zone-2", "zone-3")
    ]
    yield about("Pods in every zone that avoid the last", inverse, pod("db", cpu="100m", labels={"app": "db"}))
    yield about(
        "A pod that may be anywhere avoids the last",
        pod("web", cpu="1", affinity=pod_affinity("db", anti=True)),
        pod("db", cpu="100m", labels={"app": "db"}),
    )
    hosts = [node(zone, zone=zone, cpu="1") for zone in ("zone-1", "zone-2", "zone-3")]
    running = [
        pod(f"web-{zone}", cpu="1", node=zone, affinity=pod_affinity("db", anti=True))
        for zone in ("zone-1", "zone-2", "zone-3")
    ]
    yield about(
        "Pods that run in every zone avoid the last", hosts, running, pod("db", cpu="100m", labels={"app": "db"})
    )
    yield about(
        "Pods that run in two zones avoid the last", hosts, running[:2], pod("db", cpu="100m", labels={"app": "db"})
    )
    yield about(
        "By architecture",
        pod("db", cpu="1", labels={"app": "db"}, **selector(**{ARCH: "arm64"})),
        pod("web", cpu="100m", affinity=pod_affinity("db", ARCH, anti=True)),
    )
    yield about(
        "From pods that run",
        [node("own", zone="zone-1", cpu="1"), pod("db", node="own", labels={"app": "db"})],
        pod("web", affinity=pod_affinity("db", anti=True)),
    )


def _preference(app: str, key: str = ZONE, *, anti: bool = False) -> Document:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    preference = {"weight": 50, "podAffinityTerm": term}
    return {
        "podAntiAffinity" if anti else "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}
    }


def _preferred_affinity() -> Iterator[Question]:
    hosts = [node(zone, zone=zone, cpu="1") for zone in ("zone-1", "zone-2", "zone-3")]
    running = [pod(f"db-{zone}", cpu="1", node=zone, labels={"app": "db"}) for zone in ("zone-1", "zone-2", "zone-3")]
    for policy in ("Respect", "Ignore"):

        def about(sentence: str, *parts: Any, policy: str = policy) -> Question:
            return solve("preferred-affinity", f"{sentence}: {policy}", *parts, preferencePolicy=policy)

        yield about("To a pod that is not there", pod("web", affinity=_preference("db")))
        yield about(
            "From pods that run in every zone", hosts, running, pod("web", affinity=_preference("db", anti=True))
        )
        yield about(
            "From each other, by host",
            replicas(2, cpu="100m", labels=WEB, affinity=_preference("web", HOSTNAME, anti=True)),
        )
        conflict = pod("web", affinity=_preference("db") | node_affinity(in_zone("zone-1")))
        yield about(
            "To a pod in another zone than is required",
            pod("db", cpu="2", labels={"app": "db"}, **selector(**{ZONE: "zone-2"})),
            conflict,
        )
        yield about("Spreading that may be broken", spreading(3, spread(HOSTNAME, when="ScheduleAnyway")))


def _namespaces() -> Iterator[Question]:
    def within(term: Document) -> Document:
        base = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "db"}}}
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [base | term]}}

    elsewhere = pod("db", labels={"app": "db"}, metadata={"namespace": "other"})
    for sentence, term in {
        "Only pods of the same namespace count": {},
        "Namespaces are listed": {"namespaces": ["other"]},
        "Namespaces are selected": {"namespaceSelector": {"matchLabels": {"team": "red"}}},
        "All namespaces are selected": {"namespaceSelector": {}},
        "No namespace is selected": {"namespaceSelector": {"matchLabels": {"team": "blue"}}},
    }.items():
        yield solve(
            "namespaces",
            sentence,
            elsewhere,
            pod("web", affinity=within(term)),
            namespace("default"),
            namespace("other", team="red"),
        )


def _default_constraints() -> Iterator[Question]:
    def about(sentence: str, *parts: Any, key: str = ZONE, when: str = "DoNotSchedule", **fields: Any) -> Question:
        constraint = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when, **fields}
        config = {"podTopologySpread": {"defaultConstraints": [constraint]}}
        return solve("default-spread", sentence, *parts, schedulerConfig=config)

    owned_pods = replicas(4, cpu="100m", labels=WEB, metadata=owned_by("ReplicaSet", "web"))
    yield about("Pods of a ReplicaSet over zones", owned_pods, replica_set())
    yield about("Pods of a ReplicaSet over hosts", owned_pods, replica_set(), key=HOSTNAME)
    yield about(
        "Pods with constraints of their own",
        spreading(4, spread(HOSTNAME), metadata=owned_by("ReplicaSet", "web")),
        replica_set(),
    )
    yield about("Pods of a ReplicaSet that is gone", owned_pods)
    yield about("Pods of nobody", replicas(4, cpu="100m", labels=WEB))
    yield about("Pods that a Service selects", replicas(4, cpu="100m", labels=WEB), service(app="web"))
    yield about(
        "A Service of another namespace", replicas(4, cpu="100m", labels=WEB), service(namespace="other", app="web")
    )
    yield about("A Service that selects nothing", replicas(4, cpu="100m", labels=WEB), service())
    yield about("A Service beside the ReplicaSet", owned_pods, replica_set(), service(team="red"))
    expressions = replica_set(matchExpressions=[{"key": "app", "operator": "In", "values": ["web"]}])
    yield about("A ReplicaSet with expressions", owned_pods, expressions)
    yield about("At least four zones", owned_pods, replica_set(), minDomains=4)
    hosts = [node("three", zone="zone-3", cpu="1"), pod("old", cpu="900m", node="three", labels=WEB)]
    narrow = node_pool(requirements=[in_zone("zone-1")])
    yield about("Pods that run count", owned_pods, replica_set(), hosts, narrow)
    yield about(
        "Pods that run count, and the constraint may be broken",
        owned_pods,
        replica_set(),
        hosts,
        narrow,
        when="ScheduleAnyway",
    )
    pods = [
        *owned_pods,
        *replicas(2, "shop", cpu="100m", labels={"app": "shop"}, metadata=owned_by("ReplicaSet", "shop")),
    ]
    yield about("Two ReplicaSets are spread each by itself", pods, replica_set(), replica_set("shop"), key=HOSTNAME)
