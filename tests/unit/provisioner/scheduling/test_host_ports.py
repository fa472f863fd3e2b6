"""Ports of the node that pods ask for."""

from podium.provisioner.scheduling.host_ports import HostPort, any_conflict, host_ports
from tests.unit.provisioner.clusters import as_pod, daemon_set, instance_type, node, plan, pod

TYPES = [instance_type("default", 4, "4Gi")]


def port(number: int = 80, address: str = "0.0.0.0", protocol: str = "TCP") -> HostPort:
    return HostPort(address, number, protocol)


def test_only_ports_of_the_node_count() -> None:
    assert host_ports(as_pod(pod("a", ports=[80, 81])).spec) == (port(80), port(81))
    assert host_ports(as_pod(pod("a")).spec) == ()


def test_ports_conflict_on_one_address_or_on_all() -> None:
    assert any_conflict([port()], [port(address="10.0.0.1")])
    assert any_conflict([port(address="10.0.0.1")], [port(address="::")])
    assert not any_conflict([port(address="10.0.0.1")], [port(address="10.0.0.2")])
    assert not any_conflict([port()], [port(81)])
    assert not any_conflict([port()], [port(protocol="UDP")])
    assert not any_conflict([], [port()])


def test_pods_with_one_port_go_to_different_nodes() -> None:
    cluster = [node("n1"), pod("old", node="n1", ports=[80])]
    answer = plan(*cluster, pod("a", ports=[80]), pod("b", ports=[80]), pod("c", ports=[81]), types=TYPES)
    assert answer["existing"] == {"n1": ["default/c"]}
    assert [len(claim["pods"]) for claim in answer["claims"]] == [1, 1]


def test_a_port_that_a_daemon_set_takes_is_free_on_no_new_node() -> None:
    daemons = daemon_set(ports=[80])
    answer = plan(daemons, pod("a", ports=[80]), types=TYPES)
    assert answer["errors"]["default/a"].startswith(
        "no instance type met the scheduling requirements or had enough resources or had a required offering, "
    )
