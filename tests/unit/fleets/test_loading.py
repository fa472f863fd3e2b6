from tests.manifests import node, pod
from tests.unit.fleets.fleets import ask, fleet_of
from tests.workload_manifests import workload


def _namespace(uid):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}}


def test_a_member_that_cannot_be_loaded_does_not_spoil_the_others():
    answer = ask({"empty": [], "well": [node("n1")]}, workload("Job"))
    assert answer.best == "well"
    assert answer.without["empty"].startswith("no nodes")


def test_a_broken_object_is_named_with_its_member():
    odd = pod("odd", node="n1", priority="high")
    fleet = fleet_of({"m": [node("n1"), node("n2"), odd]})
    assert fleet.read_errors
    assert all(error.startswith("m: ") for error in fleet.read_errors)
    assert ask(fleet, workload("Job"))


def test_the_same_cluster_twice_counts_once():
    answer = ask(
        {
            "east": [node("n1"), _namespace("u1")],
            "again": [node("n1"), _namespace("u1")],
            "west": [node("n1"), _namespace("u2")],
        },
        workload("Job"),
    )
    assert [cluster.cluster for cluster in answer.fits] == ["east", "west"]
    assert answer.without == {"again": "it is the same cluster as east"}


def test_clusters_whose_identity_is_not_known_are_different_ones():
    assert len(ask({"a": [node("n1")], "b": [node("n1")]}, workload("Job")).fits) == 2


def test_five_thousand_members_are_asked():
    objects = [node("n1")]
    fleet = fleet_of({f"m{number}": objects for number in range(20)})
    fleet.members = [
        type(member)(f"{member.name}-{copy}", member.cluster, member.waiting, member.admission)
        for member in fleet.members
        for copy in range(250)
    ]
    answer = ask(fleet, workload("Job"), clusters_max=3)
    assert (len(answer.fits), len(answer.untried)) == (3, 4_997)
