"""The library for users of Python: `podium.Cluster` with all questions, and `podium.Clusters`, and nothing else.

Owns the list of questions. Decides nothing, and does no I/O but reading given files: each method asks the package that
answers.
"""

from podium.library.cluster import Cluster
from podium.library.clusters import Clusters, Division

__all__ = ["Cluster", "Clusters", "Division"]
