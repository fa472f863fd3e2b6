"""What every kind of crossing needs: chance from a seed, copies, and what makes an object one of its own."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, TypeAlias

import orjson

Json: TypeAlias = dict[str, Any]

DEFAULT_SCHEDULER = "default-scheduler"
ASKED, ASKED_UID = "asked", "asked-uid"


def chance(seed: int, number: int) -> Random:
    """Chance for one question. The same whatever else is asked, so that a question can be made alone."""
    return Random(f"{seed}/{number}")


def copy_of(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def key(item: Json) -> tuple[str, str, str]:
    meta = item["metadata"]
    return item["kind"], meta.get("namespace") or "default", meta["name"]


def of_kind(objects: Iterable[Json], kind: str) -> list[Json]:
    return [item for item in objects if item["kind"] == kind]


def distinct(objects: Iterable[Json]) -> list[Json]:
    """The objects, the first of each kind and name, each pod with a uid of its own."""
    items_by_key: dict[tuple[str, str, str], Json] = {}
    for item in objects:
        items_by_key.setdefault(key(item), item)
    uids: set[str] = set()
    for item in of_kind(items_by_key.values(), "Pod"):
        meta = item["metadata"]
        if meta.get("uid") in {None, ASKED_UID, *uids}:
            meta["uid"] = "/".join(key(item))
        uids.add(meta["uid"])
    return list(items_by_key.values())


def ask_as(pod: Json, config: Json | None, name: str = ASKED, uid: str = ASKED_UID) -> Json:
    """Make the pod a pod to schedule, with a scheduler that the configuration has a profile for."""
    pod["metadata"] |= {"name": name, "uid": uid}
    pod["spec"].pop("schedulerName", None)
    if (scheduler := first_profile(config)) != DEFAULT_SCHEDULER:
        pod["spec"]["schedulerName"] = scheduler
    return pod


def first_profile(config: Json | None) -> str:
    profiles = (config or {}).get("profiles") or [{}]
    return profiles[0].get("schedulerName") or DEFAULT_SCHEDULER
