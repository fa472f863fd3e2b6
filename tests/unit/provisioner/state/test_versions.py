"""NodePools of v1beta1 are planned as those of v1, and other versions are refused by group and version."""

import json

import pytest

from podium.objects.errors import FieldError
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.versions import current_form
from tests.unit.cli.commands import run, write_objects
from tests.unit.provisioner.clusters import instance_type, node_pool, pod, requirement

TYPES = [instance_type("small", 2, "2Gi"), instance_type("large", 8, "16Gi")]
_RULES = [requirement("node.kubernetes.io/instance-type", "In", "large")]


def _former(**disruption):
    return {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "old"},
        "spec": {
            "template": {
                "spec": {
                    "requirements": _RULES,
                    "nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "it"},
                    "kubelet": {"maxPods": 20},
                }
            },
            "disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "720h", **disruption},
        },
        "status": {"conditions": [{"type": "NodeClassReady", "status": "True"}]},
    }


def test_a_pool_of_v1beta1_has_the_fields_of_v1() -> None:
    pool = current_form(_former())
    assert pool["apiVersion"] == "karpenter.sh/v1"
    spec = pool["spec"]
    assert spec["disruption"] == {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
    assert spec["template"]["spec"] == {
        "requirements": _RULES,
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "it"},
        "expireAfter": "720h",
    }
    assert pool["status"] == {}


def test_what_both_versions_have_is_kept() -> None:
    former = _former(consolidationPolicy="WhenEmpty", consolidateAfter="30s", budgets=[{"nodes": "5%"}])
    former["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    pool = current_form(former)
    assert pool["spec"]["disruption"] == {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "30s",
        "budgets": [{"nodes": "5%"}],
    }
    assert pool["status"]["conditions"] == [{"type": "Ready", "status": "False"}]
    assert current_form(node_pool()) == node_pool()


def test_a_node_claim_of_v1beta1_is_converted_too() -> None:
    claim = {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim", "spec": {"nodeClassRef": {"name": "it"}}}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "it"}
    assert current_form(claim)["spec"] == {"nodeClassRef": reference}


@pytest.mark.parametrize("kind", ["NodePool", "NodeClaim"])
@pytest.mark.parametrize("version", ["v1alpha5", "v2"])
def test_any_other_version_is_refused(kind, version) -> None:
    document = {"apiVersion": f"karpenter.sh/{version}", "kind": kind, "metadata": {"name": "x"}}
    with pytest.raises(FieldError, match=rf"objects\[0\]\.apiVersion: {kind} of karpenter.sh/{version} is not read"):
        read_objects([document])


@pytest.fixture
def ask(tmp_path):
    def plan(*objects, flags=(), status=0):
        cluster = write_objects(tmp_path / "c.yaml", *({"apiVersion": "v1", **item} for item in objects))
        catalogue = tmp_path / "types.json"
        catalogue.write_text(json.dumps(TYPES))
        result = run("plan", "-f", cluster, "--catalogue", catalogue, *flags, "-o", "json")
        assert result.exit_code == status, result.stderr
        return json.loads(result.stdout), result.stderr

    return plan


def test_plans_buy_from_a_pool_of_v1beta1(ask) -> None:
    answer, _ = ask(_former(), pod("web"))
    assert [node["cheapest_type"] for node in answer["new_nodes"]] == ["large"]


def test_a_pool_of_another_version_is_closed_and_named(ask) -> None:
    new = {**node_pool("new"), "apiVersion": "karpenter.sh/v1"}
    answer, warnings = ask({**_former(), "apiVersion": "karpenter.sh/v2"}, new, pod("web"))
    assert [node["pool"] for node in answer["new_nodes"]] == ["new"]
    text = "NodePool of karpenter.sh/v2 is not read, only of karpenter.sh/v1 and karpenter.sh/v1beta1"
    assert text in answer["skipped"]["old"]
    assert text in warnings


# ---------------------------------------------------------------- what is not counted


def _overlay(name="cheap", version="v1alpha1", **spec):
    rules = [requirement("node.kubernetes.io/instance-type", "In", "large")]
    return {
        "apiVersion": f"karpenter.sh/{version}",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": rules, **spec},
    }


_POOL = {**node_pool(), "apiVersion": "karpenter.sh/v1"}


def test_an_overlay_is_named_as_not_counted_while_its_gate_is_off(ask) -> None:
    answer, warnings = ask(_POOL, _overlay(price="0.001"), pod("web"))
    assert [node["cheapest_type"] for node in answer["new_nodes"]] == ["small"]
    (warning,) = answer["warnings"]
    assert warning == "NodeOverlay cheap is not counted, since the feature gate NodeOverlay is off"
    assert f"warning: {warning}" in warnings


def test_an_overlay_counts_with_its_gate(ask) -> None:
    answer, _ = ask(_POOL, _overlay(price="0.001"), pod("web"), flags=["--feature-gates", "NodeOverlay=true"])
    assert [(node["cheapest_type"], node["price"]) for node in answer["new_nodes"]] == [("large", 0.001)]
    assert "warnings" not in answer


@pytest.mark.parametrize(
    ("document", "effect"),
    [
        (
            {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "spare"}},
            "CapacityBuffer spare (autoscaling.x-k8s.io/v1beta1) is not counted: the headroom that it asks for",
        ),
        (
            {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"}},
            "Provisioner default (karpenter.sh/v1alpha5) is not counted: a NodePool of Karpenter before 0.32",
        ),
    ],
)
def test_other_objects_that_would_change_a_plan_are_named(ask, document, effect) -> None:
    answer, warnings = ask(_POOL, document, pod("web"))
    assert answer["warnings"] == [effect]
    assert effect in warnings


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"object": []}, "object: is not one of"),
        ({"settings": {"preferencePolicies": "Ignore"}}, "settings.preferencePolicies: is not one of"),
        ({"settings": {"featureGates": {"SpotToSpot": True}}}, "settings.featureGates.SpotToSpot: is not one of"),
        ({"settings": {"schedulerConfig": {"profiles": []}}}, "settings.schedulerConfig.profiles: is not one of"),
    ],
)
def test_a_recorded_question_with_an_unknown_field_is_refused(tmp_path, change, text) -> None:
    case = {"id": "a", "kind": "solve", "now": "2026-06-01T12:00:00Z", "instanceTypes": TYPES, "objects": [], **change}
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case))
    result = run("plan", "--cases", path)
    assert result.exit_code == 1
    assert f"{path}:1: {text}" in result.stderr
