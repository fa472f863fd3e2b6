"""A requirement on a label that no instance type has is refused by name, or left out with a warning, never met."""

import json

import pytest

from tests.unit.cli.commands import run, write_objects
from tests.unit.provisioner.clusters import ZONE, daemon_set, instance_type, node_affinity, node_pool, pod, requirement

FAMILY = "karpenter.k8s.aws/instance-family"
MACHINE = "cloud.google.com/machine-family"
REGION = "topology.kubernetes.io/region"
_VERSIONS = {"DaemonSet": "apps/v1", "NodePool": "karpenter.sh/v1"}
# Their names follow no provider's scheme, so that nothing about them follows from the names.
GENERIC = [instance_type("small", 2, "2Gi"), instance_type("large", 8, "16Gi")]


@pytest.fixture
def ask(tmp_path):
    def plan(*objects, flags=(), types=GENERIC, command="plan"):
        cluster = write_objects(
            tmp_path / "cluster.yaml",
            *({"apiVersion": _VERSIONS.get(item["kind"], "v1"), **item} for item in objects),
        )
        catalogue = tmp_path / "types.json"
        catalogue.write_text(json.dumps(types))
        arguments = (command, "-f", cluster, "--catalogue", catalogue, *flags)
        text, answer = run(*arguments), run(*arguments, "-o", "json")
        assert (text.exit_code, answer.exit_code) == (0, 0), text.output
        return json.loads(answer.stdout), " ".join(text.output.split())

    return plan


@pytest.mark.parametrize(
    "rule",
    [
        requirement(FAMILY, "In", "m6i", "r6i"),
        requirement(FAMILY, "Exists", minValues=2),
        requirement("eks.amazonaws.com/instance-generation", "Gt", "4"),
        requirement("karpenter.azure.com/sku-family", "In", "D"),
        requirement(MACHINE, "In", "n2"),
        requirement("instance-family", "In", "m6i"),
        requirement("karpenter.k8s.oracle/instance-shape", "In", "VM.Standard.E4"),
        requirement(REGION, "In", "us-east-1"),
    ],
)
def test_a_pool_that_requires_a_label_which_no_instance_type_has_is_skipped_by_the_labels_name(ask, rule):
    answer, text = ask(node_pool("picky", requirements=[rule]), node_pool("open"), pod("web"))
    reason = f"no instance type of the catalogue has the label {rule['key']}, which the NodePool requires"
    assert answer["skipped"] == {"picky": reason}
    assert reason in text
    assert [node["pool"] for node in answer["new_nodes"]] == ["open"]


@pytest.mark.parametrize(
    "rule",
    [
        requirement(FAMILY, "NotIn", "m6i"),
        requirement("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist"),
        requirement("team", "In", "a", "b"),
        requirement("beta.kubernetes.io/os", "In", "linux"),
        requirement("example.com/spread", "Exists"),
    ],
)
def test_a_pool_may_exclude_what_no_instance_type_has_and_define_labels_of_its_own(ask, rule):
    answer, _ = ask(node_pool(requirements=[rule]), pod("web"))
    assert (answer["skipped"], len(answer["new_nodes"])) == ({}, 1)
    assert "warnings" not in answer


def test_a_pool_that_gives_its_nodes_a_label_may_require_it_and_pods_may(ask):
    pool = node_pool(labels={FAMILY: "ours"}, requirements=[requirement(FAMILY, "In", "ours")])
    answer, _ = ask(pool, pod("web", nodeSelector={FAMILY: "ours"}), pod("other", nodeSelector={FAMILY: "m6i"}))
    assert [node["pods"] for node in answer["new_nodes"]] == [["default/web"]]
    assert [stay["pod"] for stay in answer["unschedulable"]] == ["default/other"]


@pytest.mark.parametrize("key", [REGION, "node.kubernetes.io/windows-build", FAMILY, "example.com/rack"])
def test_a_pod_that_requires_a_label_which_nothing_defines_stays_and_the_label_is_named(ask, key):
    answer, text = ask(node_pool(), pod("web", nodeSelector={key: "x"}))
    assert answer["new_nodes"] == []
    assert f'label "{key}" does not have known values' in answer["unschedulable"][0]["reason"]
    assert f'label "{key}"' in text


def test_a_preference_for_such_a_label_is_dropped_as_any_that_cannot_be_met(ask):
    wish = node_affinity(preferences=[(1, requirement(FAMILY, "In", "m6i"))])
    answer, _ = ask(node_pool(), pod("web", affinity=wish))
    assert [node["cheapest_type"] for node in answer["new_nodes"]] == ["small"]


def test_a_daemon_set_for_nodes_with_such_a_label_takes_no_room_on_others(ask):
    agent = daemon_set(cpu="1500m", nodeSelector={REGION: "us-east-1"})
    answer, _ = ask(node_pool(), pod("web"), agent)
    assert [node["cheapest_type"] for node in answer["new_nodes"]] == ["small"]


@pytest.mark.parametrize(
    ("objects", "demander"),
    [
        ((node_pool(requirements=[requirement(FAMILY, "In", "m6i", minValues=1)]), pod("web")), "NodePool pool"),
        ((node_pool(), pod("web", nodeSelector={FAMILY: "m6i"})), "default/web"),
        ((node_pool(), pod("web", nodeSelector={"example.com/rack": "r1"})), "default/web"),
    ],
)
def test_such_labels_are_left_out_with_a_warning_if_that_is_asked_for(ask, objects, demander):
    answer, text = ask(*objects, flags=["--ignore-unknown-labels"])
    assert (answer["skipped"], answer["unschedulable"]) == ({}, [])
    assert [node["pods"] for node in answer["new_nodes"]] == [["default/web"]]
    (warning,) = answer["warnings"]
    assert warning.endswith(f"is left out of account, since no instance type has it; required by {demander}")
    assert f"warning: {warning}" in text


def test_podiums_own_rules_refuse_and_ignore_them_too(ask):
    objects = (node_pool("picky", requirements=[requirement(FAMILY, "In", "m6i")]), pod("web"))
    answer, text = ask(*objects, flags=["--rules", "podium"])
    assert (answer["new_nodes"], list(answer["skipped"])) == ([], ["picky"])
    assert FAMILY in text
    answer, _ = ask(*objects, flags=["--rules", "podium", "--ignore-unknown-labels"])
    assert len(answer["new_nodes"]) == 1
    assert len(answer["warnings"]) == 1


def test_a_consolidation_warns_of_them_too(ask):
    pool = node_pool(requirements=[requirement(FAMILY, "In", "m6i")])
    answer, text = ask(pool, command="consolidate", flags=["--ignore-unknown-labels"])
    assert FAMILY in answer["warnings"][0]
    assert FAMILY in text


def test_zones_and_capacity_types_of_offerings_are_known_labels(ask):
    rules = [requirement(ZONE, "In", "zone-2"), requirement("karpenter.sh/capacity-type", "In", "spot")]
    answer, _ = ask(node_pool(requirements=rules), pod("web", nodeSelector={ZONE: "zone-2"}))
    assert (answer["skipped"], len(answer["new_nodes"])) == ({}, 1)


# ---------------------------------------------------------------- labels that follow from names

AWS = [instance_type(name, cpu, "16Gi", pods=50) for name, cpu in (("m5.large", 2), ("m5.xlarge", 4), ("c5.xlarge", 4))]


@pytest.mark.parametrize("domain", ["karpenter.k8s.aws", "eks.amazonaws.com"])
def test_min_values_of_a_family_hold_if_there_are_as_many(ask, domain):
    def pool(count):
        return node_pool(requirements=[requirement(f"{domain}/instance-family", "Exists", minValues=count)])

    answer, _ = ask(pool(2), pod("web", cpu="100m"), types=AWS)
    assert len(answer["new_nodes"]) == 1
    answer, _ = ask(pool(3), pod("web", cpu="100m"), types=AWS)
    assert "minValues" in answer["skipped"]["pool"]


def test_a_daemon_set_for_one_size_takes_room_on_nodes_of_that_size_only(ask):
    agent = daemon_set(cpu="1500m", nodeSelector={"karpenter.k8s.aws/instance-size": "xlarge"})
    answer, _ = ask(node_pool(), pod("web", cpu="1500m"), agent, types=AWS)
    # With the agent's pod there would be no room for the other.
    assert [node["cheapest_type"] for node in answer["new_nodes"]] == ["m5.large"]


def test_pods_for_auto_mode_fit_nodes_of_its_node_class(ask):
    pools = [node_pool("auto"), node_pool("kwok", weight=9)]
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    pools[0]["spec"]["template"]["spec"]["nodeClassRef"] = reference
    answer, _ = ask(*pools, pod("web", nodeSelector={"eks.amazonaws.com/compute-type": "auto"}))
    assert [node["pool"] for node in answer["new_nodes"]] == ["auto"]
