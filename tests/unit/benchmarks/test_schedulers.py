import json

from benchmarks.pods import SCHEDULER_NAME
from benchmarks.schedulers import STARTERS, configuration
from podium.config import load


def test_the_configuration_is_valid_and_elects_no_leader() -> None:
    config = load(json.dumps(configuration()), "bench").config
    assert [profile.scheduler_name for profile in config.profiles] == [SCHEDULER_NAME]
    assert not config.leader_election.leader_elect
    assert (config.client_connection.qps, config.client_connection.burst) == (5000, 5000)


def test_a_configuration_that_was_changed_is_not_handed_out_again() -> None:
    configuration()["clientConnection"]["kubeconfig"] = "elsewhere"
    assert "kubeconfig" not in configuration()["clientConnection"]


def test_podium_is_compared_with_the_real_one() -> None:
    assert list(STARTERS) == ["podium", "kube-scheduler"]
