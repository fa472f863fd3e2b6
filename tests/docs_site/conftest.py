from pathlib import Path

import pytest

from tests.control_plane.requirement import built_or_skipped
from tests.docs_site import site


@pytest.fixture(scope="session")
def built_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once from this clone without a warning; a process of its own keeps MkDocs' imports to itself."""
    folder = tmp_path_factory.mktemp("site")
    built_or_skipped(request.config, "site of the documentation", lambda _: site.build_apart(folder / "docs"))
    return folder / "docs"
