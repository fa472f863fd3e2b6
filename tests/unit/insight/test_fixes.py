"""Fixes are true and minimum: the edited pod is placed where they say, and no smaller set of edits does it."""

import pytest

from podium.engine.manifests import read_manifest
from podium.insight import Cluster
from podium.insight.edits import EditKind
from podium.insight.node_edits import label_changes
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.resource_types import NODES, PODS
from tests.manifests import HOSTNAME, ZONE, node, pod
from tests.unit.insight.edited import placed_on
from tests.workload_manifests import claim as volume_claim

SCHEDULER = "default-scheduler"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def web(name="web", cpu="1", **fields):
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


# ---------------------------------------------------------------- one kind after the other


def best(objects, incoming_pod, **options):
    """The kinds and the node of each fix, the best first."""
    answer = Cluster.load(objects).fixes(incoming_pod, **options)
    assert not answer.fits
    for fix in answer.fixes:
        assert placed_on(objects, incoming_pod, fix.edits) == fix.node
    return [([edit.kind for edit in fix.edits], fix.node) for fix in answer.fixes]


def taint(key, value="", effect="NoSchedule"):
    return {"key": key, "value": value, "effect": effect}


def near(app, key=HOSTNAME):
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def test_taint_is_tolerated_or_removed():
    assert best([node("n1", taints=[taint("team", "a")])], web()) == [
        ([EditKind.TOLERATE_TAINT], "n1"),
        ([EditKind.REMOVE_TAINT], "n1"),
    ]


def test_taints_of_one_key_are_tolerated_together_and_of_two_keys_apart():
    of_one_key = [node("n1", taints=[taint("a"), taint("a", effect="NoExecute")])]
    assert best(of_one_key, web())[0] == ([EditKind.TOLERATE_TAINT], "n1")
    of_two_keys = [node("n1", taints=[taint("a"), taint("b")])]
    assert best(of_two_keys, web())[0] == ([EditKind.TOLERATE_TAINT] * 2, "n1")


def test_cordoned_node_is_tolerated_or_uncordoned_with_its_taint():
    cordoned = node("n1", unschedulable=True, taints=[taint("node.kubernetes.io/unschedulable")])
    assert best([cordoned], web()) == [
        ([EditKind.TOLERATE_TAINT], "n1"),
        ([EditKind.UNCORDON], "n1"),
        ([EditKind.ADD_NODE], "n1-like-1"),
    ]


def test_request_is_lowered_to_what_the_emptiest_node_has_left():
    objects = [node("n1", "2"), node("n2", "3"), web("old", "500m", node="n2")]
    fix, *_ = Cluster.load(objects).fixes(web(cpu="4")).fixes
    (edit,) = fix.edits
    assert (edit.text, fix.node) == ("lower the request for cpu from 4 to 2500m", "n2")
    assert [dict(operation)["value"] for operation in edit.patch] == ["2500m"]


def test_full_cluster_needs_an_eviction_or_another_node():
    full = [node("n1", pods="1"), web("old", node="n1")]
    assert best(full, web()) == [([EditKind.EVICT], "n1"), ([EditKind.ADD_NODE], "n1-like-1")]


def test_pods_under_a_budget_or_of_a_daemon_set_are_not_evicted():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 0},
    }
    guarded = [node("n1", pods="1"), web("old", node="n1", labels={"app": "db"}), budget]
    assert best(guarded, web()) == [([EditKind.ADD_NODE], "n1-like-1")]
    daemon = web("old", node="n1")
    daemon["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}]
    assert best([node("n1", pods="1"), daemon], web()) == [([EditKind.ADD_NODE], "n1-like-1")]


def test_two_pods_are_evicted_where_one_is_not_enough():
    old = [web(f"old-{index}", "1", node="n1") for index in range(4)]
    pinned = web(cpu="2", nodeSelector={HOSTNAME: "n1"})
    kinds = best([node("n1", "4"), *old], pinned)
    assert kinds[0] == ([EditKind.LOWER_REQUEST], "n1")


def test_host_port_is_changed_or_freed():
    objects = [node("n1"), web("old", node="n1", host_port=8080)]
    fix, *other_fixes = Cluster.load(objects).fixes(web(host_port=8080)).fixes
    assert fix.edits[0].text == "change the host port 8080 of container main to 8081"
    assert [fix.edits[0].kind for fix in other_fixes] == [EditKind.EVICT, EditKind.ADD_NODE]


def test_selector_is_dropped_or_the_node_labelled():
    assert best([node("n1")], web(nodeSelector={"disk": "ssd"})) == [
        ([EditKind.DROP_NODE_SELECTOR], "n1"),
        ([EditKind.LABEL_NODE], "n1"),
    ]


def test_node_affinity_is_widened_before_it_is_dropped():
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    assert best([node("n1", labels={"disk": "hdd"})], web(affinity=affinity)) == [
        ([EditKind.WIDEN_NODE_AFFINITY], "n1"),
        ([EditKind.DROP_NODE_AFFINITY], "n1"),
        ([EditKind.LABEL_NODE], "n1"),
    ]


def test_skew_is_raised_as_little_as_possible():
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    old = [web(f"old-{index}", node="n1", labels={"app": "web"}) for index in range(3)]
    objects = [node("n1", labels={ZONE: "a"}), node("n2", "0", labels={ZONE: "b"}), *old]
    fix, *_ = Cluster.load(objects).fixes(web(labels={"app": "web"}, topologySpreadConstraints=[spread])).fixes
    assert (fix.edits[0].text, fix.node) == (f"raise maxSkew from 1 to 4 over {ZONE}", "n1")


def test_anti_affinity_is_dropped_or_its_pods_are_evicted():
    apart = {"podAntiAffinity": {REQUIRED: [near("db")]}}
    objects = [node("n1"), web("old", node="n1", labels={"app": "db"})]
    assert best(objects, web(affinity=apart)) == [
        ([EditKind.DROP_POD_ANTI_AFFINITY], "n1"),
        ([EditKind.EVICT], "n1"),
        ([EditKind.ADD_NODE], "n1-like-1"),
    ]


def test_pods_that_keep_others_away_are_evicted():
    apart = {"podAntiAffinity": {REQUIRED: [near("web", ZONE)]}}
    objects = [node("n1", labels={ZONE: "a"}), web("old", node="n1", affinity=apart)]
    assert best(objects, web(labels={"app": "web"})) == [([EditKind.EVICT], "n1")]


def test_a_new_node_may_need_an_eviction_in_its_zone():
    apart = {"podAntiAffinity": {REQUIRED: [near("web", ZONE)]}}
    pinned = [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}]}]
    objects = [
        node("n1", "1", labels={ZONE: "a"}),
        web("full", node="n1"),
        node("n2", labels={ZONE: "a"}),
        web("old", node="n2", affinity=apart),
    ]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned}}}
    incoming = web(labels={"app": "web"}, affinity=affinity)
    assert ([EditKind.EVICT, EditKind.ADD_NODE], "n1-like-1") in [
        (sorted(kinds, key=list(EditKind).index), name) for kinds, name in best(objects, incoming)
    ]


def test_affinity_to_pods_that_are_not_there_is_dropped():
    beside = {"podAffinity": {REQUIRED: [near("db")]}}
    assert best([node("n1")], web(affinity=beside)) == [([EditKind.DROP_POD_AFFINITY], "n1")]


@pytest.mark.parametrize(
    ("demands", "labels", "labels_after"),
    [
        ([("zone", "NotIn", ["a"]), ("zone", "In", ["a", "b"])], {"zone": "c"}, {"zone": "b"}),
        ([("zone", "In", ["a", "b"]), ("zone", "In", ["b", "c"])], {}, {"zone": "b"}),
        ([("zone", "Exists", []), ("zone", "NotIn", ["true"])], {}, {"zone": "true-1"}),
        ([("cores", "Gt", ["4"]), ("cores", "NotIn", ["5", "6"])], {"cores": "2"}, {"cores": "7"}),
        ([("cores", "Gt", ["4"]), ("cores", "Lt", ["6"])], {"cores": "9"}, {"cores": "5"}),
        ([("cores", "Lt", ["6"]), ("cores", "Gt", ["4"])], {}, {"cores": "5"}),
        ([("zone", "In", ["a"]), ("zone", "NotIn", ["a"])], {}, None),
        ([("zone", "Exists", []), ("zone", "DoesNotExist", [])], {}, None),
    ],
)
def test_node_gets_the_label_that_meets_all_demands(demands, labels, labels_after):
    expressions = [{"key": key, "operator": operator, "values": values} for key, operator, values in demands]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}
    for subject in (web(affinity=affinity), web(affinity=affinity, nodeSelector={"disk": "ssd"})):
        answer = label_changes(
            read_manifest(subject, PODS), read_manifest(node("n1", labels=labels | {"disk": "ssd"}), NODES)
        )
        assert answer == labels_after


def test_volumes_and_the_pod_agree_on_a_label():
    """The first value that the volume allows is not one of the pod's."""
    rack = {"key": "rack", "operator": "In"}
    affinity = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [rack | {"values": ["r2", "r3"]}]}]}}
    }
    demand = NodeSelectorRequirement(key="rack", operator="In", values=("r1", "r2"))
    volume = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(demand,)),))
    assert label_changes(read_manifest(web(affinity=affinity), PODS), read_manifest(node("n1"), NODES), [volume]) == {
        "rack": "r2"
    }


def test_node_is_labelled_as_the_volume_demands():
    terms = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "c", "uid": "c"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Bound"},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "c",
            "namespace": "default",
            "uid": "c",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    incoming = web(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}])
    assert best([node("n1"), volume, claim], incoming) == [([EditKind.LABEL_NODE], "n1")]


def waiting_claim(**storage_class):
    """A claim whose volume is chosen or provisioned when its pod is scheduled, and its class."""
    return (
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "volumeBindingMode": "WaitForFirstConsumer",
            **storage_class,
        },
        volume_claim("c", "2Gi", "local", metadata={"uid": "c"}, status={"phase": "Pending"}),
    )


def free_volume(name, size, rack):
    terms = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Available"},
    }


WITH_CLAIM = web(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}])


def test_node_is_labelled_as_a_free_volume_that_is_large_enough_demands():
    volumes = free_volume("small", "1Gi", "r1"), free_volume("large", "5Gi", "r2")
    objects = [node("n1"), *volumes, *waiting_claim(provisioner="kubernetes.io/no-provisioner")]
    (fix,) = Cluster.load(objects).fixes(WITH_CLAIM).fixes
    assert [edit.text for edit in fix.edits] == ["label n1 with rack=r2"]


def test_node_is_labelled_as_the_topologies_of_a_provisioner_demand():
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    objects = [node("n1"), *waiting_claim(provisioner="csi.example.com", allowedTopologies=topologies)]
    (fix,) = Cluster.load(objects).fixes(WITH_CLAIM).fixes
    assert [edit.text for edit in fix.edits] == ["label n1 with zone=a"]


def test_pod_that_fits_needs_no_edit():
    answer = Cluster.load([node("n1")]).fixes(web())
    assert (answer.fits, answer.fixes, answer.text) == (True, (), "default/web fits as it is")


def test_no_fix_is_found_if_three_edits_are_not_enough():
    tainted = node("n1", taints=[taint(key) for key in "abcd"])
    answer = Cluster.load([tainted]).fixes(web())
    assert (answer.fits, answer.fixes) == (False, ())
    assert answer.text == "No set of up to 3 edits lets default/web fit"


def test_asking_changes_nothing():
    cluster = Cluster.load([node("n1", "1"), web("old", "1", node="n1")])
    assert cluster.fixes(web()).fixes == cluster.fixes(web()).fixes
    assert [pod.key for pod in cluster.pods] == ["default/old"]
    assert [node.name for node in cluster.nodes] == ["n1"]


def test_request_is_lowered_to_what_an_eviction_leaves():
    objects = [node("n1", "1", pods="1"), web("old", "2", node="n1")]
    kinds = [EditKind.LOWER_REQUEST, EditKind.EVICT]
    answer = Cluster.load(objects).fixes(web(cpu="4")).fixes
    (fix,) = [candidate for candidate in answer if [edit.kind for edit in candidate.edits] == kinds]
    assert fix.edits[0].text == "lower the request for cpu from 4 to 1"
    assert placed_on(objects, web(cpu="4"), fix.edits) == "n1"


def test_a_new_node_may_do_where_one_is_excluded_by_its_name():
    pinned = [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned}}}
    assert ([EditKind.ADD_NODE], "n1-like-1") in best([node("n1")], web(affinity=affinity))
