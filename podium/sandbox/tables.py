"""The tables that `kubectl get` prints: the columns of each type and the cells of one object.

Source: kubernetes pkg/printers/internalversion/printers.go, apimachinery pkg/util/duration (v1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podium.sandbox.fields import mapping_at
from podium.sandbox.resources import ResourceType

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Columns of priority 1 are shown only by `-o wide`."""

    name: str
    cell: Callable[[Json, datetime], Any]
    priority: int = 0
    type: str = "string"


def table(resource: ResourceType, rows: Sequence[tuple[Json, Json | None]], metadata: Json, time: datetime) -> Json:
    """Build a `Table` from pairs of a stored object and the object to embed in its row."""
    columns = COLUMNS.get(resource.storage, _NAME_AND_AGE)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [
            {"cells": [column.cell(obj, time) for column in columns], "object": row_object} for obj, row_object in rows
        ],
    }


def _definition(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == "Name" else "",
        "description": column.name,
        "priority": column.priority,
    }


def human_duration(seconds: float) -> str:
    """Format a duration as kubectl formats ages: 59s, 5m30s, 3h, 2d4h, 1y20d."""
    remainder = int(seconds)
    # A clock that is a second behind is no error, as kubectl.
    if remainder < -1:
        return "<invalid>"
    remainder = max(remainder, 0)
    minutes, hours, days = remainder // 60, remainder // 3600, remainder // 86400
    if remainder < 120:
        return f"{remainder}s"
    if minutes < 10:
        # Two units only while the smaller one still says something.
        return _two(minutes, "m", remainder % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(high: int, high_unit: str, low: int, low_unit: str) -> str:
    return f"{high}{high_unit}{low}{low_unit}" if low else f"{high}{high_unit}"


def _moment(text: Any) -> datetime:
    return datetime.fromisoformat(str(text).replace("Z", "+00:00"))


def _since(text: Any, time: datetime) -> str:
    try:
        moment = _moment(text)
    except ValueError:
        return "<unknown>"
    return human_duration((time - moment).total_seconds())


def _field(path: str, default: Any = "<none>") -> Callable[[Json, datetime], Any]:
    parts = path.split(".")

    def cell(obj: Json, _now: datetime) -> Any:
        value: Any = obj
        for part in parts:
            value = value.get(part) if isinstance(value, dict) else None
        return default if value in (None, "") else value

    return cell


def _age(obj: Json, time: datetime) -> str:
    return _since(obj["metadata"].get("creationTimestamp"), time)


def _statuses(pod: Json) -> list[Json]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _pod_ready(pod: Json, _now: datetime) -> str:
    total = len((pod.get("spec") or {}).get("containers") or ())
    return f"{sum(1 for status in _statuses(pod) if status.get('ready'))}/{total}"


def _pod_status(pod: Json, _now: datetime) -> str:
    status = pod.get("status") or {}
    # Before the phase: a pod that is being deleted is still Running.
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or "Unknown"


def _pod_restarts(pod: Json, _now: datetime) -> str:
    return str(sum(status.get("restartCount", 0) for status in _statuses(pod)))


def _node_status(node: Json, _now: datetime) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = [condition.get("status") for condition in conditions if condition.get("type") == "Ready"]
    words = ["Unknown" if not ready else "Ready" if ready[0] == "True" else "NotReady"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Json, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    return ",".join(sorted(name.removeprefix(prefix) for name in labels if name.startswith(prefix))) or "<none>"


def _node_address(kind: str) -> Callable[[Json, datetime], str]:
    def cell(node: Json, _now: datetime) -> str:
        addresses = (node.get("status") or {}).get("addresses") or ()
        return next((str(item.get("address")) for item in addresses if item.get("type") == kind), "<none>")

    return cell


def _event_last_seen(event: Json, time: datetime) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    # Events of the new API have a series, those of the old one a timestamp and a count.
    return _since(series or event.get("lastTimestamp") or event.get("eventTime"), time)


def _event_first_seen(event: Json, time: datetime) -> str:
    return _since(event.get("firstTimestamp") or event.get("eventTime"), time)


def _event_object(event: Json, _now: datetime) -> str:
    involved = event.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _event_source(event: Json, _now: datetime) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    return f"{component}, {source['host']}" if source.get("host") else component


def _event_count(event: Json, _now: datetime) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def _ready_of_wanted(workload: Json, _now: datetime) -> str:
    ready = (workload.get("status") or {}).get("readyReplicas", 0)
    return f"{ready}/{(workload.get('spec') or {}).get('replicas', 1)}"


def _job_status(job: Json, _now: datetime) -> str:
    conditions = (job.get("status") or {}).get("conditions") or ()
    end_types = [condition["type"] for condition in conditions if condition.get("type") in ("Complete", "Failed")]
    if not end_types and (job.get("spec") or {}).get("suspend"):
        return "Suspended"
    return end_types[0] if end_types else "Running"


def _job_completions(job: Json, _now: datetime) -> str:
    spec, successes = job.get("spec") or {}, (job.get("status") or {}).get("succeeded", 0)
    return f"{successes}/{spec.get('completions') or '1 of ' + str(spec.get('parallelism', 1))}"


def _job_duration(job: Json, time: datetime) -> str:
    status = job.get("status") or {}
    if "startTime" not in status:
        return ""
    end = status.get("completionTime")
    return _since(status["startTime"], _moment(end) if end else time)


def _node_selector(daemon_set: Json, _now: datetime) -> str:
    selector = mapping_at(daemon_set, "spec", "template", "spec", "nodeSelector")
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or "<none>"


def _claim_state(claim: Json, _now: datetime) -> str:
    status, is_deleted = claim.get("status") or {}, "deletionTimestamp" in claim["metadata"]
    states = {
        "deleted": is_deleted,
        "pending": not is_deleted and not status.get("allocation"),
        "allocated": status.get("allocation"),
        "reserved": status.get("allocation") and status.get("reservedFor"),
    }
    return ",".join(name for name, holds in states.items() if holds)


_NAME = Column("Name", _field("metadata.name"))
_AGE = Column("Age", _age)
_NAME_AND_AGE = (_NAME, _AGE)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        _NAME,
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _pod_restarts),
        _AGE,
        Column("IP", _field("status.podIP"), 1),
        Column("Node", _field("spec.nodeName"), 1),
        Column("Nominated Node", _field("status.nominatedNodeName"), 1),
        Column("Readiness Gates", _field("status.readinessGates"), 1),
    ),
    "nodes": (
        _NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        _AGE,
        Column("Version", _field("status.nodeInfo.kubeletVersion", "")),
        Column("Internal-IP", _node_address("InternalIP"), 1),
        Column("External-IP", _node_address("ExternalIP"), 1),
        Column("OS-Image", _field("status.nodeInfo.osImage", "<unknown>"), 1),
        Column("Kernel-Version", _field("status.nodeInfo.kernelVersion", "<unknown>"), 1),
        Column("Container-Runtime", _field("status.nodeInfo.containerRuntimeVersion", "<unknown>"), 1),
    ),
    "events": (
        Column("Last Seen", _event_last_seen),
        Column("Type", _field("type", "")),
        Column("Reason", _field("reason", "")),
        Column("Object", _event_object),
        Column("Subobject", _field("involvedObject.fieldPath", ""), 1),
        Column("Source", _event_source, 1),
        Column("Message", _field("message", "")),
        Column("First Seen", _event_first_seen, 1),
        Column("Count", _event_count, 1, "integer"),
        Column("Name", _field("metadata.name"), 1),
    ),
    "namespaces": (_NAME, Column("Status", _field("status.phase", "")), _AGE),
    "priorityclasses.scheduling.k8s.io": (
        _NAME,
        Column("Value", _field("value", 0), type="integer"),
        Column("Global-Default", _field("globalDefault", False), type="boolean"),
        _AGE,
        Column("PreemptionPolicy", _field("preemptionPolicy", "")),
    ),
    "poddisruptionbudgets.policy": (
        _NAME,
        Column("Min Available", _field("spec.minAvailable", "N/A")),
        Column("Max Unavailable", _field("spec.maxUnavailable", "N/A")),
        Column("Allowed Disruptions", _field("status.disruptionsAllowed", 0), type="integer"),
        _AGE,
    ),
    "deployments.apps": (
        _NAME,
        Column("Ready", _ready_of_wanted),
        Column("Up-to-date", _field("status.updatedReplicas", 0), type="integer"),
        Column("Available", _field("status.availableReplicas", 0), type="integer"),
        _AGE,
    ),
    "replicasets.apps": (
        _NAME,
        Column("Desired", _field("spec.replicas", 1), type="integer"),
        Column("Current", _field("status.replicas", 0), type="integer"),
        Column("Ready", _field("status.readyReplicas", 0), type="integer"),
        _AGE,
    ),
    "statefulsets.apps": (_NAME, Column("Ready", _ready_of_wanted), _AGE),
    "daemonsets.apps": (
        _NAME,
        Column("Desired", _field("status.desiredNumberScheduled", 0), type="integer"),
        Column("Current", _field("status.currentNumberScheduled", 0), type="integer"),
        Column("Ready", _field("status.numberReady", 0), type="integer"),
        Column("Up-to-date", _field("status.updatedNumberScheduled", 0), type="integer"),
        Column("Available", _field("status.numberAvailable", 0), type="integer"),
        Column("Node Selector", _node_selector),
        _AGE,
    ),
    "jobs.batch": (
        _NAME,
        Column("Status", _job_status),
        Column("Completions", _job_completions),
        Column("Duration", _job_duration),
        _AGE,
    ),
    "resourceclaims.resource.k8s.io": (_NAME, Column("State", _claim_state), _AGE),
    "resourceslices.resource.k8s.io": (
        _NAME,
        Column("Node", _field("spec.nodeName", "")),
        Column("Driver", _field("spec.driver", "")),
        Column("Pool", _field("spec.pool.name", "")),
        _AGE,
    ),
    "leases.coordination.k8s.io": (_NAME, Column("Holder", _field("spec.holderIdentity", "")), _AGE),
}
