"""Questions asked of the engine without a cluster: where would this pod go, and why?

Owns reading objects as they lie in files, and the world that stands still around them. Decides nothing itself: every
answer comes from the plugins and the steps that the daemon runs. Never talks to an API server.
"""

from podium.whatif.answers import answer_one_pod
from podium.whatif.cluster import StillCluster
from podium.whatif.errors import ManifestError, WhatIfError
from podium.whatif.evaluate import Evaluator, Scenario
from podium.whatif.manifests import Manifest, read_manifest
from podium.whatif.question import PodAnswer, Question
from podium.whatif.world import World

__all__ = [
    "Evaluator",
    "Manifest",
    "ManifestError",
    "PodAnswer",
    "Question",
    "Scenario",
    "StillCluster",
    "WhatIfError",
    "World",
    "answer_one_pod",
    "read_manifest",
]
