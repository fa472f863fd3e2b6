"""Makes a table of the feasible nodes' scores, with a column for each plugin."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.insight.asked_pod import as_pending
from podium.insight.why import scores_of
from podium.objects.core import Pod


def score_table(cluster: Cluster, pod: Pod) -> np.recarray[Any, Any]:
    """Return one record for each feasible node: `node`, `total`, and each plugin's weighted score.

    Raises:
        ScheduleError: a plugin failed, or there is no node.

    Shape: the winner first, then by total score.
    """
    world, candidate = as_pending(cluster, pod)
    scores = scores_of(world.evaluate(candidate))
    plugins = list(scores[0].plugins) if scores else []
    length = max((len(score.node) for score in scores), default=1)
    kinds = [("node", f"U{length}"), ("total", "i8"), *((name, "i8") for name in plugins)]
    table = np.zeros(len(scores), kinds).view(np.recarray)
    for index, score in enumerate(scores):
        table[index] = (score.node, score.total, *(score.plugins[name] for name in plugins))
    return table


def data_frame(table: np.recarray[Any, Any]) -> Any:
    """Return the table as a DataFrame with the nodes as its index.

    Raises:
        ClusterError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ClusterError("a DataFrame needs pandas: pip install 'podium[notebook]'") from error
    return pd.DataFrame.from_records(table, index="node")
