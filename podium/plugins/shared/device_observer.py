"""What plugins report of devices. An observer that does nothing, to be derived from."""

from __future__ import annotations


class DeviceObserver:
    """Hears of claims that were created, and of devices that were waited for."""

    def claim_created(self, *, succeeded: bool) -> None:
        """A claim for extended resources was created, or could not be."""

    def devices_waited_for(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """The wait for a pod's binding conditions has ended; called for each of its devices.

        Args:
            status: `success`, `timeout`, `failed` or `error`.
        """

    def device_allocated(self, profile: str, driver: str, status: str) -> None:
        """As `devices_waited_for`, for each of the devices that have binding conditions."""
