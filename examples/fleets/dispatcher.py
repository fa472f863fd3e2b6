"""A dispatcher for MultiKueue: nominates the clusters that take a Workload whole, the emptiest first.

Kueue's configuration says `multiKueue: {dispatcherName: podium}`; `kubectl proxy` serves its API server at API.

python dispatcher.py http://127.0.0.1:8001 http://127.0.0.1:8090
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any
from urllib.request import Request, urlopen

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1"
CLUSTERS_MAX = 3
EVERY_S = 2.0


def call(url: str, method: str = "GET", value: Any = None) -> Any:
    """Ask an API for JSON."""
    body = None if value is None else json.dumps(value).encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with urlopen(Request(url, body, {"Content-Type": kind}, method=method), timeout=10) as response:
        return json.load(response)


def waits(workload: dict[str, Any]) -> bool:
    """Return whether MultiKueue waits for clusters to be nominated."""
    status = workload.get("status") or {}
    has_quota = any(
        condition["type"] == "QuotaReserved" and condition["status"] == "True"
        for condition in status.get("conditions", ())
    )
    is_checked = any(check["state"] == "Pending" for check in status.get("admissionChecks", ()))
    return has_quota and is_checked and not status.get("clusterName") and not status.get("nominatedClusterNames")


def dispatch(api: str, podium: str) -> None:
    """Nominate clusters for each Workload that waits. One that fits nowhere waits on."""
    for workload in call(f"{api}{WORKLOADS}/workloads")["items"]:
        if not waits(workload):
            continue
        question = {**workload, "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload"}
        answer = call(f"{podium}/fit?most={CLUSTERS_MAX}", "POST", question)
        metadata = workload["metadata"]
        names = [cluster["cluster"] for cluster in answer["fits"]]
        print(metadata["namespace"], metadata["name"], names or answer["rejected"], flush=True)
        if names:
            path = f"{WORKLOADS}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}/status"
            call(f"{api}{path}", "PATCH", {"status": {"nominatedClusterNames": names}})


if __name__ == "__main__":
    while True:
        dispatch(*sys.argv[1:])
        time.sleep(EVERY_S)
