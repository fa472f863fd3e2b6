import pytest

from podium.binder import BINDING_CYCLE, BindingEvent, BindingStage
from podium.lib.state_table import InvalidTransition

_LIVE = set(BindingStage) - {BindingStage.BOUND, BindingStage.FAILED}


def test_every_live_stage_can_fail_and_no_other() -> None:
    failing = {stage for stage, event in BINDING_CYCLE.transitions if event is BindingEvent.STEP_FAILED}
    assert failing == _LIVE


def test_stages_only_move_on() -> None:
    for (stage, _), next_stage in BINDING_CYCLE.transitions.items():
        assert next_stage > stage


@pytest.mark.parametrize("event", BindingEvent)
def test_nothing_happens_to_a_bound_pod(event: BindingEvent) -> None:
    with pytest.raises(InvalidTransition):
        BINDING_CYCLE.next(BindingStage.BOUND, event)
