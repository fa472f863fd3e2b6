"""What DaemonSets take of nodes."""

from __future__ import annotations

from podium.provisioner.provisioning.daemons import uses_devices
from tests.unit.provisioner.clusters import (
    TYPES,
    as_pod,
    daemon_set,
    instance_type,
    node,
    node_affinity,
    node_pool,
    owned_by,
    plan,
    pod,
    requirement,
)

ARCH = "kubernetes.io/arch"


def test_daemons_take_their_share_of_a_new_node() -> None:
    (claim,) = plan(daemon_set(cpu="2", memory="2Gi"), pod("a", memory="1Gi"))["claims"]
    assert claim["types"] == ["default", "arm"]
    assert claim["requests"] == {"cpu": 3000, "memory": 3 * 2**30, "pods": 2}


def test_daemons_that_are_not_running_yet_keep_their_place_on_a_node() -> None:
    daemons = daemon_set(cpu="2")
    running = pod(
        "agent-1", cpu="2", node="node-1", metadata={"namespace": "kube-system", **owned_by("DaemonSet", "agent")}
    )
    assert plan(daemons, node(cpu="3"), pod("a", cpu="2"))["existing"] == {}
    assert plan(daemons, node(cpu="3"), running, pod("a", cpu="1"))["existing"] == {"node-1": ["default/a"]}


def test_a_running_pod_counts_more_than_its_template() -> None:
    running = pod(
        "agent-1", cpu="3", node="node-1", metadata={"namespace": "kube-system", **owned_by("DaemonSet", "agent")}
    )
    (claim,) = plan(daemon_set(cpu="1"), node(cpu="3"), running, pod("a", cpu="1", memory="1Gi"))["claims"]
    assert claim["requests"]["cpu"] == 4000


def test_limits_count_where_a_template_has_no_requests() -> None:
    daemons = daemon_set()
    daemons["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1500m"}}
    (claim,) = plan(daemons, pod("a"))["claims"]
    assert claim["requests"]["cpu"] == 2500


def test_a_daemon_that_does_not_tolerate_the_pool_does_not_run_there() -> None:
    pool = node_pool(taints=[{"key": "gpu", "effect": "NoSchedule"}])
    (claim,) = plan(daemon_set(), pod("a", tolerations=[{"operator": "Exists"}]), pool)["claims"]
    assert claim["requests"]["cpu"] == 1000


def test_the_refusal_names_only_daemons_that_all_groups_of_types_run() -> None:
    daemons = daemon_set(nodeSelector={ARCH: "amd64"})
    (claim,) = plan(daemons, pod("a", cpu="500m"), types=[TYPES[0]])["claims"]
    assert claim["requests"]["cpu"] == 1500
    resources = plan(daemons, pod("a", cpu="17"))["errors"]["default/a"].rpartition("resources=")[2]
    assert resources == '{"cpu":"18000m","memory":"209715200","pods":"2"}'


def test_an_alternative_that_did_not_fit_once_is_gone_for_good() -> None:
    alternatives = node_affinity(requirement(ARCH, "In", "arm64"), requirement(ARCH, "In", "amd64"))
    arm = instance_type("arm", 4, "4Gi", arch="arm64")
    amd = instance_type("amd", 4, "4Gi")
    wish = pod("a", nodeSelector={ARCH: "arm64"})
    (claim,) = plan(daemon_set(affinity=alternatives), wish, types=[arm, amd])["claims"]
    assert claim["requests"]["cpu"] == 2000
    (claim,) = plan(daemon_set(affinity=alternatives), wish, types=[amd, arm])["claims"]
    assert claim["requests"]["cpu"] == 1000


def test_resource_claims_mean_devices() -> None:
    assert not uses_devices(as_pod(pod("a")).spec)
    assert uses_devices(as_pod(pod("a", resourceClaims=[{"name": "gpu"}])).spec)
