"""NodeOverlays change prices and extended resources of instance types, as Karpenter applies them."""

import pytest

from podium.provisioner.cloudprovider.overlays import adjusted_price, with_overlays
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import CAPACITY_TYPE, catalogue, instance_type, node_pool, pod, requirement
from tests.unit.provisioner.clusters import plan as plan_of

TYPE = "node.kubernetes.io/instance-type"
TYPES = (instance_type("small", 2, "2Gi", price=1.0), instance_type("large", 8, "16Gi", price=4.0))


def _overlay(name, *rules, weight=None, **spec):
    content = {"requirements": list(rules), **spec, **({"weight": weight} if weight else {})}
    return {"kind": "NodeOverlay", "metadata": {"name": name}, "spec": content}


def _overlaid(*documents):
    objects = read_objects([node_pool("a", labels={"team": "x"}), node_pool("b"), *documents])
    kinds = catalogue(*TYPES)
    return with_overlays(kinds, objects.overlays, objects.node_pools, kinds.well_known)


def _prices(instance_types, name):
    return [sorted({o.price for o in item.offerings}) for item in instance_types if item.name == name]


@pytest.mark.parametrize(
    ("change", "price"),
    [("0.5", 0.5), ("+0.5", 2.5), ("-0.5", 1.5), ("+10%", 2.2), ("-25%", 1.5), ("-100%", 0.0), ("-9", 0.0)],
)
def test_a_price_is_set_or_changed_and_never_negative(change, price) -> None:
    assert adjusted_price(2.0, change) == pytest.approx(price)


def test_an_overlay_changes_the_offerings_that_it_means() -> None:
    rules = (requirement(TYPE, "In", "small"), requirement(CAPACITY_TYPE, "In", "spot"))
    overlaid, faults = _overlaid(_overlay("o", *rules, priceAdjustment="+100%"))
    assert faults == ()
    assert _prices(overlaid.instance_types, "small") == [[1.0, 1.4]]
    assert _prices(overlaid.instance_types, "large") == [[pytest.approx(2.8), 4.0]]


def test_the_heavier_overlay_counts() -> None:
    rule = requirement(TYPE, "In", "small")
    overlaid, faults = _overlaid(_overlay("light", rule, price="7"), _overlay("heavy", rule, price="3", weight=5))
    assert (_prices(overlaid.instance_types, "small"), faults) == ([[3.0]], ())


def test_an_overlay_that_contradicts_one_of_its_weight_does_not_count_at_all() -> None:
    overlays = (_overlay("a", requirement(TYPE, "Exists"), price="7"), _overlay("b", price="3"))
    overlaid, faults = _overlaid(*overlays)
    assert _prices(overlaid.instance_types, "small") == [[3.0]]
    assert faults == ("NodeOverlay a is not counted: it contradicts one of the same weight",)


def test_extended_resources_are_added() -> None:
    overlaid, _ = _overlaid(_overlay("o", requirement(TYPE, "In", "large"), capacity={"example.com/slice": "4"}))
    small, large = overlaid.instance_types
    assert "example.com/slice" not in small.capacity
    assert large.allocatable["example.com/slice"] == 4


@pytest.mark.parametrize("rule", [requirement("karpenter.sh/nodepool", "In", "a"), requirement("team", "In", "x")])
def test_an_overlay_may_mean_one_pool(rule) -> None:
    overlaid, _ = _overlaid(_overlay("o", rule, price="0.5"))
    by_pool = {
        next(iter(item.requirements.get("karpenter.sh/nodepool").values)): {o.price for o in item.offerings}
        for item in overlaid.instance_types
        if item.name == "small"
    }
    assert by_pool["a"] == {0.5}
    assert by_pool["b"] != {0.5}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"capacity": {"cpu": "4"}}, "spec.capacity[cpu]: is not an extended resource"),
        ({"price": "1", "priceAdjustment": "+1"}, "spec.price: is not for an overlay with priceAdjustment"),
        ({"price": "cheap"}, "spec.price: 'cheap' is neither a price nor a change of one"),
        ({"requirements": [requirement(TYPE, "Near")]}, 'spec.requirements[0].operator: "Near" is not one of'),
    ],
)
def test_an_overlay_that_cannot_be_used_is_named(spec, text) -> None:
    document = _overlay("bad")
    document["spec"] |= spec
    _, faults = _overlaid(document)
    assert faults[0].startswith(f"NodeOverlay bad is not counted: {text}")


def test_plans_go_by_overlays() -> None:
    """Each pool buys what its overlay makes cheapest."""
    rules = (requirement("karpenter.sh/nodepool", "In", "b"), requirement(TYPE, "In", "large"))
    answer = plan_of(
        node_pool("a"),
        node_pool("b", weight=5),
        _overlay("o", *rules, price="0.1"),
        pod("web"),
        types=TYPES,
        uses_overlays=True,
    )
    (claim,) = answer["claims"]
    assert (claim["pool"], claim["types"][0], claim["price"]) == ("b", "large", 0.1)
