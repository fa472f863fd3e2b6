"""Whether a binding that failed may come late; tests/simulation shows what depends on it."""

from __future__ import annotations

import pytest

from podium.binder import BindOutcome
from podium.binder.binding_stage import BindingStage
from podium.daemon.binding_cycles import _may_be_bound_yet
from podium.framework.contract.status import PluginError, error_status
from podium.objects.api_errors import ApiError, Conflict, Forbidden, NotFound, OutcomeUnknown


def failed_binding(*errors: ApiError, stage: BindingStage = BindingStage.BINDING) -> BindOutcome:
    """The outcome of requests to bind that failed one after the other, each while the error before it was handled."""
    for cause, error in zip((None, *errors), errors, strict=False):
        error.__context__ = cause
    # As `DefaultBinder` and the call of it wrap an error.
    of_plugin, failure = PluginError("not bound"), PluginError("running the plugin: not bound")
    of_plugin.__cause__, failure.__cause__ = errors[-1], of_plugin
    return BindOutcome(error_status(failure), stage, 0.0)


@pytest.mark.parametrize(
    ("errors", "is_possible"),
    [
        ([OutcomeUnknown("no answer")], True),
        ([OutcomeUnknown("no answer"), Forbidden("no")], True),
        ([OutcomeUnknown("no answer"), Conflict("refused")], True),
        ([OutcomeUnknown("no answer"), NotFound("gone")], False),
        ([Forbidden("no")], False),
    ],
)
def test_a_request_to_bind_without_a_definite_answer_may_come_late(errors: list[ApiError], is_possible: bool) -> None:
    assert _may_be_bound_yet(failed_binding(*errors)) is is_possible
    assert not _may_be_bound_yet(failed_binding(*errors, stage=BindingStage.PRE_BINDING))


def test_a_failure_of_a_plugin_is_definite() -> None:
    assert not _may_be_bound_yet(BindOutcome(error_status("no"), BindingStage.BINDING, 0.0))
