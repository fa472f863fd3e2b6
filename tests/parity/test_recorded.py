"""Recorded questions of every kind: podium's answers are those of kube-scheduler, minor by minor; their page is true.

All in one file, so that one process answers each of them once. With which words a device selector is found wrong, and
when, is not compared: CEL libraries differ there from version to version.
"""

import msgspec
import pytest

from podium.config import RELEASES
from podium.devices.selectors import bind_device, compile_selector
from podium.objects.devices import Device
from tests.parity.recorded import (
    DEVICE_HINTS,
    DEVICES,
    HINTS,
    SCENARIOS,
    SELECTORS,
    SEQUENCES,
    all_cases,
    by_minor,
    cases,
    differences,
    minors,
    scenarios,
)
from tests.parity.report import PAGE, page


@pytest.mark.parametrize(("name", "minor", "category"), by_minor(SCENARIOS, HINTS, DEVICES, DEVICE_HINTS))
def test_podium_answers_what_upstream_answers(name, minor, category):
    """One attempt over all nodes; what a change means to every plugin; the devices that pods get."""
    assert [difference for case in cases(name, category, minor) for difference in case.differences] == []


@pytest.mark.parametrize("minor", RELEASES)
def test_queue_is_placed_pod_for_pod_as_upstream_places_it(minor):
    """Sampling, rotation and tie-break included. The recorded queues are placed alike in all minors."""
    assert [difference for case in all_cases(SEQUENCES, decided_as=minor) for difference in case.differences] == []


def test_selector_chooses_the_devices_that_upstream_chooses():
    assert [difference for case in cases(SELECTORS, "cel") for difference in case.differences] == []


def test_counting_costs_of_a_selector_changes_no_answer():
    for scenario, _ in scenarios(SELECTORS):
        if "matches" in scenario["expect"]:
            device = bind_device(scenario["driver"], msgspec.convert(scenario["device"], Device))
            assert compile_selector(scenario["expression"]).evaluate(device)[0] == scenario["expect"]["matches"]


def test_no_question_is_left_out():
    names = (SCENARIOS, HINTS, SEQUENCES, DEVICES, DEVICE_HINTS)
    counts = {(name, minor): len(scenarios(name, minor)) for name in names for minor in minors(name)}
    in_all = {(name, minor): count for name, count in ((SCENARIOS, 930), (HINTS, 400)) for minor in RELEASES}
    assert counts == in_all | {(SEQUENCES, "1.36"): 80, (DEVICES, "1.36"): 300, (DEVICE_HINTS, "1.36"): 128}
    assert len(cases(SELECTORS, "cel")) == 400
    assert sum(len(case.recorded_answer["placements"]) for case in all_cases(SEQUENCES)) == 3419


@pytest.mark.parametrize("minor", RELEASES)
def test_preemptions_choose_upstreams_victims_and_node(minor):
    preemptions = [case for case in all_cases(SCENARIOS, minor) if "postfilter" in case.recorded_answer]
    nominations = [case.recorded_answer for case in preemptions if "nominated" in case.recorded_answer]
    victim_count = sum(len(nomination["victims"]) for nomination in nominations)
    assert (len(preemptions), len(nominations), victim_count) == (280, 22, 44)
    for case in preemptions:
        for field in ("postfilter", "nominated", "victims"):
            assert case.answer.get(field) == case.recorded_answer.get(field), f"{case.id}: {field}"


def test_comparison_notices_a_single_other_score():
    case = next(case for case in all_cases(SCENARIOS) if "scores" in case.recorded_answer)
    node, scores = next(iter(case.recorded_answer["scores"].items()))
    changed_answer = {
        **case.answer,
        "scores": {**case.answer["scores"], node: {**scores, "total": scores["total"] + 1}},
    }
    (difference,) = differences(case.recorded_answer, changed_answer)
    assert difference.startswith(f"scores.{node}.total: expected {scores['total']}, got {scores['total'] + 1}")


def test_the_page_says_what_the_comparison_says():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.parity.report"
