import pytest

from podium.config import NEWEST, RELEASES, ConfigError, default_configuration, default_gates, parse_feature_gates
from podium.engine.configurations import Configurations, read_config, release_named
from podium.engine.errors import ClusterError
from podium.plugins import IN_TREE

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def test_release_is_named_by_its_minor_and_is_the_newest_by_default():
    assert release_named("1.36") is RELEASES["1.36"]
    assert release_named(None) is NEWEST
    with pytest.raises(ClusterError, match=r"decide_as: '1\.2' is not a minor that podium knows: 1\.36, 1\.37"):
        release_named("1.2")


@pytest.mark.parametrize("minor", RELEASES)
def test_configuration_has_the_release_that_is_asked_for(minor):
    for config in (None, HEAD):
        assert read_config(config, IN_TREE, release=RELEASES[minor]).release.minor == minor


def test_loaded_configuration_keeps_its_release():
    older = default_configuration(default_gates(RELEASES["1.36"]))
    assert read_config(older, IN_TREE) is older


def test_questions_are_answered_by_the_release_of_the_default():
    configurations = Configurations(IN_TREE, default_configuration(default_gates(RELEASES["1.36"])))
    assert configurations.of(None).release.minor == "1.36"
    assert configurations.of(HEAD).release.minor == "1.36"
    gates = parse_feature_gates(["GenericWorkload=true"], configurations.release)
    assert configurations.of(None, gates).release.minor == "1.36"


def test_configuration_is_read_once():
    configurations = Configurations(IN_TREE)
    assert configurations.of(HEAD) is configurations.of(dict(HEAD))
    with pytest.raises(ConfigError):
        configurations.of({**HEAD, "parallelism": -1})
