from __future__ import annotations

from random import Random

from podium.cluster import Cache
from podium.cluster.changed_rows import ReplacedRows
from tests.builders import node, pod


def test_rows_are_replaced_exactly_where_the_node_or_a_pod_is_another_object_than_before() -> None:
    draws = Random(5)
    cache, reader = Cache(lambda *_: None), ReplacedRows()
    former_nodes: list[object] = []
    former_pods: list[object] = []
    running = [pod(f"p{number}", node=f"n{number % 4}") for number in range(8)]

    def change() -> None:
        item, name = draws.choice(running), f"n{draws.randrange(4)}"
        newer = pod(item.metadata.name, node=item.node_name, labels={"turn": str(draws.random())})
        is_there = cache.pod(item.uid) is not None
        draws.choice(
            (
                lambda: cache.put_node(node(name, labels={"turn": str(draws.random())})),
                lambda: cache.remove_node(name),
                lambda: cache.update_pod(newer) if is_there else cache.add_pod(item),
                lambda: cache.remove_pod(item) if is_there else cache.add_pod(item),
            )
        )()

    for _ in range(300):
        for _ in range(draws.randrange(3)):
            change()
        snapshot = draws.choice((cache.snapshot(), cache.snapshot(), cache.snapshot().fork()))
        former_nodes += [None] * (len(snapshot.nodes) - len(former_nodes))
        former_pods += [None] * (len(snapshot.pods) - len(former_pods))
        differing = {
            row
            for row in range(len(snapshot.nodes))
            if snapshot.nodes[row] is not former_nodes[row] or snapshot.pods[row] is not former_pods[row]
        }
        rows = {*reader.take(snapshot)}
        assert differing <= rows
        assert not reader.take(snapshot)
        former_nodes, former_pods = list(snapshot.nodes), list(snapshot.pods)
