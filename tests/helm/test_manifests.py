"""The plain manifests in deploy/ are what the chart renders."""

from __future__ import annotations

import pytest

from tests.helm.chart import Helm
from tests.helm.manifests import DEPLOY, rendered

pytestmark = pytest.mark.control_plane


def test_the_plain_manifests_are_rendered_from_the_chart(helm: Helm) -> None:
    expected = dict(rendered(helm))
    # These are not in the chart, and have tests of their own.
    others = [DEPLOY / each for each in ("helm", "shadow")]
    paths = (path for path in DEPLOY.rglob("*.yaml") if not any(map(path.is_relative_to, others)))
    found = {path: path.read_text() for path in paths}
    assert found == expected, "python -m tests.helm renders them"
