"""The reports of plugins about devices: an observer that does nothing, to derive from."""

from __future__ import annotations


class DeviceObserver:
    """Hears of claims that were created, and of devices that were waited for."""

    def claim_created(self, *, is_success: bool) -> None:
        """Count a claim for extended resources that was created, or could not be."""

    def devices_waited_for(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """Count the end of the wait for a pod's binding conditions; called for each of its devices.

        Args:
            status: `success`, `timeout`, `failed` or `error`.
        """

    def device_allocated(self, profile: str, driver: str, status: str) -> None:
        """Count as `devices_waited_for`, for each of the devices that have binding conditions."""
