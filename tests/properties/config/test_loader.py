"""A configuration is good, or refused with a reason, whatever is in it."""

import gzip
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.config import (
    ConfigError,
    load,
)

SEEDS = [
    json.loads(line)["yaml"]
    for line in gzip.decompress(
        (Path(__file__).parents[2] / "parity" / "data" / "config-1.36.2.jsonl.gz").read_bytes()
    ).splitlines()
]
SCRAPS = [
    "null",
    "[]",
    "{}",
    "-1",
    "1.5",
    "'x'",
    "[1]",
    "{a: 1}",
    "*",
    "9999999999999999999999",
    "\n",
    "  ",
    ": ",
    "- ",
]


def _outcome(text):
    """The profiles of a good file, the messages of a refused one."""
    try:
        return load(text).config.profiles
    except ConfigError as refusal:
        return [error.text for error in refusal.errors if error.text]


@settings(max_examples=300)
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.floats(0, 1), st.sampled_from(SCRAPS), st.integers(0, 12))))
def test_mutated_file_is_good_or_refused_and_never_crashes(text, mutations):
    for place, scrap, cut in mutations:
        at = int(place * len(text))
        text = text[:at] + scrap + text[at + cut :]
    assert _outcome(text)


KEYS = [
    "profiles",
    "plugins",
    "pluginConfig",
    "name",
    "args",
    "score",
    "multiPoint",
    "enabled",
    "disabled",
    "weight",
    "extenders",
    "managedResources",
    "tlsConfig",
    "leaderElection",
    "clientConnection",
    "addedAffinity",
    "scoringStrategy",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "preference",
    "defaultConstraints",
    "resources",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "*", "1s", "In", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=3,
        )
    ),
    max_leaves=20,
)


def _in_args(plugin, args):
    return {"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}


@settings(max_examples=300)
@given(
    VALUES.filter(lambda value: isinstance(value, dict))
    | st.builds(_in_args, st.sampled_from(["NodeAffinity", "NodeResourcesFit", "PodTopologySpread"]), VALUES)
)
def test_any_object_is_good_or_refused_and_never_crashes(value):
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    assert _outcome(json.dumps(head | value))
