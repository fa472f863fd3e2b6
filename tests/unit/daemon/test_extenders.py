from __future__ import annotations

import pytest

from podium.config import Extender, ExtenderTLSConfig, KubeSchedulerConfiguration, effective
from podium.daemon.extenders import kept_whole, without_secrets
from podium.objects.resource_types import NODES, PODS
from podium.objects.whole_objects import whole_node, whole_pending_pod, whole_pod

PENDING = {PODS.path: whole_pending_pod}
NODES_TOO = {NODES.path: whole_node, **PENDING}


@pytest.mark.parametrize(
    ("extenders", "kept"),
    [
        ([], {}),
        ([Extender("http://x", bind_verb="bind")], {}),
        ([Extender("http://x", filter_verb="filter", node_cache_capable=True)], PENDING),
        ([Extender("http://x", preempt_verb="preempt", node_cache_capable=True)], PENDING),
        ([Extender("http://x", filter_verb="filter")], NODES_TOO),
        ([Extender("http://x", prioritize_verb="prioritize")], NODES_TOO),
        ([Extender("http://x", preempt_verb="preempt")], {PODS.path: whole_pod}),
        (
            [Extender("http://x", preempt_verb="preempt"), Extender("http://y", filter_verb="filter")],
            {NODES.path: whole_node, PODS.path: whole_pod},
        ),
    ],
)
def test_objects_are_kept_whole_as_far_as_extenders_are_sent_them(extenders, kept):
    assert kept_whole(extenders) == kept


def test_keys_and_passwords_are_not_shown():
    tls = ExtenderTLSConfig(cert_data="public", key_data="c2VjcmV0")
    extender = Extender("https://ann:hidden@host/path", tls_config=tls)
    shown = effective(without_secrets(KubeSchedulerConfiguration(extenders=(extender, Extender("http://y")))))
    first, second = shown["extenders"]
    assert (first["urlPrefix"], second["urlPrefix"]) == ("https://host/path", "http://y")
    assert (first["tlsConfig"]["certData"], first["tlsConfig"]["keyData"]) == ("public", "(not shown)")
