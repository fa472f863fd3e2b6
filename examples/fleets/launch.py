"""Launches a job in the cluster that takes it whole, as launchers for many clusters may: the clusters are contexts.

python launch.py job.yaml http://127.0.0.1:8090 kubectl
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen


def cluster_for(workload: bytes, podium: str) -> str:
    """Return the cluster to launch in. Raises: SystemExit: no cluster takes the whole job now."""
    with urlopen(Request(f"{podium}/fit?most=1", workload), timeout=10) as response:
        answer = json.load(response)
    if answer["best"] is None:
        reasons = [f"{cluster['cluster']}: {cluster['reason']}" for cluster in answer["rejected"]]
        sys.exit("\n".join([*reasons, *(f"{name}: {reason}" for name, reason in answer["without"].items())]))
    return str(answer["best"])


def main(job: str, podium: str, *kubectl: str) -> None:
    """Choose, then launch."""
    cluster = cluster_for(Path(job).read_bytes(), podium)
    print(f"{job}: {cluster}", flush=True)
    subprocess.run([*kubectl, "--context", cluster, "apply", "-f", job], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
