import pytest

from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import ScheduleError, unschedulable
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.evaluation import evaluate_all
from podium.framework.cycle.search import MIN_FEASIBLE_NODES
from podium.queues import Nominator
from tests.builders import pod
from tests.unit.framework.profiles import (
    cluster,
    framework,
    node_filter,
    node_scorer,
    post_filter,
    pre_filter,
    raising,
)


def _survey(*plugins, nodes=3, subject=None):
    return evaluate_all(Cycle(framework(*plugins), subject or pod(), cluster(nodes), Nominator({}.get)))


def test_every_node_is_judged_and_every_fitting_one_is_scored():
    count = 3 * MIN_FEASIBLE_NODES
    survey = _survey(node_filter("F", lambda name: None), node_scorer("S", lambda name: 1), nodes=count)
    assert len(survey.filter_result.rows) == count
    assert survey.scores is not None
    assert len(survey.scores.total) == count


def test_all_fitting_nodes_are_found_without_any_scorer():
    assert len(_survey(node_filter("F", lambda name: None)).filter_result.rows) == 3


def test_only_node_that_fits_is_scored_too():
    reject = node_filter("F", lambda name: None if name == "n1" else unschedulable("no"))
    survey = _survey(reject, node_scorer("S", lambda name: 7))
    assert survey.scores is not None
    assert (survey.winner, survey.scores.total.tolist(), survey.help) == (cluster(3).row_of["n1"], [7], None)


def test_nomination_of_the_pods_own_is_no_short_cut():
    survey = _survey(node_filter("F", lambda name: None), subject=pod(nominated="n1"))
    assert len(survey.filter_result.rows) == 3


def test_winner_is_the_node_of_the_highest_total():
    assert _survey(node_scorer("S", lambda name: 9 if name == "n2" else 1)).winner == cluster(3).row_of["n2"]


def test_post_filters_are_asked_where_nothing_fits():
    help_ = post_filter("P", lambda nodes_filtered: (PostFilterResult("n1"), unschedulable("tried")))
    survey = _survey(node_filter("F", lambda name: unschedulable("no")), help_)
    assert (survey.winner, survey.scores, survey.post_filter_message) == (None, None, "tried")
    assert survey.help is not None
    assert survey.help.result == PostFilterResult("n1")


def test_pre_filter_rejection_leaves_every_node_unjudged():
    survey = _survey(pre_filter("P", lambda: (None, unschedulable("early"))))
    assert survey.filter_result.rejection is not None
    assert survey.filter_result.rejection.plugin == "P"
    assert survey.diagnosis.statuses() == {}


def test_failing_plugin_fails_the_survey():
    with pytest.raises(ScheduleError, match="broken"):
        _survey(node_filter("F", raising(ValueError("broken"))))
