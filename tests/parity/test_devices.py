"""Pods with devices, queues of them, and changes: podium's answers are those of kube-scheduler 1.36.2."""

from __future__ import annotations

import pytest

from tests.parity.recorded import DEVICE_HINTS, DEVICES, all_cases, cases, categories


@pytest.mark.parametrize("category", categories(DEVICES))
def test_pods_get_the_devices_that_upstream_gives_them(category):
    assert [each for case in cases(DEVICES, category) for each in case.differences] == []


@pytest.mark.parametrize("category", categories(DEVICE_HINTS))
def test_a_change_of_devices_means_to_every_plugin_what_it_means_upstream(category):
    assert [each for case in cases(DEVICE_HINTS, category) for each in case.differences] == []


def test_no_question_is_left_out():
    assert (len(list(all_cases(DEVICES))), len(list(all_cases(DEVICE_HINTS)))) == (300, 128)
