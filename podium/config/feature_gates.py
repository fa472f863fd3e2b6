"""The feature gates that change what a configuration may hold or what it defaults to.

Source: pkg/features/kube_features.go (kube-scheduler 1.36.2: the defaults here)
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigGates:
    """One attribute per gate, named as the gate in snake case."""

    dra_scheduler_filter_timeout: bool = True
    dra_device_binding_conditions: bool = True
    dra_resource_claim_device_status: bool = True
    storage_capacity_scoring: bool = False
    gang_scheduling: bool = False
    topology_aware_workload_scheduling: bool = False

    @property
    def dra_binding_timeout(self) -> bool:
        """Whether DynamicResources waits for device conditions, which takes two gates."""
        return self.dra_device_binding_conditions and self.dra_resource_claim_device_status


DEFAULT_GATES = ConfigGates()
