from __future__ import annotations

from random import Random

import pytest

from podium.cluster import Cache, Snapshot
from podium.framework.cycle.nominated_pods import RowsOfNominations
from podium.objects.core import Pod
from podium.queues import Nominator
from tests import builders
from tests.builders import node, pod


class NominatorBench:
    def __init__(self, *pods: Pod) -> None:
        self.api = {pod.key: pod for pod in pods}
        self.nominator = Nominator(self.api.get)

    def on(self, node: str) -> list[str]:
        return [pod.metadata.name for pod in self.nominator.pods(node)]


def test_the_status_decides_without_an_override() -> None:
    web = pod("web", nominated="n1")
    bench = NominatorBench(web)
    bench.nominator.add(web)
    assert bench.on("n1") == ["web"]
    assert bench.nominator.node_of(web.uid) == "n1"


def test_nothing_is_nominated_by_an_empty_status() -> None:
    web = pod("web")
    bench = NominatorBench(web)
    bench.nominator.add(web)
    assert bench.nominator.node_of(web.uid) is None


def test_an_override_wins_over_the_status() -> None:
    web = pod("web", nominated="n1")
    bench = NominatorBench(web)
    bench.nominator.add(web, "n2")
    assert bench.on("n1") == []
    assert bench.on("n2") == ["web"]


def test_an_empty_override_takes_a_nomination_back_and_leaves_nothing_to_look_at() -> None:
    web, second_pod = pod("web", nominated="n1"), pod("other")
    bench = NominatorBench(web)
    bench.nominator.add(web)
    assert len(bench.nominator.ahead_of(second_pod)) == 1
    bench.nominator.add(web, "")
    assert bench.on("n1") == bench.on("") == []
    assert bench.nominator.node_of(web.uid) is None
    assert bench.nominator.node_names() == ()
    assert list(bench.nominator.ahead_of(second_pod)) == []


@pytest.mark.parametrize("current", [None, pod("web", node="n9")])
def test_a_pod_that_was_deleted_or_bound_is_not_nominated(current: Pod | None) -> None:
    web = pod("web", nominated="n1")
    bench = NominatorBench(*([current] if current else []))
    bench.nominator.add(web)
    assert bench.on("n1") == []


def test_a_new_nomination_replaces_the_old_even_if_it_comes_to_nothing() -> None:
    web = pod("web", nominated="n1")
    bench = NominatorBench(web)
    bench.nominator.add(web)
    bench.nominator.add(pod("web"))
    assert bench.on("n1") == []


def test_pods_stand_in_the_order_of_their_nominations() -> None:
    pods = [pod(name, nominated="n1") for name in ("c", "a", "b")]
    bench = NominatorBench(*pods)
    for item in pods:
        bench.nominator.add(item)
    bench.nominator.delete(pods[1])
    assert bench.on("n1") == ["c", "b"]
    bench.nominator.add(pods[1])
    assert bench.on("n1") == ["c", "b", "a"]


def test_deleting_what_was_never_nominated_is_harmless() -> None:
    NominatorBench().nominator.delete(pod())


def test_a_nomination_that_only_we_know_of_survives_an_update() -> None:
    web = pod("web")
    bench = NominatorBench(web)
    bench.nominator.add(web, "n1")
    bench.nominator.update(web, pod("web", labels={"a": "b"}))
    assert bench.on("n1") == ["web"]


def test_an_update_that_sets_or_clears_the_status_decides() -> None:
    web, nominated_pod = pod("web"), pod("web", nominated="n2")
    bench = NominatorBench(web)
    bench.nominator.add(web, "n1")
    bench.nominator.update(web, nominated_pod)
    assert (bench.on("n1"), bench.on("n2")) == ([], ["web"])
    bench.nominator.update(nominated_pod, web)
    assert bench.nominator.node_of(web.uid) is None


def test_only_nodes_with_nominations_are_named() -> None:
    a, b = pod("a", nominated="n1"), pod("b", nominated="n2")
    bench = NominatorBench(a, b)
    bench.nominator.add(a)
    bench.nominator.add(b)
    bench.nominator.delete(a)
    assert tuple(bench.nominator.node_names()) == ("n2",)


def test_ahead_of_a_pod_are_the_others_of_at_least_its_priority() -> None:
    low, equal, high, itself = (
        pod(name, nominated="n1", priority=p) for name, p in zip("abcd", (1, 5, 9, 5), strict=True)
    )
    bench = NominatorBench(low, equal, high, itself)
    for item in (low, equal, high, itself):
        bench.nominator.add(item)
    assert [(nomination.node_name, nomination.pod) for nomination in bench.nominator.ahead_of(itself)] == [
        ("n1", equal),
        ("n1", high),
    ]
    assert list(bench.nominator.ahead_on(itself, "n1")) == [equal, high]
    assert not bench.nominator.ahead_on(itself, "n2")


def test_a_nomination_says_what_the_pod_will_take_up() -> None:
    web, second_pod = builders.pod("web", nominated="n1", cpu="2", priority=3), pod("other")
    bench = NominatorBench(web, second_pod)
    bench.nominator.add(web)
    [nomination] = bench.nominator.ahead_of(second_pod)
    assert (nomination.priority, nomination.pod_usage.requests) == (3, {"cpu": 2000})
    bench.nominator.delete(web)
    assert not bench.nominator.ahead_of(second_pod)


def test_whoever_is_ahead_stays_right_as_nominations_of_several_priorities_come_and_go() -> None:
    draws = Random(7)
    pods = [pod(f"p{number}", priority=number % 3) for number in range(12)]
    bench = NominatorBench(*pods)
    nominated_pods: dict[str, Pod] = {}
    for _ in range(400):
        item = draws.choice(pods)
        nominated_pods.pop(item.uid, None)
        if draws.random() < 0.6:
            bench.nominator.add(item, f"n{draws.randrange(4)}")
            nominated_pods[item.uid] = item
        else:
            bench.nominator.delete(item)
        asking = draws.choice([*pods, pod("new", priority=draws.randrange(4))])
        assert [nomination.pod for nomination in bench.nominator.ahead_of(asking)] == [
            item for uid, item in nominated_pods.items() if item.priority >= asking.priority and uid != asking.uid
        ]


def sums_by_row(nominations: RowsOfNominations, snapshot: Snapshot) -> dict[int, list[int]]:
    rows, amounts = nominations.usage(snapshot)
    return dict(zip(rows.tolist(), amounts.T.tolist(), strict=True))


def test_nominated_pods_by_row_are_right_as_nominations_and_nodes_come_and_go() -> None:
    draws = Random(11)
    pods = [pod(f"p{number}", priority=number % 2, cpu=f"{number}m") for number in range(8)]
    nominator, cache = NominatorBench(*pods).nominator, Cache(lambda *_: None)
    node_names = [f"n{number}" for number in range(4)]
    former_rows: RowsOfNominations | None = None
    for _ in range(300):
        item, node_name = draws.choice(pods), draws.choice(node_names)
        draws.choice(
            (
                lambda item=item, node_name=node_name: nominator.add(item, node_name),
                lambda item=item: nominator.delete(item),
                lambda node_name=node_name: cache.put_node(node(node_name)),
                lambda node_name=node_name: cache.remove_node(node_name),
            )
        )()
        snapshot = draws.choice((cache.snapshot(), cache.snapshot().fork()))
        asking = draws.choice([*pods, pod("new", priority=draws.randrange(2))])
        rows_anew = RowsOfNominations.of(nominator.ahead_of(asking), snapshot)
        rows = nominator.ahead_by_row(asking, snapshot)
        assert rows.by_row == rows_anew.by_row
        assert sums_by_row(rows, snapshot) == sums_by_row(rows_anew, snapshot)
        assert rows.column(len(snapshot.nodes)).nonzero()[0].tolist() == sorted(rows.by_row)
        assert [*rows.rows_changed_since(rows)] == []
        former_rows = rows if former_rows is None else former_rows
        changed_rows = rows.rows_changed_since(former_rows)
        assert {
            row
            for row in rows.by_row.keys() | former_rows.by_row.keys()
            if rows.by_row.get(row) != former_rows.by_row.get(row)
        } <= {*changed_rows}
        former_rows = draws.choice((former_rows, rows))
