"""podium: a Kubernetes scheduler in Python that decides as kube-scheduler does, with policy in one file.

`podium.Cluster` is the library: a cluster that can be asked and changed without an API server. `podium.Clusters` are
several, over which a workload is divided.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.engine import Placement as Placement
    from podium.library import Cluster as Cluster
    from podium.library import Clusters as Clusters

__version__ = "0.6.0"


def __getattr__(name: str) -> Any:
    """Load the library when it is first named: commands that do not need it start faster."""
    if name == "Cluster":
        from podium.library import Cluster

        return Cluster
    if name == "Clusters":
        from podium.library import Clusters

        return Clusters
    if name == "Placement":
        from podium.engine import Placement

        return Placement
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
