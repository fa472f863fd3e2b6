"""The volumes of a pod: which nodes they allow, how many a node can have, and what is wrong with them.

Owns the lookups from a pod to its claims, volumes and storage classes. Never changes a pod: what its volumes require
is kept apart from what the pod requires.

Source: karpenter pkg/controllers/provisioning/scheduling/volumetopology.go and pkg/scheduling/volumeusage.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final, TypeAlias

from podium.objects.affinity import NodeSelectorRequirement
from podium.objects.core import Pod
from podium.objects.pod_volumes import Volume
from podium.objects.storage import PersistentVolumeClaim, StorageClass
from podium.plugins.volumes.claims import ephemeral_claim_name
from podium.plugins.volumes.csi_translation import driver_of_provisioner
from podium.provisioner.apis.labels import HOSTNAME
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.apis.objects import Volume as PersistentVolume
from podium.provisioner.scheduling.requirements import Requirement, Requirements

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"

AttachedVolumes: TypeAlias = Mapping[str, frozenset[str]]
"""The claims that are attached to a node, by driver."""

_AWS_DRIVER: Final = "ebs.csi.aws.com"


class VolumeError(Exception):
    """Something that a pod's volume needs is not there."""


class Volumes:
    """The claims, volumes and storage classes of a cluster."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._claims = {(claim.metadata.namespace, claim.metadata.name): claim for claim in objects.claims}
        self._volumes = {volume.metadata.name: volume for volume in objects.volumes}
        self._classes = {storage_class.metadata.name: storage_class for storage_class in objects.storage_classes}

    def alternatives(self, pod: Pod) -> tuple[Requirements, ...]:
        """Return the requirements of the pod's volumes on a node: any one of these; empty if there are none.

        Raises:
            VolumeError: a claim, volume or storage class is missing.
        """
        product: tuple[Requirements, ...] | None = None
        for volume in pod.spec.volumes:
            claim = self._claim(pod, volume)
            alternatives = () if claim is None else self._alternatives_of(claim)
            if alternatives:
                product = alternatives if product is None else _combinations(product, alternatives)
        return product or ()

    def attached_volumes(self, pod: Pod) -> AttachedVolumes:
        """Return the claims that the pod attaches to its node, by driver; claims that are missing do not count.

        Raises:
            VolumeError: a claim's volume is missing.
        """
        attached_volumes: dict[str, frozenset[str]] = {}
        for volume in pod.spec.volumes:
            try:
                claim = self._claim(pod, volume)
            except VolumeError:
                continue
            driver = "" if claim is None else self._driver(claim)
            if claim is not None and driver:
                attached_volumes[driver] = attached_volumes.get(driver, frozenset()) | {claim.key}
        return attached_volumes

    def fault(self, pod: Pod) -> str | None:
        """Return the reason why the pod's claims cannot be used yet, or None if they can."""
        for volume in pod.spec.volumes:
            try:
                claim = self._claim(pod, volume)
            except VolumeError as error:
                return str(error)
            fault = None if claim is None else self._fault_of(claim)
            if fault is not None:
                return fault
        return None

    def _claim(self, pod: Pod, volume: Volume) -> PersistentVolumeClaim | None:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = ephemeral_claim_name(pod, volume.name)
        else:
            return None
        claim = self._claims.get((pod.metadata.namespace, name))
        if claim is None:
            text = f'getting persistent volume claim, PersistentVolumeClaim "{name}" not found'
            raise VolumeError(f"{text} (PersistentVolumeClaim={name})")
        return claim

    def _volume(self, name: str) -> PersistentVolume:
        if name not in self._volumes:
            raise VolumeError(f'PersistentVolume "{name}" not found')
        return self._volumes[name]

    def _class(self, name: str) -> StorageClass:
        if name not in self._classes:
            raise VolumeError(f'StorageClass.storage.k8s.io "{name}" not found')
        return self._classes[name]

    def _driver(self, claim: PersistentVolumeClaim) -> str:
        """Return the CSI driver that attaches the claim; empty if none is known."""
        if claim.spec.volume_name:
            # A bound claim is attached by its volume's driver, an unbound one by that of its class.
            spec = self._volume(claim.spec.volume_name).spec
            if spec.csi is not None:
                return spec.csi.driver
            return _AWS_DRIVER if spec.aws_elastic_block_store is not None else ""
        storage_class = self._classes.get(claim.spec.storage_class_name or "")
        return "" if storage_class is None else driver_of_provisioner(storage_class.provisioner)

    def _alternatives_of(self, claim: PersistentVolumeClaim) -> tuple[Requirements, ...]:
        if claim.spec.volume_name:
            return tuple(_volume_alternatives(self._volume(claim.spec.volume_name)))
        if claim.spec.storage_class_name:
            return tuple(_class_alternatives(self._class(claim.spec.storage_class_name)))
        return ()

    def _fault_of(self, claim: PersistentVolumeClaim) -> str | None:
        name = claim.key
        volume, storage_class = claim.spec.volume_name, claim.spec.storage_class_name or ""
        # Upstream's order, so that of several faults the same one is reported.
        if claim.metadata.deletion_timestamp is not None:
            return f"persistentvolumeclaim is being deleted (PersistentVolumeClaim={name})"
        if claim.status.phase == "Lost":
            volume_text = f"PersistentVolume={volume}, PersistentVolumeClaim={name}"
            return f"persistentvolumeclaim bound to non-existent persistentvolume ({volume_text})"
        if volume:
            return self._bound_fault(claim, name, volume, storage_class)
        volume_text = f"(PersistentVolumeClaim={name}, StorageClass={storage_class})"
        if not storage_class:
            return f"unbound pvc must define a storage class {volume_text}"
        try:
            class_there = self._class(storage_class)
        except VolumeError as error:
            return f"failed to validate pvc, failed to get storage class, {error} {volume_text}"
        # The volume controller binds such a claim without asking a scheduler, so a node bought now might be in the
        # wrong zone.
        if class_there.volume_binding_mode == "Immediate":
            return f"failed to validate pvc, pvc with immediate volume binding mode must be bound {volume_text}"
        return None

    def _bound_fault(self, claim: PersistentVolumeClaim, name: str, volume: str, storage_class: str) -> str | None:
        volume_text = f"(PersistentVolume={volume}, PersistentVolumeClaim={name}, StorageClass={storage_class})"
        try:
            volume_there = self._volume(volume)
        except VolumeError as error:
            return f"failed to validate pvc, {error} {volume_text}"
        if volume_there.metadata.deletion_timestamp is not None:
            return f"failed to validate pvc, persistentvolume is being deleted {volume_text}"
        # Without it the volume controller has not finished, and may still bind the claim elsewhere.
        if BIND_COMPLETED not in claim.metadata.annotations:
            volume_text = f"PersistentVolume={volume}, PersistentVolumeClaim={claim.metadata.name}"
            text = "pvc is considered unbound because it does not contain annotation"
            return f"{text} ({volume_text}, annotation={BIND_COMPLETED})"
        return None


def exceeds_limits(volumes: AttachedVolumes, limits: Mapping[str, int]) -> bool:
    """Return True if any driver has more volumes than the node allows."""
    return any(len(names) > limits[driver] for driver, names in volumes.items() if driver in limits)


def together(first: AttachedVolumes, second: AttachedVolumes) -> AttachedVolumes:
    """Return the claims of both, by driver."""
    if not second:
        return first
    return {driver: first.get(driver, frozenset()) | second.get(driver, frozenset()) for driver in {**first, **second}}


def _combinations(
    first_alternatives: tuple[Requirements, ...], second_alternatives: tuple[Requirements, ...]
) -> tuple[Requirements, ...]:
    """Return all combinations that do not contradict themselves; all of them if every left does."""
    pairs = tuple(product(first_alternatives, second_alternatives))
    # Where all contradict, the product stays, so that the refusal names the labels in question.
    compatible = tuple(pair for pair in pairs if pair[0].intersects(pair[1])) or pairs
    return tuple(first.union(second) for first, second in compatible)


def _volume_alternatives(volume: PersistentVolume) -> Iterator[Requirements]:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return
    for term in affinity.required.node_selector_terms:
        expressions = term.match_expressions
        # A term without expressions matches no node for kube-scheduler; Karpenter skips it.
        if not expressions:
            continue
        if volume.spec.is_on_one_node:
            # A pod that moves does not find its directory again, so the node's name is no reason to stay.
            expressions = tuple(expression for expression in expressions if expression.key != HOSTNAME)
        yield _requirements(expressions)


def _class_alternatives(storage_class: StorageClass) -> Iterator[Requirements]:
    for term in storage_class.allowed_topologies:
        if term.match_label_expressions:
            yield Requirements(
                Requirement.of(expression.key, "In", expression.values) for expression in term.match_label_expressions
            )


def _requirements(expressions: Iterable[NodeSelectorRequirement]) -> Requirements:
    return Requirements(
        Requirement.of(expression.key, expression.operator, expression.values) for expression in expressions
    )
