import io
from pathlib import Path

import pytest

from podium.daemon.doctor.checks import MINORS as SUPPORTED
from tests.control_plane import catalogue
from tests.control_plane.builder import BuildError
from tests.control_plane.locate import cache_root
from tests.control_plane.progress import Progress
from tests.skew.releases import CURRENT, MINORS, OF_A_RELEASE, VARIABLE, minor_of, module_of, obtain, recipe

OLDER = [minor for minor in MINORS if minor != CURRENT]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine with everything built."""
    environ = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    entries = {catalogue.cache_key(): [tool.name for tool in catalogue.TOOLS]}
    for minor in OLDER:
        entries[recipe(minor).key] = list(OF_A_RELEASE)
    for key, names in entries.items():
        entry = cache_root(environ) / key
        entry.mkdir(parents=True)
        for name in names:
            (entry / name).touch()
    return environ


def test_the_releases_are_those_that_doctor_supports() -> None:
    lowest, highest = SUPPORTED
    assert [minor_of(minor) for minor in MINORS] == [f"1.{minor}" for minor in range(lowest, highest + 1)]


@pytest.mark.parametrize("minor", MINORS)
def test_each_module_names_a_version_of_its_minor_release(minor: str) -> None:
    assert minor_of(catalogue.kubernetes_version(module_of(minor))) == minor


@pytest.mark.parametrize("minor", OLDER)
def test_each_older_release_has_a_key_and_a_stamp_of_its_version(minor: str) -> None:
    older_recipe, version = recipe(minor), catalogue.kubernetes_version(module_of(minor))
    assert older_recipe.key.startswith(f"v{version}-")
    assert set(older_recipe.packages) == set(OF_A_RELEASE)
    assert f"gitVersion=v{version}" in older_recipe.flags[-1]


def test_the_current_release_is_what_the_control_plane_builds(environ: dict[str, str]) -> None:
    binaries = obtain(Progress(stream=io.StringIO()), environ)
    assert {path.path.parent.name for path in binaries.by_name.values()} == {catalogue.cache_key()}


@pytest.mark.parametrize("minor", OLDER)
def test_an_older_release_brings_its_own_servers_and_shares_the_rest(environ: dict[str, str], minor: str) -> None:
    binaries = obtain(Progress(stream=io.StringIO()), environ | {VARIABLE: minor})
    own = {name for name in binaries.by_name if binaries[name].parent.name == recipe(minor).key}
    assert own == set(OF_A_RELEASE)
    assert binaries["etcd"].parent.name == catalogue.cache_key()


def test_a_release_that_cannot_be_built_is_refused_by_name() -> None:
    with pytest.raises(BuildError, match=r"^PODIUM_KUBERNETES=1\.2: only 1\.34, .* can be built$"):
        obtain(Progress(stream=io.StringIO()), {VARIABLE: "1.2"})
