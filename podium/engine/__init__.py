"""A cluster in memory, and the one way to place a pod on it.

Owns `podium.Cluster`, reading objects from files, and the steps from a decision to a pod that counts on its node. Never
does I/O except reading a given file, and never reads the machine's clock. Plugins get stand-ins that refuse to write.
"""

from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.evaluation import Evaluation
from podium.engine.placement import Placement

__all__ = ["Cluster", "ClusterError", "Evaluation", "ManifestError", "Placement"]
