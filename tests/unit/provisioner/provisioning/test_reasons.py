"""Reasons in Karpenter's words and in podium's."""

from __future__ import annotations

import ast
from pathlib import Path

import orjson
import pytest

import podium
from podium.provisioner.provisioning.reasons import Reason, in_own_words, unmet_demands
from podium.provisioner.scheduling.requirements import Requirement, Requirements

PROVISIONER = Path(podium.__file__).parent / "provisioner"


def test_a_reason_is_karpenters_text_and_has_podiums() -> None:
    reason = Reason("Node is rebooting", "It reboots")
    assert reason == "Node is rebooting"
    assert orjson.loads(orjson.dumps({"why": reason})) == {"why": "Node is rebooting"}
    assert in_own_words(reason) == "It reboots"
    assert in_own_words("any other") == "any other"


ZONES = Requirement.of("zone", "In", ["a", "b"])


@pytest.mark.parametrize(
    ("demand", "text"),
    [
        (Requirement.of("zone", "In", ["c"]), "the pod demands zone in (c), and its nodes have zone in (a, b)"),
        (Requirement.of("zone", "NotIn", ["b", "a"]), "the pod demands zone notin (a, b), and its nodes have zone in"),
        (Requirement.of("zone", "DoesNotExist"), "the pod demands !zone, and its nodes have zone in (a, b)"),
        (Requirement.of("cores", "Gte", ["9"]), "the pod demands cores >= 9, and its nodes have cores <= 8"),
        (Requirement.of("disk", "Exists"), "the pod demands disk, and its nodes do not have that label"),
        (Requirement.of("known", "In", ["x"]), ""),
        (Requirement.of("zone", "In", ["b", "c"]), ""),
        (Requirement.of("disk", "NotIn", ["x"]), ""),
        (Requirement.of("cores", "Gte", ["8"]), ""),
    ],
    ids=str,
)
def test_what_a_pod_demands_in_vain_is_written_as_label_selectors_are(demand: Requirement, text: str) -> None:
    node_requirements, pod_requirements = (
        Requirements([ZONES, Requirement.of("cores", "Lte", ["8"])]),
        Requirements([demand]),
    )
    texts = list(unmet_demands(node_requirements, pod_requirements, {"known"}))
    assert [reason[: len(text)] for reason in texts] == ([text] if text else [])
    assert (not texts) == node_requirements.is_compatible(pod_requirements, {"known"})


@pytest.mark.long
def test_no_reason_has_the_same_words_twice() -> None:
    """Whoever adds a sentence of Karpenter's has to say it in podium's words, too."""
    for path in PROVISIONER.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Reason":
                reason, other_reason = map(ast.dump, call.args)
                assert reason != other_reason, path
