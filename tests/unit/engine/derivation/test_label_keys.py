import pytest

from podium.engine.derivation.label_keys import with_label_keys

LABELS = {"app": "web", "pod-template-hash": "abc"}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
SELECTOR = {"matchLabels": {"app": "web"}}


def _merge(term, kind="podAffinity", strength=REQUIRED):
    spec = with_label_keys({"affinity": {kind: {strength: [term]}}}, LABELS)
    (merged_term,) = spec["affinity"][kind][strength]
    return merged_term


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(("field", "operator"), [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")])
def test_keys_become_requirements_of_the_selector(kind, field, operator):
    term = {"labelSelector": SELECTOR, field: ["pod-template-hash"]}
    requirement = {"key": "pod-template-hash", "operator": operator, "values": ["abc"]}
    selector = {**SELECTOR, "matchExpressions": [requirement]}
    assert _merge(term, kind)["labelSelector"] == selector
    preferred_term = _merge({"weight": 1, "podAffinityTerm": term}, kind, PREFERRED)
    assert preferred_term["podAffinityTerm"]["labelSelector"] == selector
    assert preferred_term["weight"] == 1


def test_keys_of_spread_constraints_are_merged():
    constraint = {"labelSelector": SELECTOR, "matchLabelKeys": ["pod-template-hash"], "maxSkew": 1}
    (merged_constraint,) = with_label_keys({"topologySpreadConstraints": [constraint]}, LABELS)[
        "topologySpreadConstraints"
    ]
    assert merged_constraint["labelSelector"]["matchExpressions"] == [
        {"key": "pod-template-hash", "operator": "In", "values": ["abc"]}
    ]


def test_merging_again_changes_nothing():
    once = _merge({"labelSelector": SELECTOR, "matchLabelKeys": ["pod-template-hash"]})
    assert _merge(once) == once


def test_keys_that_the_pod_lacks_are_left_out_and_own_requirements_stay():
    own = {"key": "tier", "operator": "Exists"}
    term = {"labelSelector": {"matchExpressions": [own]}, "matchLabelKeys": ["absent", "app"]}
    assert _merge(term)["labelSelector"]["matchExpressions"] == [
        own,
        {"key": "app", "operator": "In", "values": ["web"]},
    ]


@pytest.mark.parametrize("term", [5, {"matchLabelKeys": ["app"]}, {"labelSelector": SELECTOR, "matchLabelKeys": "app"}])
def test_a_term_without_a_selector_and_malformed_ones_stay(term):
    assert _merge(term) == term


@pytest.mark.parametrize("affinity", [5, {"podAffinity": 5}, {"podAffinity": {REQUIRED: 5}}])
def test_malformed_affinity_stays(affinity):
    assert with_label_keys({"affinity": affinity}, LABELS) == {"affinity": affinity}
