"""Questions about prices, `minValues`, reserved capacity and NodeOverlays.

Source: karpenter pkg/controllers/provisioning/scheduling/instance_selection_test.go, reserved_fallback_test.go,
suite_test.go, provisioning/suite_test.go and nodeoverlay/suite_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.parity.karpenter.questions import (
    MIXED,
    Question,
    gates,
    in_zone,
    overlay,
    replicas,
    selector,
    sized_types,
    solve,
)
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    RESERVATION,
    ZONE,
    Document,
    instance_type,
    node_affinity,
    node_pool,
    pod,
    requirement,
    spread,
)

ARCH, SYSTEM, TYPE = "kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type"
CPU, FAMILY = "karpenter.kwok.sh/instance-cpu", "karpenter.kwok.sh/instance-family"


def _assorted_types() -> tuple[Document, ...]:
    """Instance types of each architecture and system whose prices do not follow their sizes."""
    return tuple(
        instance_type(f"{arch}-{system}-{size}", size, f"{2 * size}Gi", 50, arch=arch, price=price)
        | {"operatingSystems": [system]}
        for system in ("linux", "windows")
        for arch in ("amd64", "arm64")
        for size, price in ((2, 0.40), (4, 0.25 if arch == "arm64" else 0.31), (8, 0.9))
    )


ASSORTED: Final = _assorted_types()


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _prices()
    yield from _min_values()
    yield from _relaxed_min_values()
    yield from _reservations()
    yield from _overlays()
    yield from _several_overlays()


def _prices() -> Iterator[Question]:
    demands: dict[str, Sequence[tuple[str, str]]] = {
        "amd64": [(ARCH, "amd64")],
        "arm64": [(ARCH, "arm64")],
        "Windows": [(SYSTEM, "windows")],
        "Linux": [(SYSTEM, "linux")],
        "one zone": [(ZONE, "zone-3")],
        "spot": [(CAPACITY_TYPE, "spot")],
        "on demand in one zone": [(CAPACITY_TYPE, "on-demand"), (ZONE, "zone-1")],
        "spot in a zone without spot": [(CAPACITY_TYPE, "spot"), (ZONE, "zone-3")],
        "arm64, Windows, on demand in one zone": [
            (ARCH, "arm64"),
            (SYSTEM, "windows"),
            (CAPACITY_TYPE, "on-demand"),
            (ZONE, "zone-1"),
        ],
        "an architecture that is not there": [(ARCH, "riscv")],
    }
    for name, pairs in demands.items():
        pool = node_pool(requirements=[requirement(key, "In", value) for key, value in pairs])
        yield solve("prices", f"A NodePool of {name}", pod("web"), pool, types=ASSORTED)
        yield solve("prices", f"A pod for {name}", pod("web", **selector(**dict(pairs))), types=ASSORTED)
    amd = node_pool(requirements=[requirement(ARCH, "In", "amd64"), requirement(CAPACITY_TYPE, "In", "spot")])
    yield solve(
        "prices",
        "NodePool and pod demand one thing each",
        pod("web", **selector(**{SYSTEM: "windows", ZONE: "zone-2"})),
        amd,
        types=ASSORTED,
    )
    for cores in (1, 3, 7):
        yield solve("prices", f"{cores} cores", pod("web", cpu=str(cores)), types=ASSORTED)
    cheap = instance_type("cheap", 2, "4Gi", 50, price=0.5)
    for offering in cheap["offerings"]:
        if offering["requirements"][0]["values"] == ["spot"]:
            offering["price"] = 0.05
    plain = instance_type("plain", 2, "4Gi", 50, price=0.4)
    on_demand = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])
    yield solve(
        "prices", "The order goes by what can be bought, not by spot", pod("web"), on_demand, types=(cheap, plain)
    )
    unavailable_type = instance_type("gone", 2, "4Gi", 50, price=0.1)
    for offering in unavailable_type["offerings"]:
        offering["Available"] = False
    yield solve("prices", "An instance type that is not available", pod("web"), types=(unavailable_type, plain))
    yield solve("prices", "Nothing that is available", pod("web"), types=(unavailable_type,))


def _least(key: str, count: int, operator: str = "Exists", *values: str) -> Document:
    return requirement(key, operator, *values, minValues=count)


def _min_values() -> Iterator[Question]:
    def about(sentence: str, *requirements: Document, pods: Sequence[Document] = (), types: Any = None) -> Question:
        return solve(
            "min-values",
            sentence,
            pods or pod("web"),
            node_pool(requirements=requirements),
            types=types or sized_types(6),
        )

    least_types = _least(TYPE, 2, "In", "size-01", "size-02", "size-03")
    yield about("Two of three instance types", least_types)
    yield about(
        "Two of three instance types, of which a pod needs the largest", least_types, pods=[pod("web", cpu="2500m")]
    )
    yield about("Several pods leave fewer instance types", least_types, pods=replicas(4, cpu="900m"))
    for operator, limit, count in (
        ("Gt", "3", 2),
        ("Gt", "4", 3),
        ("Lt", "4", 2),
        ("Lt", "3", 3),
        ("Gte", "4", 3),
        ("Lte", "2", 3),
    ):
        yield about(f"{count} numbers of cores, {operator} {limit}", _least(CPU, count, operator, limit))
    yield about(
        "The larger of two minimums of one key counts",
        _least(TYPE, 1, "In", "size-01", "size-02", "size-03"),
        _least(TYPE, 2, "NotIn", "size-01"),
    )
    yield about(
        "A minimum of which NotIn leaves too few",
        _least(TYPE, 3, "In", "size-01", "size-02", "size-03"),
        requirement(TYPE, "NotIn", "size-01"),
    )
    yield about("Two minimums of bounds", _least(CPU, 1, "Gt", "1"), _least(CPU, 3, "Lt", "5"))
    yield about("More instance types than there are", _least(TYPE, 7))
    yield about("Minimums of two keys", _least(TYPE, 3), _least(ZONE, 2))
    yield about("Minimums of two keys, one of which fails", _least(TYPE, 3), _least(ZONE, 4))
    families = [
        instance_type(f"{kind}-{size}", size, f"{2 * size}Gi", 50) for kind in ("m5", "c5", "r5") for size in (2, 4)
    ]
    yield about("Two families", _least(FAMILY, 2), types=families)
    yield about("Four families of three", _least(FAMILY, 4), types=families)
    yield about("A minimum of a key that no instance type has", _least("example.com/none", 1), types=families)


def _relaxed_min_values() -> Iterator[Question]:
    for policy in ("Strict", "BestEffort"):

        def about(sentence: str, *parts: Any, policy: str = policy) -> Question:
            return solve(
                "min-values-policy", f"{sentence}: {policy}", *parts, types=sized_types(4), minValuesPolicy=policy
            )

        yield about("More instance types than there are", pod("web"), node_pool(requirements=[_least(TYPE, 6)]))
        yield about("More zones than there are", pod("web"), node_pool(requirements=[_least(ZONE, 5)]))
        yield about("More of both", pod("web"), node_pool(requirements=[_least(TYPE, 6), _least(ZONE, 5)]))
        yield about(
            "A pod leaves fewer instance types", pod("web", cpu="2500m"), node_pool(requirements=[_least(TYPE, 3)])
        )
        yield about(
            "A pod leaves one zone",
            pod("web", **selector(**{ZONE: "zone-1"})),
            node_pool(requirements=[_least(ZONE, 2)]),
        )
        two = [node_pool("one", requirements=[_least(TYPE, 6)], weight=90), node_pool("two", weight=10)]
        yield about("A lighter NodePool has enough", pod("web"), two)
        pools = [
            node_pool("one", requirements=[_least(TYPE, 6)], weight=90),
            node_pool("two", requirements=[_least(TYPE, 7)], weight=10),
        ]
        yield about("No NodePool has enough", pod("web"), pools)
        yield about(
            "Pods that share a node, of which one leaves too few",
            pod("one", cpu="100m"),
            pod("two", cpu="3"),
            node_pool(requirements=[_least(TYPE, 2)]),
        )


def _reservations() -> Iterator[Question]:
    def reserved_type(name: str, size: int, places: int, *reservations: str) -> Document:
        return instance_type(
            name, size, f"{2 * size}Gi", 50, reserved=dict.fromkeys(reservations or (f"r-{name}",), places)
        )

    def about(sentence: str, *parts: Any, types: Sequence[Document], **settings: Any) -> Question:
        return solve("reserved", sentence, *parts, types=types, **settings)

    small, large = reserved_type("small", 2, 1), reserved_type("large", 4, 2)
    apart = replicas(3, cpu="1", labels={"app": "web"}, topologySpreadConstraints=[spread(HOSTNAME)])
    yield about("Reserved capacity comes first", pod("web"), types=(small, large))
    yield about("Reserved capacity is used up", apart, types=(small,))
    yield about("Nodes of several reserved instance types", apart, types=(small, large))
    yield about("The gate is off", apart, types=(small, large), **gates(ReservedCapacity=False))
    only = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "reserved")])
    yield about("A NodePool of reserved capacity only, which is used up", apart, only, types=(small,))
    full = reserved_type("small", 2, 0)
    yield about("A full reservation", pod("web"), types=(full,))
    yield about("A full reservation, and a NodePool of nothing else", pod("web"), only, types=(full,))
    broken_type = reserved_type("small", 2, 2)
    broken_type["offerings"][-1]["Available"] = False
    yield about("A reservation that is not available", pod("web"), types=(broken_type,))
    yield about(
        "A reservation that is not available, and a NodePool of nothing else", pod("web"), only, types=(broken_type,)
    )
    pools = [node_pool("one", labels={"pool": "one"}), node_pool("two", labels={"pool": "two"})]
    pods = [pod(f"web-{name}", **selector(pool=name)) for name in ("one", "two")]
    yield about("NodePools share a reservation of one place", pods, pools, types=(small,))
    yield about("NodePools share a reservation of two places", pods, pools, types=(reserved_type("small", 2, 2),))
    pair = reserved_type("small", 2, 1, "r-a", "r-b")
    split = [
        node_pool(name, labels={"pool": name}, requirements=[requirement(RESERVATION, "In", of)])
        for name, of in (("one", "r-a"), ("two", "r-b"))
    ]
    yield about("Each NodePool has a reservation of its own", pods, split, types=(pair,))
    yield about("Two reservations of one instance type", apart, types=(pair,))
    heavy = [
        node_pool("one", requirements=[requirement(CAPACITY_TYPE, "In", "reserved")], weight=90),
        node_pool("two", requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")], weight=10),
    ]
    yield about("A lighter NodePool of on-demand capacity waits its turn", apart, heavy, types=(small,))
    yield about("A lighter NodePool takes over where a reservation is full", pod("web"), heavy, types=(full,))
    preference = node_affinity(preferences=[(1, requirement(CAPACITY_TYPE, "In", "reserved"))])
    preferring = replicas(2, cpu="1500m", affinity=preference)
    yield about("A preference for reserved capacity is kept while a place is free", preferring, types=(small,))
    yield about(
        "A pod that chooses a reservation", pod("web", **selector(**{RESERVATION: "r-large"})), types=(small, large)
    )
    yield about(
        "Pods in a zone without reserved capacity", pod("web", **selector(**{ZONE: "zone-2"})), types=(small, large)
    )


def _overlays() -> Iterator[Question]:
    on = gates(NodeOverlay=True)
    default = requirement(TYPE, "In", "default")

    def about(sentence: str, *parts: Any, web: Document | None = None, **settings: Any) -> Question:
        return solve("overlays", sentence, web or pod("web"), *parts, types=MIXED, **(settings or on))

    for name, change in {
        "A price": {"price": "0.01"},
        "A price that is raised": {"priceAdjustment": "+1000"},
        "A price that is lowered": {"priceAdjustment": "-0.1"},
        "A price below nothing": {"priceAdjustment": "-10"},
        "A share that is added": {"priceAdjustment": "+150%"},
        "A share that is taken off": {"priceAdjustment": "-90%"},
        "Everything is taken off": {"priceAdjustment": "-100%"},
    }.items():
        yield about(f"{name}, of one instance type", overlay("change", default, **change))
    cheap = {"price": "0.01"}
    yield about("The gate is off", overlay("change", default, **cheap), featureGates={})
    yield about("A price of everything", overlay("change", **cheap))
    yield about("A price of spot capacity", overlay("change", requirement(CAPACITY_TYPE, "In", "spot"), **cheap))
    yield about("A price in one zone", overlay("change", in_zone("zone-3"), **cheap))
    yield about(
        "A price in one zone for spot of one instance type",
        overlay("change", in_zone("zone-1"), requirement(CAPACITY_TYPE, "In", "spot"), default, **cheap),
    )
    yield about(
        "A price of an instance type that is not there", overlay("change", requirement(TYPE, "In", "none"), **cheap)
    )
    yield about("A price of all but one instance type", overlay("change", requirement(TYPE, "NotIn", "small"), **cheap))
    yield about("A price of an architecture", overlay("change", requirement(ARCH, "In", "arm64"), **cheap))
    pools = [node_pool("one", labels={"team": "red"}), node_pool("two", labels={"team": "blue"})]
    for name, demand in {
        "of one NodePool": requirement("karpenter.sh/nodepool", "In", "two"),
        "of a NodePool's label": requirement("team", "In", "blue"),
        "of a label that no NodePool has": requirement("team", "In", "green"),
    }.items():
        yield about(
            f"A price {name}",
            overlay("change", default, demand, **cheap),
            pools,
            web=pod("web", **selector(**{"karpenter.sh/nodepool": "two"})),
        )
    device = {"capacity": {"example.com/dongle": "2"}}
    wanting = pod("web")
    wanting["spec"]["containers"][0]["resources"]["requests"]["example.com/dongle"] = "1"
    yield about("A resource that only an overlay adds", overlay("change", default, **device), web=wanting)
    yield about(
        "A resource that an overlay adds elsewhere",
        overlay("change", requirement(TYPE, "In", "none"), **device),
        web=wanting,
    )
    yield about(
        "A resource that an overlay adds where one zone is selected",
        overlay("change", default, in_zone("zone-1"), **device),
        web=wanting,
    )
    yield about(
        "A resource that an overlay adds for one NodePool",
        overlay("change", requirement("karpenter.sh/nodepool", "In", "two"), **device),
        pools,
        web=wanting,
    )
    yield about("A price and a resource in one overlay", overlay("change", default, **cheap, **device), web=wanting)


def _several_overlays() -> Iterator[Question]:
    on = gates(NodeOverlay=True)
    default, any_of_two = requirement(TYPE, "In", "default"), requirement(TYPE, "In", "default", "small")

    def about(sentence: str, *parts: Any, web: Document | None = None) -> Question:
        return solve("several-overlays", sentence, web or pod("web"), *parts, types=MIXED, **on)

    for kind, first_change, two in (
        ("prices", {"price": "0.01"}, {"price": "9"}),
        ("adjustments", {"priceAdjustment": "-0.15"}, {"priceAdjustment": "+9"}),
    ):
        yield about(
            f"Two {kind} of different weight",
            overlay("a", default, weight=1, **two),
            overlay("b", default, weight=90, **first_change),
        )
        yield about(
            f"Two {kind} of one weight",
            overlay("a", default, weight=5, **first_change),
            overlay("b", default, weight=5, **two),
        )
        yield about(
            f"Two {kind} without weights", overlay("a", default, **first_change), overlay("b", any_of_two, **two)
        )
        yield about(
            f"Two equal {kind}", overlay("a", default, **first_change), overlay("b", any_of_two, **first_change)
        )
        yield about(
            f"Two {kind} of different instance types",
            overlay("a", default, **first_change),
            overlay("b", requirement(TYPE, "In", "small"), **two),
        )
    device, larger_device = {"capacity": {"example.com/dongle": "1"}}, {"capacity": {"example.com/dongle": "4"}}
    wanting = pod("web")
    wanting["spec"]["containers"][0]["resources"]["requests"]["example.com/dongle"] = "2"
    yield about(
        "Two amounts of a resource, of different weight",
        overlay("a", default, weight=1, **device),
        overlay("b", default, weight=90, **larger_device),
        web=wanting,
    )
    yield about(
        "Two amounts of a resource, of one weight",
        overlay("a", default, weight=5, **device),
        overlay("b", default, weight=5, **larger_device),
        web=wanting,
    )
    yield about(
        "Amounts of two resources",
        overlay("a", default, **larger_device),
        overlay("b", default, capacity={"example.com/other": "1"}),
        web=wanting,
    )
    yield about(
        "A price in one overlay and a resource in another",
        overlay("a", default, price="0.01"),
        overlay("b", default, **larger_device),
        web=wanting,
    )
    yield about(
        "An overlay that says a resource twice in part",
        overlay("a", default, capacity={"example.com/dongle": "4", "example.com/other": "1"}),
        overlay("b", default, capacity={"example.com/dongle": "4"}),
        web=wanting,
    )
    yield about(
        "An overlay that conflicts for one instance type has no effect on another",
        overlay("a", default, price="0.01", weight=5),
        overlay("b", any_of_two, price="0.001", weight=5),
    )
