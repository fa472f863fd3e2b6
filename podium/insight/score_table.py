"""The scores of the nodes on which a pod fits, as a table with a column for each plugin."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.insight.asked_pod import as_pending
from podium.insight.why import scores_of
from podium.objects.core import Pod


def score_table(cluster: Cluster, pod: Pod) -> np.recarray[Any, Any]:
    """One record for each node on which the pod fits: `node`, `total`, and each plugin's weighted score.

    Raises:
        ScheduleError: a plugin failed, or there is no node.

    Shape: the winner first, then by total score.
    """
    world, asked = as_pending(cluster, pod)
    scores = scores_of(world.evaluate(asked))
    plugins = list(scores[0].plugins) if scores else []
    length = max((len(each.node) for each in scores), default=1)
    kinds = [("node", f"U{length}"), ("total", "i8"), *((name, "i8") for name in plugins)]
    table = np.zeros(len(scores), kinds).view(np.recarray)
    for at, each in enumerate(scores):
        table[at] = (each.node, each.total, *(each.plugins[name] for name in plugins))
    return table


def data_frame(table: np.recarray[Any, Any]) -> Any:
    """The table as a DataFrame with the nodes as its index.

    Raises:
        ClusterError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ClusterError("a DataFrame needs pandas: pip install 'podium[notebook]'") from error
    return pd.DataFrame.from_records(table, index="node")
