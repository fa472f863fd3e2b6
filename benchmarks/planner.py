"""`python -m benchmarks.planner FILE`: podium's answer to a case of `podium plan`, and what it took, as a line of JSON.

The counterpart of the program around Karpenter in `tests/karpenter`, in the same words: the clock and the CPU time
count from when everything is read, the peak of the memory is that of the process.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue, read_catalogue
from podium.provisioner.provisioning.provisioner import plan_provisioning
from podium.provisioner.state.reading import read_objects, time_of
from podium.provisioner.state.settings import Settings


def answer(path: Path) -> dict[str, Any]:
    """Plan once. Units: dollars per hour, seconds, bytes."""
    objects, catalogue, moment = _read(path)
    gc.collect()
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    plan = plan_provisioning(objects, catalogue, Settings(), moment)
    cpu_s, wall_s = time.process_time() - began_cpu_s, time.perf_counter() - began_s
    return {
        "claims": len(plan["claims"]),
        "price": sum(claim["price"] for claim in plan["claims"]),
        "on_claims": sum(len(claim["pods"]) for claim in plan["claims"]),
        "on_nodes": sum(map(len, plan["existing"].values())),
        "errors": len(plan["errors"]),
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "peak_rss_bytes": _peak_rss_bytes(),
    }


def _peak_rss_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    # What it imports is not to count.
    from benchmarks.processor_time import peak_rss_bytes

    return peak_rss_bytes(status)


def _read(path: Path) -> tuple[ClusterObjects, Catalogue, float]:
    catalogue, question = map(json.loads, path.read_text().splitlines())
    objects = read_objects(question["objects"])
    return objects, read_catalogue(catalogue["instanceTypes"]), time_of(question["now"], "now")


if __name__ == "__main__":
    print(json.dumps(answer(Path(sys.argv[1]))))
