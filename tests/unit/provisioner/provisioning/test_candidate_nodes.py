from podium.engine.cluster import Cluster
from podium.provisioner.provisioning.candidate_nodes import (
    CandidateNode,
    candidate_nodes,
    candidate_of,
    has_room,
    node_under_way,
)
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    TYPES,
    ZONE,
    catalogue,
    daemon_set,
    instance_type,
    node_claim,
    node_pool,
    requirement,
)

_TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}


def _basis(*objects, types=TYPES):
    return PlanBasis(read_objects(objects), catalogue(*types), Settings())


def _options(basis: PlanBasis, **labels: str) -> list[CandidateNode]:
    ((template, groups),) = basis.templates
    requirements = template.requirements.union(Requirements.of_labels(labels))
    return candidate_nodes(template, groups, requirements, basis.well_known)


def test_offerings_come_by_price_then_by_names_and_reserved_ones_not_at_all():
    reserved = instance_type("small", 2, "2Gi", reserved={"res-1": 3})
    offerings = [
        (option.instance_type.name, option.offering.capacity_type, option.offering.zone)
        for option in _options(_basis(node_pool(), types=(reserved, TYPES[1])), **{ZONE: "zone-1"})
    ]
    assert offerings == [
        ("small", "spot", "zone-1"),
        ("small", "on-demand", "zone-1"),
        ("default", "spot", "zone-1"),
        ("default", "on-demand", "zone-1"),
    ]


def test_a_node_has_the_labels_taints_and_amounts_that_it_would_have():
    pool = node_pool(labels={"team": "a"}, requirements=[requirement("tier", "In", "gold", "silver")], taints=[_TAINT])
    launch = _options(_basis(pool), **{CAPACITY_TYPE: "on-demand", ZONE: "zone-3"})[0]
    (manifest,) = launch.manifests("pool-new-1")
    labels = manifest["metadata"]["labels"]
    assert (
        labels.items()
        >= {
            HOSTNAME: "pool-new-1",
            ZONE: "zone-3",
            CAPACITY_TYPE: "on-demand",
            "team": "a",
            "tier": "gold",
            "karpenter.sh/nodepool": "pool",
            "karpenter.sh/initialized": "true",
            "node.kubernetes.io/instance-type": "small",
            "kubernetes.io/arch": "amd64",
        }.items()
    )
    assert manifest["spec"]["taints"] == [_TAINT]
    # What the system keeps for itself is not for pods.
    assert manifest["status"]["capacity"]["cpu"] == "2000m"
    assert manifest["status"]["allocatable"]["cpu"] == "1900m"


def test_the_pods_of_daemon_sets_come_with_the_node():
    basis = _basis(node_pool(), daemon_set("agent", cpu="300m", ports=[9100]), daemon_set("logs", cpu="200m"))
    launch = _options(basis)[0]
    assert has_room(launch, {"cpu": 1400, "pods": 1})
    assert not has_room(launch, {"cpu": 1401, "pods": 1})
    cluster = Cluster.load([*launch.manifests("new")])
    assert [pod.node_name for pod in cluster.pods] == ["new", "new"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    port = {"hostPort": 9100, "containerPort": 1}
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1400m"}}}
    assert cluster.fork().place({**pod, "spec": {"containers": [container]}}).node == "new"
    assert cluster.fork().place({**pod, "spec": {"containers": [{**container, "ports": [port]}]}}).node is None


def test_a_reservation_that_this_plan_has_filled_is_not_taken_again():
    basis = _basis(node_pool(), types=(instance_type("small", 2, "2Gi", reserved={"res-1": 1}),))
    ((template, groups),) = basis.templates
    reservations: dict = {}
    kinds = []
    for _ in range(2):
        launch = candidate_of(
            template, groups, template.requirements, template.instance_types, basis.well_known, reservations
        )
        assert launch is not None
        reservations[launch.offering] = reservations.get(launch.offering, 0) + 1
        kinds.append(launch.offering.capacity_type)
    assert kinds == ["reserved", "spot"]


def test_a_node_under_way_counts_as_it_will_be():
    (state,) = _basis(node_pool(), node_claim("claim-7")).nodes
    manifest = node_under_way(state)
    assert manifest["metadata"]["name"] == "claim-7"
    assert manifest["status"]["allocatable"]["cpu"] == "4000m"
    assert manifest["metadata"]["labels"][ZONE] == "zone-1"
