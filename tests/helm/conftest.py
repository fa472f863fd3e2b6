"""helm, built from its Go module."""

from __future__ import annotations

import functools

import pytest

from tests.control_plane.requirement import built_or_skipped
from tests.go_tools.binaries import HELM, obtain
from tests.helm.chart import Helm


@pytest.fixture(scope="session")
def helm(pytestconfig: pytest.Config) -> Helm:
    return Helm(built_or_skipped(pytestconfig, "helm", functools.partial(obtain, HELM)))
