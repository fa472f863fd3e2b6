"""Does what the API server does to pods and claims on their creation, beyond the defaults of their types.

Owns: the admission plugins that change objects, those that refuse them, and what the registry of pods fills in. Must
never: change a stored object.
"""

from podium.sandbox.admission.admission import demand_allowed, fill_in
from podium.sandbox.admission.lookup import Lookup
from podium.sandbox.admission.pods import admit_pod_update

__all__ = ["Lookup", "admit_pod_update", "demand_allowed", "fill_in"]
