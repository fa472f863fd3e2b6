import pytest

from podium.cli.shadow_table import print_report
from podium.recording.shadow.report import Report
from tests.manifests import node
from tests.unit.recording.shadow.following import Following, web

TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


@pytest.fixture
def report() -> Report:
    """Of a day on which a binding was overtaken, a node was tainted, and one pod went to the worse node."""
    following = Following(node("big", "16"), node("small", "4", memory="16Gi"))
    first, second, third, fourth = (web(name, cpu) for name, cpu in (("a", "14"), ("b", "2"), ("c", "1"), ("d", "1")))
    following.tell(first, second, third)
    following.bind(second, "small")
    following.bind(first, "big")
    following.delete(first)
    following.tell(node("big", "16", taints=[TAINT]))
    following.bind(third, "big")
    following.tell(node("big", "16"), fourth)
    following.bind(fourth, "small")
    following.settle()
    return following.shadow.report


def test_the_report_has_totals_and_then_the_disagreements(report, capsys):
    print_report(report)
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert printed[0] == "4 pods compared, podium agrees on 1 (25.00 %)"
    assert {"same node        1", "lower score      2", "refused          1"} <= set(printed)
    unexplained, overtaken, refusal_line = printed[-3:]
    assert unexplained.startswith("default/d on small: scored ")
    assert unexplained.endswith("Unexplained.")
    assert overtaken.endswith("Stale view (Pod default/a bound to big, seen later).")
    assert refusal_line.startswith("default/c on big: refused by TaintToleration: ")


def test_a_report_without_pods_is_short(capsys):
    print_report(Report())
    assert capsys.readouterr().out == "0 pods compared, podium agrees on 0\n"
