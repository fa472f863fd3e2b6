"""The claims that a pod's volumes use.

Source: component-helpers storage/volume and storage/ephemeral, v0.36.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """One volume of a pod that is a claim.

    `name` is the claim's. `is_ephemeral` says that the claim was made for this pod's volume, and must belong to the
    pod.
    """

    name: str
    is_ephemeral: bool


@once_per_spec
def _named_claims(spec: PodSpec) -> tuple[str, ...]:
    claims = (volume.persistent_volume_claim for volume in spec.volumes)
    return tuple(claim.claim_name for claim in claims if claim is not None)


@once_per_spec
def uses_claims(spec: PodSpec) -> bool:
    """Return whether any volume is a claim, named or made for the pod."""
    return any(volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in spec.volumes)


def named_claims(pod: Pod) -> tuple[str, ...]:
    """Return the claims that the pod names, in volume order."""
    return _named_claims(pod.spec)


def claims_used(pod: Pod) -> Iterator[ClaimUse]:
    """Yield the claims that the pod names and those made for it, in volume order."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield ClaimUse(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
        elif volume.ephemeral is not None:
            yield ClaimUse(ephemeral_claim_name(pod, volume.name), is_ephemeral=True)


def ephemeral_claim_name(pod: Pod, volume_name: str) -> str:
    """Return the name of the claim that is made for an ephemeral volume of the pod."""
    return f"{pod.metadata.name}-{volume_name}"


def ownership_problem(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Return the problem if the claim of an ephemeral volume was not made for this pod; None if it was."""
    controller = claim.metadata.controller
    if claim.metadata.namespace == pod.metadata.namespace and controller is not None and controller.uid == pod.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Return whether one of the pod's volumes is the claim, named or, by its name, made for the pod."""
    metadata = claim.metadata
    if pod.metadata.namespace != metadata.namespace:
        return False
    return any(use.name == metadata.name for use in claims_used(pod))


def names_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Return whether the pod names the claim."""
    return pod.metadata.namespace == claim.metadata.namespace and claim.metadata.name in named_claims(pod)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the storage class that the claim asks for; the legacy annotation has precedence."""
    annotated = claim.metadata.annotations.get(_BETA_STORAGE_CLASS)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the storage class of the volume; the legacy annotation has precedence."""
    annotated = volume.metadata.annotations.get(_BETA_STORAGE_CLASS)
    return annotated if annotated is not None else volume.spec.storage_class_name


def kept_for(claim_key: str) -> str:
    """Return the `place_of_volume` of volumes that are bound or pre-bound to a claim."""
    return f"claim {claim_key}"


def free_of(storage_class: str) -> str:
    """Return the `place_of_volume` of the free volumes of a class."""
    return f"class {storage_class}"


def place_of_volume(volume: PersistentVolume) -> str:
    """Return the index key of a volume. With it a claim does not search the volumes of other claims."""
    reference = volume.spec.claim_ref
    if reference is None:
        return free_of(class_of_volume(volume))
    return kept_for(f"{reference.namespace}/{reference.name}")


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim has its volume, and binding has been completed."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def claim_not_found(name: str) -> str:
    """Return upstream's message for a missing claim."""
    return f'persistentvolumeclaim "{name}" not found'
