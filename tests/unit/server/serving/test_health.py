import anyio
import pytest
import structlog

from podium.server.serving import CheckError, Health, ping
from podium.server.serving.health import Endpoint, report_one
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return VIRTUAL_TIME


def not_synced():
    return "handlers are not fully synchronized"


def lease_lost():
    raise CheckError("lease not renewed")


async def answers_late():
    await anyio.sleep(1)


async def hangs():
    await anyio.sleep_forever()


async def test_an_endpoint_whose_checks_pass_says_ok():
    answer = await Endpoint("healthz", {"ping": ping, "slow": answers_late}).report()
    assert (answer.is_healthy, answer.text) == (True, "ok")


async def test_verbose_lists_the_checks():
    answer = await Endpoint("healthz", {"ping": ping}).report(verbose=True)
    assert (answer.is_healthy, answer.text) == (True, "[+]ping ok\nhealthz check passed\n")


async def test_a_failure_lists_the_checks_and_logs_the_reasons_it_withholds():
    with structlog.testing.capture_logs() as logged:
        answer = await Endpoint(
            "readyz", {"ping": ping, "sched-handler-sync": not_synced, "leaderElection": lease_lost}
        ).report()
    assert not answer.is_healthy
    assert answer.text == (
        "[+]ping ok\n"
        "[-]sched-handler-sync failed: reason withheld\n"
        "[-]leaderElection failed: reason withheld\n"
        "readyz check failed\n"
    )
    (entry,) = logged
    assert entry["reasons"] == {
        "sched-handler-sync": "handlers are not fully synchronized",
        "leaderElection": "lease not renewed",
    }


async def test_a_failure_is_logged_when_it_begins_changes_and_ends():
    reasons = {"sync": None, "lease": None}
    endpoint = Endpoint("readyz", {"sync": lambda: reasons["sync"], "lease": lambda: reasons["lease"]})

    async def changes_logged(**fields):
        reasons.update(fields)
        with structlog.testing.capture_logs() as logs:
            await endpoint.report()
            await endpoint.report(exclude=["lease"])
        return [(entry["event"], entry.get("reasons") or entry["checks"]) for entry in logs]

    assert await changes_logged() == []
    assert await changes_logged(sync="not yet") == [("Health check failed", {"sync": "not yet"})]
    assert await changes_logged() == []
    assert await changes_logged(lease="lost") == [("Health check failed", {"lease": "lost"})]
    assert await changes_logged(sync="never") == [("Health check failed", {"sync": "never"})]
    assert await changes_logged(sync=None, lease=None) == [("Health check passes again", ["sync", "lease"])]
    assert await changes_logged() == []


async def test_an_excluded_check_is_not_run():
    answer = await Endpoint("readyz", {"ping": ping, "sync": not_synced}).report(verbose=True, exclude=["sync"])
    assert answer.text == "[+]ping ok\n[+]sync excluded: ok\nreadyz check passed\n"


async def test_excluding_what_is_not_there_is_warned_about():
    answer = await Endpoint("livez", {"ping": ping}).report(verbose=True, exclude=["nope", "else"])
    assert 'warn: some health checks cannot be excluded: no matches for "else", "nope"\n' in answer.text
    assert answer.is_healthy


async def test_a_check_that_hangs_fails_at_its_deadline():
    answer = await report_one(hangs)
    assert (answer.is_healthy, answer.text) == (False, "internal server error: no answer in 5 s\n")


async def test_who_asks_for_one_check_gets_its_reason():
    assert (await report_one(not_synced)).text == "internal server error: handlers are not fully synchronized\n"
    assert (await report_one(lease_lost)).text == "internal server error: lease not renewed\n"
    assert (await report_one(ping)).text == "ok"


async def test_the_endpoints_answer_pings_unless_told_otherwise():
    health = Health(readyz={"sync": not_synced})
    assert {name: list(checks) for name, checks in health.endpoints().items()} == {
        "healthz": ["ping"],
        "livez": ["ping"],
        "readyz": ["sync"],
    }
