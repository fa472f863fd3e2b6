import pytest

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def term(selector=None, **keys):
    selector_fields = {} if selector is None else {"labelSelector": selector}
    return {"topologyKey": HOST} | selector_fields | keys


def constraint(selector=None, **keys):
    return term(selector, **keys) | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def expressions(term):
    return term["labelSelector"].get("matchExpressions")


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_label_keys_of_affinity_become_requirements(store, pod, kind):
    required_term = term({"matchLabels": {"app": "web"}}, matchLabelKeys=["rev", "absent"], mismatchLabelKeys=["tier"])
    preferred_term = term({}, mismatchLabelKeys=["rev"])
    terms = {REQUIRED: [required_term], PREFERRED: [{"weight": 1, "podAffinityTerm": preferred_term}]}
    affinity = store.create(pod(labels={"rev": "1", "tier": "a"}, affinity={kind: terms}))["spec"]["affinity"][kind]
    assert expressions(affinity[REQUIRED][0]) == [
        {"key": "rev", "operator": "In", "values": ["1"]},
        {"key": "tier", "operator": "NotIn", "values": ["a"]},
    ]
    assert affinity[REQUIRED][0]["matchLabelKeys"] == ["rev", "absent"]
    preferred_term = affinity[PREFERRED][0]["podAffinityTerm"]
    assert expressions(preferred_term) == [{"key": "rev", "operator": "NotIn", "values": ["1"]}]


def test_label_keys_of_spread_become_requirements(store, pod):
    spread = [constraint({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, matchLabelKeys=["rev"])]
    stored_pod = store.create(pod(labels={"rev": "1"}, topologySpreadConstraints=spread))
    assert expressions(stored_pod["spec"]["topologySpreadConstraints"][0]) == [
        {"key": "app", "operator": "Exists"},
        {"key": "rev", "operator": "In", "values": ["1"]},
    ]


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"rev": "1"}}, {"matchExpressions": [{"key": "rev", "operator": "Exists"}]}]
)
def test_a_key_that_the_selector_has_already_is_refused(refusal, pod, selector):
    invalid_term = term(selector, matchLabelKeys=["rev"])
    message = refusal(pod(labels={"rev": "1"}, affinity={"podAntiAffinity": {REQUIRED: [invalid_term]}}))
    path = f"spec.affinity.podAntiAffinity.{REQUIRED}[0][0]"
    assert f'{path}: Invalid value: "rev": exists in both matchLabelKeys and labelSelector' in message
    message = refusal(
        pod(labels={"rev": "1"}, topologySpreadConstraints=[constraint(selector, matchLabelKeys=["rev"])])
    )
    assert 'spec.topologySpreadConstraints[0][0]: Invalid value: "rev": exists in both' in message


def test_a_mismatched_key_may_be_selected_besides_but_not_matched(store, refusal, pod):
    contradictory_term = term({}, matchLabelKeys=["rev"], mismatchLabelKeys=["rev"])
    message = refusal(pod(affinity={"podAffinity": {REQUIRED: [contradictory_term]}}))
    assert 'matchLabelKeys[0]: Invalid value: "rev": exists in both matchLabelKeys and mismatchLabelKeys' in message
    valid_term = term({"matchLabels": {"rev": "1"}}, mismatchLabelKeys=["rev"])
    store.create(pod(labels={"rev": "1"}, affinity={"podAffinity": {REQUIRED: [valid_term]}}))


def test_label_keys_need_a_selector(refusal, pod):
    message = refusal(pod(topologySpreadConstraints=[constraint(matchLabelKeys=["rev"])]))
    assert "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set" in message


def test_malformed_terms_are_left_alone(store, pod):
    malformed = {"podAffinity": {REQUIRED: [3, {"labelSelector": 4, "matchLabelKeys": [5]}]}, "podAntiAffinity": []}
    assert store.create(pod(labels={"rev": "1"}, affinity=malformed))["spec"]["affinity"] == malformed
