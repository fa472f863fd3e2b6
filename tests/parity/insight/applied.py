"""Edits of recorded scenarios, applied as whoever reads the answer would: by the sandbox's JSON Patch."""

from __future__ import annotations

from collections.abc import Iterable

from podium.sandbox.patches import json_patch
from tests.parity.cross.drawing import Json


def edit_scenario(scenario: Json, edits: Iterable[Json]) -> Json:
    """The scenario after the edits.

    Raises:
        ApiError: a patch does not apply.
    """
    objects, pod = list(scenario["objects"]), scenario["pod"]
    for edit in edits:
        if "manifest" in edit:
            objects.append(edit["manifest"])
        elif edit["kind"] == "evict":
            objects = [item for item in objects if not _is_meant(item, edit["object"])]
        elif edit["kind"] == "create-claim":
            pod = _without_claim(pod, edit["object"]["name"])
        elif _is_meant(pod, edit["object"]):
            pod = json_patch(pod, edit["patch"])
        else:
            objects = [json_patch(item, edit["patch"]) if _is_meant(item, edit["object"]) else item for item in objects]
    return {**scenario, "objects": objects, "pod": pod}


def _without_claim(pod: Json, name: str) -> Json:
    """The pod as if the claim restricted nothing."""
    spec = pod["spec"]
    volumes = [volume for volume in spec.get("volumes", ()) if _claim_name(volume) != name]
    claims = [
        claim_entry for claim_entry in spec.get("resourceClaims", ()) if claim_entry.get("resourceClaimName") != name
    ]
    return {**pod, "spec": {**spec, "volumes": volumes, "resourceClaims": claims}}


def _claim_name(volume: Json) -> str | None:
    return (volume.get("persistentVolumeClaim") or {}).get("claimName")


def _is_meant(item: Json, reference: Json) -> bool:
    meta = item["metadata"]
    namespace = meta.get("namespace") or "default" if reference["namespace"] else ""
    return (item["kind"], namespace, meta["name"]) == (reference["kind"], reference["namespace"], reference["name"])
