"""Valid answers by row. That they are those that would be found anew is tested in `test_questions`."""

from random import Random

import numpy as np

from podium.devices import AllocatedDevices, Allocator, Inventory
from podium.devices.questions import Questions
from podium.lib.change_log import ChangeLog
from podium.objects.core import Node
from tests.unit.devices.cluster import CLASSES, a_slice, answer_of, claim
from tests.unit.devices.test_questions import NODES, NodesByRow, cached_answers, node_with


def test_an_answer_is_looked_up_until_devices_of_its_pools_or_the_labels_change() -> None:
    inventory = Inventory([a_slice(node, "g0", "g1", pool=node, nodeName=node) for node in NODES])
    devices_in_use, questions, claims = AllocatedDevices(), Questions(), [claim()]
    nodes: list[Node | None] = [node_with(name, {}) for name in NODES]
    cluster = NodesByRow(nodes, ChangeLog())
    allocator = Allocator(inventory, CLASSES.get, devices_in_use, Random(1), 0, questions)
    assert cached_answers(allocator, claims, cluster) == [None, None, None]
    answers = [answer_of(allocator, claims, node.name, node.metadata.labels) for node in nodes if node is not None]
    assert cached_answers(allocator, claims, cluster) == answers
    # Labels are compared by identity here: equal ones are asked about with a search, which looks closer.
    other_cluster = NodesByRow([node_with("n1", {}), *nodes[1:]], ChangeLog())
    assert cached_answers(allocator, claims, other_cluster) == [None, *answers[1:]]
    assert cached_answers(allocator, claims, cluster) == answers
    cluster.replace(2, node_with("n3", {}))
    assert cached_answers(allocator, claims, cluster) == [*answers[:2], None]
    cluster.replace(2, None)
    assert cached_answers(allocator, claims, cluster) == [*answers[:2], None]
    assert isinstance(answers[0], tuple)
    devices_in_use.add(answers[0][0])
    assert cached_answers(allocator, claims, cluster) == [None, answers[1], None]
    without_questions = Allocator(inventory, CLASSES.get, devices_in_use, Random(1), 0)
    assert without_questions.cached_answers(claims, np.arange(3), cluster) is None
