"""One cluster in memory, and one way to place a pod on it.

Owns `Cluster`, the library behind every question (`podium.Cluster`), reading objects as they lie in files, and the
steps from a decision to a pod that counts on its node. Never does I/O besides reading a file it is given, and never
reads the machine's clock: plugins get stand-ins that refuse to write.
"""

from podium.engine.cluster import Cluster, Placement
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.evaluation import Evaluation

__all__ = ["Cluster", "ClusterError", "Evaluation", "ManifestError", "Placement"]
