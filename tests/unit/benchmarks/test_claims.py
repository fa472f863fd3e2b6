import io

from rich.console import Console

from benchmarks.claims import checks, measure, table
from benchmarks.devices import PER_CLAIM, allocated_claims
from benchmarks.in_process import Rate, decode
from podium.objects.claims import ResourceClaim


def test_attempts_are_measured_beside_allocated_claims() -> None:
    rates = measure(nodes=8, claim_counts=(0, 3), attempts=2, rounds=2)
    assert [(rate.workload, rate.nodes) for rate in rates] == [("devices-beside-0", 8), ("devices-beside-3", 8)]
    output = io.StringIO()
    Console(file=output, width=120).print(table(rates))
    assert "devices-beside-3" in output.getvalue()


def test_allocated_claims_hold_devices_of_their_own() -> None:
    claims = [claim for claim in decode(allocated_claims(3)) if isinstance(claim, ResourceClaim)]
    devices = [(result.pool, result.device) for claim in claims for result in claim.status.allocation.devices.results]
    assert len(set(devices)) == len(devices) == 3 * PER_CLAIM


def test_an_attempt_may_cost_hardly_more_beside_many_claims() -> None:
    def rates(us: float) -> list[Rate]:
        return [Rate("0", 1, 0, attempts=1, cpu_s=100e-6), Rate("many", 1, 0, attempts=1, cpu_s=us / 1e6)]

    assert [check.is_met for check in checks(rates(119))] == [True]
    assert [check.is_met for check in checks(rates(121))] == [False]
