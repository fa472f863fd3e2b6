from pathlib import Path

import pytest

from podium.cli.shadow_table import print_report
from podium.recording.shadow.report import Report
from tests.manifests import node
from tests.unit.recording.shadow.following import Following, web

PAGE = (Path(__file__).parents[3] / "docs" / "shadow.md").read_text()
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


@pytest.fixture
def report() -> Report:
    """Of a day on which a binding was overtaken, a node was tainted, and one pod went to the worse node."""
    following = Following(node("big", "16"), node("small", "4", memory="16Gi"))
    first, second, third, fourth = (web(name, cpu) for name, cpu in (("a", "14"), ("b", "2"), ("c", "1"), ("d", "1")))
    following.tell(first, second, third)
    following.bind(second, "small")
    following.bind(first, "big")
    following.gone(first)
    following.tell(node("big", "16", taints=[TAINT]))
    following.bind(third, "big")
    following.tell(node("big", "16"), fourth)
    following.bind(fourth, "small")
    following.settle()
    return following.shadow.report


def test_the_report_is_as_the_page_shows_it(report, capsys):
    print_report(report)
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert printed in PAGE


def test_a_report_without_pods_is_short(capsys):
    print_report(Report())
    assert capsys.readouterr().out == "0 pod(s) compared, podium agrees on 0\n"
