"""Who bound what, by the API server's audit log, and every change, by etcd's own watch."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
import anyio
import yaml

from tests.shard_kills.ledger import BindingRequest, Change

_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/binding"]}]},
        {"level": "None"},
    ],
}
_FIRST, _END = b"/registry/leases/", b"/registry/pods0"
"""Leases, pods, and what little lies between them."""
_RECONNECT_S: Final = 0.1


def server_flags(directory: Path) -> tuple[str, ...]:
    """Return flags of an API server that logs bindings in this directory, and whose history etcd keeps as JSON."""
    policy = directory / "audit.yaml"
    policy.write_text(yaml.safe_dump(_POLICY))
    return (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={audit_log(directory)}",
        "--storage-media-type=application/json",
        "--etcd-compaction-interval=0",
    )


def audit_log(directory: Path) -> Path:
    """Return the file that `server_flags` has the API server write."""
    return directory / "audit.log"


def binding_requests(log: Path) -> tuple[dict[str, BindingRequest], int]:
    """Return the request that bound each pod, and how many others were refused.

    Raises: AssertionError if a pod was bound twice.
    """
    requests: dict[str, BindingRequest] = {}
    refusals = 0
    for line in log.read_text().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # The API server was killed as it wrote it.
        if entry["responseStatus"]["code"] != 201:
            refusals += 1
            continue
        name = entry["objectRef"]["name"]
        received_s = datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
        assert name not in requests, f"{name} was bound twice"
        requests[name] = BindingRequest(entry["user"]["username"].rpartition(":")[2], received_s)
    return requests, refusals


async def etcd_changes(address: str) -> AsyncIterator[Change]:
    """Yield every change from the first one on, whatever happens to etcd and the API server meanwhile."""
    revision = 0
    async with aiohttp.ClientSession(read_bufsize=2**22, timeout=aiohttp.ClientTimeout(total=None)) as session:
        while True:
            request = {"key": _text(_FIRST), "range_end": _text(_END), "start_revision": revision + 1}
            try:
                async with session.post(f"http://{address}/v3/watch", json={"create_request": request}) as answer:
                    async for line in answer.content:
                        for change in _changes(json.loads(line)):
                            yield change
                            revision = change.revision
            except aiohttp.ClientError:
                await anyio.sleep(_RECONNECT_S)


def _changes(message: dict[str, Any]) -> list[Change]:
    changes = []
    for event in message["result"].get("events", ()):
        entry = event["kv"]
        value = None if event.get("type") == "DELETE" else json.loads(base64.b64decode(entry["value"]))
        changes.append(Change(int(entry["mod_revision"]), base64.b64decode(entry["key"]).decode(), value))
    return changes


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()
