from __future__ import annotations

import click
import pytest

from podium.cli.options.other_scheduler import for_schedulers
from podium.config import default_configuration


def test_the_default_profile_serves_any_name():
    configuration = for_schedulers(default_configuration(), ("a", "b", "a"), is_default=True)
    assert [profile.scheduler_name for profile in configuration.profiles] == ["a", "b"]
    assert for_schedulers(default_configuration(), (), is_default=True) == default_configuration()


def test_a_scheduler_that_the_configuration_does_not_have_is_refused():
    with pytest.raises(click.UsageError, match="--scheduler yours: the configuration has no such profile, only def"):
        for_schedulers(default_configuration(), ("yours",), is_default=False)
    configuration = for_schedulers(default_configuration(), ("default-scheduler",), is_default=False)
    assert configuration == default_configuration()
