"""What is made from the code and from the chart is up to date."""

from __future__ import annotations

import pytest

from tests.helm import values_schema
from tests.helm.chart import Helm
from tests.helm.manifests import DEPLOY, render


def test_the_schema_of_the_values_has_the_fields_that_podium_reads() -> None:
    assert values_schema.SCHEMA.read_text() == values_schema.schema_text(), "python -m tests.helm writes it"


@pytest.mark.control_plane
def test_the_plain_manifests_are_rendered_from_the_chart(helm: Helm) -> None:
    texts = dict(render(helm))
    # These are not in the chart, and have tests of their own.
    other_folders = [DEPLOY / folder for folder in ("helm", "shadow")]
    paths = (path for path in DEPLOY.rglob("*.yaml") if not any(map(path.is_relative_to, other_folders)))
    current_texts = {path: path.read_text() for path in paths}
    assert current_texts == texts, "python -m tests.helm renders them"
