"""What a forecast says of a plain pod by its moments is what another rehearsal with the pod says."""

from __future__ import annotations

from collections import Counter
from random import Random

from podium.engine.files import LocatedManifest
from podium.insight.cluster import Cluster
from podium.insight.forecast import Forecast, outlook_of
from podium.insight.outlook import PodOutlook
from tests import manifests
from tests.manifests import HOSTNAME
from tests.outlook.clusters import waiting_cluster
from tests.virtual_time import START_S

_SEEDS = range(1, 16)


def _essence(answer: PodOutlook) -> tuple[object, ...]:
    return answer.verdict, answer.node, answer.by, [end.pod for end in answer.ends], answer.ahead


def test_a_plain_pod_is_answered_as_by_a_rehearsal_with_it() -> None:
    answers: Counter[str] = Counter()
    for seed in _SEEDS:
        random = Random(seed)
        cluster = Cluster.load(waiting_cluster(seed).objects)
        forecast = Forecast(cluster, START_S)
        for cpu in ("300m", "900m", "1900m", "3500m", "9"):
            selector = random.choice(({}, {HOSTNAME: "node-0"}))
            # Of the least priority there is, so that it preempts nobody, or without the right to.
            fields = random.choice(({"priority": -1000}, {"priority": 0, "preemptionPolicy": "Never"}))
            new_pod = manifests.pod("new", cpu, scheduler=None, nodeSelector=selector, **fields)
            objects = [LocatedManifest(new_pod, "new")]
            (played,) = outlook_of(cluster, objects, START_S, fix=False).pods
            (answer,) = outlook_of(cluster, objects, START_S, fix=False, forecast=forecast).pods
            assert _essence(answer) == _essence(played), (seed, cpu, fields, selector)
            answers[f"{answer.verdict.value} {bool(answer.by)}"] += 1
    assert min(answers["now False"], answers["later True"], answers["later False"], answers["never False"]) > 2
