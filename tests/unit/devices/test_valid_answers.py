"""Valid answers by row. That they are those that would be found anew is tested in `test_questions`."""

from random import Random

from podium.devices import AllocatedDevices, Allocator, Inventory
from podium.devices.questions import Questions
from podium.objects.core import Node
from tests.unit.devices.cluster import CLASSES, a_slice, answer_of, claim
from tests.unit.devices.test_questions import NODES, node_with


def test_an_answer_is_looked_up_until_devices_of_its_pools_or_the_labels_change() -> None:
    inventory = Inventory([a_slice(node, "g0", "g1", pool=node, nodeName=node) for node in NODES])
    devices_in_use, questions, claims = AllocatedDevices(), Questions(), [claim()]
    nodes: list[Node | None] = [node_with(name, {}) for name in NODES]
    allocator = Allocator(inventory, CLASSES.get, devices_in_use, Random(1), 0, questions)
    rows = range(len(NODES))
    assert allocator.cached_answers(claims, rows, nodes) == [None, None, None]
    answers = [answer_of(allocator, claims, node.name, node.metadata.labels) for node in nodes if node is not None]
    assert allocator.cached_answers(claims, rows, nodes) == answers
    # Labels are compared by identity here: equal ones are asked about with a search, which looks closer.
    assert allocator.cached_answers(claims, [0], [node_with("n1", {})]) == [None]
    assert isinstance(answers[0], tuple)
    devices_in_use.add(answers[0][0])
    assert allocator.cached_answers(claims, rows, nodes) == [None, *answers[1:]]
    without_questions = Allocator(inventory, CLASSES.get, devices_in_use, Random(1), 0)
    assert without_questions.cached_answers(claims, rows, nodes) == [None, None, None]
