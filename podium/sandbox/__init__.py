"""The embedded API server: enough of the Kubernetes REST API, from memory, on loopback.

Owns: its own resource table, store, patches, watches, faults, stand-in kubelets, and sample objects to fill a cluster.
Must never: import the code that it tests. Its behaviour is no evidence of how real clusters behave.
"""

from podium.sandbox.embedded import Sandbox
from podium.sandbox.errors import ApiError
from podium.sandbox.faults import Faults
from podium.sandbox.serve import serve
from podium.sandbox.store import Store

__all__ = ["ApiError", "Faults", "Sandbox", "Store", "serve"]
