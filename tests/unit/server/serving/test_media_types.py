from __future__ import annotations

import pytest

from podium.server.serving.media_types import prefers_open_metrics

OPEN = "application/openmetrics-text"


@pytest.mark.parametrize(
    ("accept", "prefers"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        (OPEN, True),
        (f"{OPEN}; version=1.0.0; charset=utf-8", True),
        (f"{OPEN};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        (f"{OPEN};version=1.0.0;q=0.5,text/plain;q=0.9", False),
        (f"{OPEN};version=9.0.0", False),
        (f"{OPEN};q=0", False),
        (f"{OPEN};q=much", False),
        (f"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;q=0.6,{OPEN};q=0.5", True),
    ],
)
def test_open_metrics_are_for_whoever_prefers_them(accept: str, prefers: bool) -> None:
    assert prefers_open_metrics(accept) is prefers
