"""What is easily got wrong about Karpenter, and the tests that would fail if podium got it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

UNIT = Path(__file__).parents[1]

TRAPS = {
    "a pod that kube-scheduler has not refused is not seen": "provisioner:pods_that_kube_scheduler_has_not_refused",
    "and a dump may be planned as if it had been": "cli/plan:pods_that_nobody_has_tried_are_planned_for",
    "a pod that a budget holds is dropped, though its node goes": "simulation:pods_that_cannot_go_are_dropped",
    "of required terms the first counts": "pod_requirements:only_the_first_required_term_counts",
    "of preferred terms the heaviest counts": "pod_requirements:only_the_heaviest_preferred_term_counts",
    "the other terms count after relaxation": "solve:an_alternative_is_tried_when_the_first_fails",
    "expressions on fields do not count": "pod_requirements:requirements_on_fields_do_not_count",
    "resources are judged together with offerings": "instance_type_filter:a_type_without_a_fitting_offering",
    "of pools of one weight the last by name is first": "topology:trap_of_pools_of_one_weight",
    "preferences buy nodes and block consolidation": "simulation:preferences_are_as_hard_as_requirements",
    "minDomains does not tell spreads apart": "topology:trap_constraints_that_differ_only_in_min_domains",
    "excluded values become domains": "topology:domains_are_what_types_and_pools_say_together",
    "two spreads over one key may contradict each other": "topology:trap_two_spreads_over_one_key",
    "a leaving pod without its volume has no topology": "volumes:a_leaving_pod_whose_volume_is_gone",
    "a DaemonSet's term that failed once is gone": "daemons:an_alternative_that_did_not_fit_once_is_gone",
    "a limit of nodes is not used up within a plan": "solve:a_limit_of_nodes_does_not_count",
    "a node whose pods cost nothing is empty": "candidates:a_node_whose_pods_cost_nothing_is_empty",
}


@pytest.mark.parametrize("shown_by", TRAPS.values(), ids=TRAPS)
def test_what_is_easily_got_wrong_has_a_test(shown_by: str) -> None:
    module, _, name = shown_by.partition(":")
    folder, _, module = module.rpartition("/")
    (path,) = (UNIT / (folder or "provisioner")).rglob(f"test_{module}.py")
    assert f"\ndef test_{name}" in path.read_text()
