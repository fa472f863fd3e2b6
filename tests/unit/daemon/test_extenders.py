from __future__ import annotations

import pytest

from podium.config import Extender, ExtenderTLSConfig, KubeSchedulerConfiguration, effective
from podium.daemon.extenders import json_to_keep, without_secrets
from podium.objects.objects_with_json import node_with_json, pending_pod_with_json, pod_with_json
from podium.objects.resource_types import NODES, PODS

PENDING = {PODS.path: pending_pod_with_json}
NODES_TOO = {NODES.path: node_with_json, **PENDING}


@pytest.mark.parametrize(
    ("extenders", "is_kept"),
    [
        ([], {}),
        ([Extender("http://x", bind_verb="bind")], {}),
        ([Extender("http://x", filter_verb="filter", node_cache_capable=True)], PENDING),
        ([Extender("http://x", preempt_verb="preempt", node_cache_capable=True)], PENDING),
        ([Extender("http://x", filter_verb="filter")], NODES_TOO),
        ([Extender("http://x", prioritize_verb="prioritize")], NODES_TOO),
        ([Extender("http://x", preempt_verb="preempt")], {PODS.path: pod_with_json}),
        (
            [Extender("http://x", preempt_verb="preempt"), Extender("http://y", filter_verb="filter")],
            {NODES.path: node_with_json, PODS.path: pod_with_json},
        ),
    ],
)
def test_objects_are_kept_whole_as_far_as_extenders_are_sent_them(extenders, is_kept):
    assert json_to_keep(extenders) == is_kept


def test_keys_and_passwords_are_not_shown():
    tls = ExtenderTLSConfig(cert_data="public", key_data="c2VjcmV0")
    extender = Extender("https://ann:hidden@host/path", tls_config=tls)
    settings = effective(without_secrets(KubeSchedulerConfiguration(extenders=(extender, Extender("http://y")))))
    first, second = settings["extenders"]
    assert (first["urlPrefix"], second["urlPrefix"]) == ("https://host/path", "http://y")
    assert (first["tlsConfig"]["certData"], first["tlsConfig"]["keyData"]) == ("public", "(not shown)")
