import socket

import pytest
from structlog.testing import capture_logs

from podium.client.outage import Outage
from podium.lib.clock import ManualClock
from podium.objects.api_errors import Unauthorized, Unreachable


@pytest.fixture
def clock():
    return ManualClock(1000.0)


@pytest.fixture
def outage(clock):
    return Outage("https://api:6443", clock.monotonic)


def _refusal():
    error = Unreachable("https://api:6443: refused")
    error.__cause__ = ConnectionRefusedError(111, "Connection refused")
    return error


def _reports(logs):
    return [(entry["event"], entry.get("failures")) for entry in logs]


def test_sixteen_kinds_that_fail_all_the_time_are_told_of_ever_more_seldom(outage, clock):
    with capture_logs() as logs:
        for _ in range(600):
            for _ in range(16):
                outage.note_failure(_refusal())
            clock.advance(1.0)
    assert [entry["told_again_after_s"] for entry in logs] == [10, 20, 40, 80, 160, 300]
    assert logs[0]["cause"] == "nothing listens at its address"
    assert "check that the API server runs" in logs[0]["advice"]
    assert [entry["failures"] for entry in logs] == [1, 161, 481, 1121, 2401, 4961]


def test_the_end_is_told_once(outage, clock):
    with capture_logs() as logs:
        outage.note_failure(_refusal())
        clock.advance(7.0)
        assert outage.is_on
        outage.over()
        assert not outage.is_on
    assert logs[-1]["event"] == "API server answers again"
    assert logs[-1]["after_s"] == 7.0


def test_a_server_that_comes_and_goes_is_told_of_once_in_ten_seconds(outage, clock):
    with capture_logs() as logs:
        for _ in range(100):
            outage.note_failure(_refusal())
            outage.over()
            clock.advance(0.3)
    assert len(logs) <= 8
    assert _reports(logs)[:2] == [("API server unreachable", 1), ("API server answers again", None)]


def test_credentials_that_are_refused_are_told_so(outage):
    with capture_logs() as logs:
        outage.note_failure(Unauthorized("Unauthorized", code=401))
    assert logs[0]["event"] == "API server does not accept our credentials"
    assert "renew" in logs[0]["advice"]


def test_a_name_that_nobody_knows_is_told_so(outage):
    error = Unreachable("x")
    error.__cause__ = socket.gaierror(-2, "Name or service not known")
    with capture_logs() as logs:
        outage.note_failure(error)
    assert logs[0]["cause"] == "its host name cannot be resolved"
