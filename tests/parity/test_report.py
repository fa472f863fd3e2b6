from tests.parity.report import facts


def test_facts_of_an_answer_belong_to_the_plugins_that_said_them():
    answer = {
        "filter": {"n1": {"code": "Unschedulable", "plugin": "NodePorts", "reasons": ["taken"]}},
        "scores": {"n2": {"total": 7, "plugins": {"ImageLocality": 7}}},
        "postfilter": {"code": "Unschedulable", "plugin": "First", "reasons": ["no", "preemption: none"]},
    }
    assert facts(answer) == {
        "NodePorts": {("rejection", "n1", "Unschedulable", "taken")},
        "ImageLocality": {("score", "n2", 7)},
        "First": {("postfilter", "Unschedulable", "no")},
        "DefaultPreemption": {("postfilter", "Unschedulable", "preemption: none")},
    }
