"""Preemptions, and the devices of claims."""

from __future__ import annotations

from typing import Literal

from podium.telemetry.families import (
    counter,
    exponential,
    histogram,
)


class PreemptionMetrics:
    """Preemptions, and the devices of claims."""

    def __init__(self) -> None:
        self._preemption_attempts = counter("scheduler_preemption_attempts_total", "Attempts to preempt.")
        self._victims = histogram("scheduler_preemption_victims", "Victims per preemption.", exponential(1, 2, 7))
        self._preemption_s = histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Time of a preemption, until its last victim was deleted.",
            exponential(0.01, 2, 20),
            "result",
        )
        self._preemptions = counter(
            "scheduler_preemption_goroutines_execution_total", "Preemptions carried out.", "result"
        )
        self._loops = counter("podium_preemption_loops_total", "Preemptions whose victims came back repeatedly.")
        self._claims_created = counter(
            "scheduler_resourceclaim_creates_total",
            "ResourceClaims that were created for extended resources.",
            "status",
        )
        self._claims_created_by_owner = counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "ResourceClaims that were created for extended resources.",
            "status",
            "admin_access",
            "owner_api_group",
            "owner_api_kind",
        )
        self._devices_allocated = counter(
            "scheduler_dra_bindingconditions_allocations_total",
            "Allocated devices that have binding conditions, by how the wait for these ended.",
            "profile",
            "driver",
            "status",
        )
        self._devices_s = histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time that pods waited for the binding conditions of their devices.",
            exponential(0.1, 2, 14),
            "profile",
            "driver",
            "status",
        )
        super().__init__()

    def count_preemption_attempt(self) -> None:
        """Count a pod that looked for victims."""
        self._preemption_attempts[()].add()

    def observe_victims(self, victims: int) -> None:
        """Record the number of victims that a preemption for a pod chose."""
        self._victims[()].observe(victims)

    def observe_preemption(self, result: Literal["success", "error"], seconds: float) -> None:
        """Record a preemption that was carried out, or has failed."""
        self._preemption_s[(result,)].observe(seconds)
        self._preemptions[(result,)].add()

    def count_created_claim(self, status: Literal["success", "failure"]) -> None:
        """Count a claim for extended resources that was created, or could not be."""
        self._claims_created[(status,)].add()
        self._claims_created_by_owner[status, "false", "", "Pod"].add()

    def count_allocated_device(self, profile: str, driver: str, status: str) -> None:
        """Count a device for whose binding conditions the wait has ended."""
        self._devices_allocated[profile, driver, status].add()

    def observe_device_wait(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """Record a pod's wait for the binding conditions of its devices, once for each of them."""
        self._devices_s[profile, driver, status].observe(seconds)

    def count_preemption_loop(self) -> None:
        """Count a preemption whose victims have come back too many times."""
        self._loops[()].add()
