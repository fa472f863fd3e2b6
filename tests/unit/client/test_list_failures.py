import pytest
from structlog.testing import capture_logs

from podium.client.list_failures import ListFailures
from podium.lib.clock import ManualClock
from podium.objects.api_errors import ConnectionLost, Forbidden, Unauthorized, Unavailable, Unreachable

KINDS = [f"kind-{number}" for number in range(16)]


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def failures(clock):
    return ListFailures(clock)


def _warnings(logs):
    return [entry for entry in logs if entry["log_level"] == "warning"]


@pytest.mark.parametrize("error", [ConnectionLost("Server disconnected"), Unavailable("nope", code=503)])
def test_sixteen_kinds_that_fail_alike_are_one_line_now_and_then(failures, clock, error):
    with capture_logs() as logs:
        for _ in range(60):
            for kind in KINDS:
                failures.log(kind, error, "streaming list", 1.0)
            clock.advance(1.0)
    warnings = _warnings(logs)
    assert len(warnings) == 3
    assert warnings[0]["resource"] == "kind-0"
    assert "others" not in warnings[0]
    assert warnings[1]["others"] == sorted(KINDS[1:])
    assert [warning["failures"] for warning in warnings] == [1, 161, 481]


def test_rights_that_are_missing_are_told_of_each_kind(failures, clock):
    with capture_logs() as logs:
        for _ in range(3):
            for kind in KINDS[:2]:
                failures.log(kind, Forbidden("no", code=403), "streaming list", 15.0)
            clock.advance(4.0)
    assert [warning["resource"] for warning in _warnings(logs)] == ["kind-0", "kind-1"]
    assert "the role needs both verbs" in logs[0]["event"]


def test_what_has_gone_well_for_a_while_is_told_at_once_when_it_fails_again(failures, clock):
    with capture_logs() as logs:
        for _ in range(5):
            failures.log("pods", ConnectionLost("reset"), "watching", 1.0)
            clock.advance(61.0)
    assert [warning["failures"] for warning in _warnings(logs)] == [1] * 5


@pytest.mark.parametrize("error", [Unreachable("refused"), Unauthorized("no", code=401)])
def test_what_the_session_tells_is_not_told_again(failures, error):
    with capture_logs() as logs:
        failures.log("pods", error, "streaming list", 1.0)
    assert _warnings(logs) == []
