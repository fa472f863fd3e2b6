from __future__ import annotations

import pytest

from podium.cluster import HostPort
from podium.cluster.host_ports import HostPortIndex

ANY, ONE, OTHER = "0.0.0.0", "10.0.0.1", "10.0.0.2"


def port(ip: str = ANY, protocol: str = "TCP", number: int = 80) -> HostPort:
    return HostPort(ip, protocol, number)


@pytest.mark.parametrize(
    ("used_port", "wanted_port", "conflicts"),
    [
        (port(), port(), True),
        (port(ONE), port(ONE), True),
        (port(ONE), port(OTHER), False),
        (port(ANY), port(ONE), True),
        (port(ONE), port(ANY), True),
        (port(), port(protocol="UDP"), False),
        (port(), port(number=81), False),
    ],
)
def test_ports_conflict_on_the_same_address_or_on_all(used_port, wanted_port, conflicts):
    index = HostPortIndex()
    index.add(3, [used_port])
    assert index.conflicting_rows(wanted_port) == ([3] if conflicts else [])


def test_port_taken_twice_is_free_after_it_was_given_back_twice():
    index = HostPortIndex()
    index.add(1, [port(), port(ONE)])
    index.add(1, [port()])
    index.remove(1, [port()])
    assert index.conflicting_rows(port(OTHER)) == [1]
    index.remove(1, [port()])
    assert index.conflicting_rows(port(OTHER)) == []
    assert index.conflicting_rows(port(ONE)) == [1]
    index.remove(1, [port(ONE)])
    assert index.conflicting_rows(port()) == []


def test_giving_back_what_was_not_taken_is_a_mistake():
    with pytest.raises(KeyError):
        HostPortIndex().remove(1, [port()])


def test_copy_and_original_go_their_own_ways():
    index = HostPortIndex()
    index.add(1, [port()])
    index.add(2, [port()])
    first, second = index.copy(), index.copy()
    first.add(3, [port(), port(number=81)])
    first.remove(1, [port()])
    index.remove(2, [port()])
    index.add(4, [port()])
    assert first.conflicting_rows(port()) == [2, 3]
    assert second.conflicting_rows(port()) == [1, 2]
    assert index.conflicting_rows(port()) == [1, 4]
    assert first.conflicting_rows(port(number=81)) == [3]
    assert index.conflicting_rows(port(number=81)) == []


def test_copy_of_a_copy_is_independent_too():
    index = HostPortIndex()
    index.add(1, [port()])
    twin = index.copy()
    grandchild = twin.copy()
    grandchild.remove(1, [port()])
    twin.add(1, [port(ONE)])
    twin.remove(1, [port()])
    assert grandchild.conflicting_rows(port()) == []
    assert twin.conflicting_rows(port(OTHER)) == []
    assert twin.conflicting_rows(port(ONE)) == [1]
    assert index.conflicting_rows(port(OTHER)) == [1]
