"""New questions about devices: recorded ones in which claims, slices and classes have parts of others.

Every object keeps its name, and so does the pod, to whom its claims belong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from tests.parity.cross.drawing import Json, chance, copy_of, of_kind
from tests.parity.recorded import category_of

_CLAIM, _CLASS, _SLICE = "ResourceClaim", "DeviceClass", "ResourceSlice"
_OF_A_SLICE = ("devices", "sharedCounters", "perDeviceNodeSelection")
"""What belongs together: devices name counters, and may say themselves where they are."""


def about_one_pod(recordings: Sequence[Json]) -> list[Json]:
    """The attempts among recorded questions, which are queues as well."""
    return [question for question in recordings if "pod" in question]


def crossed_devices(recordings: Sequence[Json], seed: int, count: int) -> Iterator[Json]:
    """As many attempts at one pod with claims, or with extended resources that devices stand behind."""
    attempts = about_one_pod(recordings)
    objects = [item for question in attempts for item in question["objects"]]
    pool = {kind: of_kind(objects, kind) for kind in (_CLAIM, _CLASS, _SLICE)}
    count_drawn = 0
    for number in range(count * 2):
        random = chance(seed, number)
        question: Json = copy_of({**random.choice(attempts), "expect": None})
        del question["expect"]
        _name_each_claim_once(question["pod"]["spec"])
        for item in question["objects"]:
            _change(random, item, pool)
        if _pay_with_counters_of_others(question["objects"]):
            continue
        question["id"] = f"{category_of(question['id'])}-{seed}x{number}"
        yield question
        count_drawn += 1
        if count_drawn == count:
            return


def _pay_with_counters_of_others(objects: Sequence[Json]) -> bool:
    """Return True if pools of two drivers have equal names and counters, which only upstream confuses."""
    drivers: dict[str, set[str]] = {}
    for spec in (item["spec"] for item in objects if item["kind"] == _SLICE):
        if spec.get("sharedCounters"):
            drivers.setdefault(spec["pool"]["name"], set()).add(spec["driver"])
    return any(len(driver_names) > 1 for driver_names in drivers.values())


def _name_each_claim_once(spec: Json) -> None:
    """Of a claim that is named twice the recorder sees the first allocation, and podium shows the last."""
    pod_claims = spec.get("resourceClaims", ())
    claims = {
        claim_entry.get("resourceClaimName", claim_entry["name"]): claim_entry for claim_entry in reversed(pod_claims)
    }
    if len(claims) < len(pod_claims):
        spec["resourceClaims"] = list(reversed(claims.values()))


def _change(random: Random, item: Json, pool: dict[str, list[Json]]) -> None:
    kind = item["kind"]
    if kind == _CLAIM:
        if item.get("status") and random.random() < 0.1:
            del item["status"]
        if not item.get("status") and random.random() < 0.5:
            item["spec"] = copy_of(random.choice(pool[kind])["spec"])
    elif kind == _CLASS and random.random() < 0.1:
        item["spec"] = copy_of(random.choice(pool[kind])["spec"])
    elif kind == _SLICE:
        _change_slice(random, item["spec"], random.choice(pool[kind])["spec"])


def _change_slice(random: Random, spec: Json, donor: Json) -> None:
    """The slice may get what another one has; where that is by device, it must be in both."""
    if spec.get("perDeviceNodeSelection") == donor.get("perDeviceNodeSelection") and random.random() < 0.25:
        for name in _OF_A_SLICE:
            spec.pop(name, None)
            if name in donor:
                spec[name] = copy_of(donor[name])
    if spec.get("devices") and random.random() < 0.15:
        random.shuffle(spec["devices"])
