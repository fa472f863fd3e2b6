from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from podium.framework import ScorePlugin
from podium.plugins import IN_TREE
from podium.plugins.loading.discovery import ENTRY_POINT_GROUP, DiscoveryError, discover, load

GOOD = """
from podium.framework import ScorePlugin


class Flat(ScorePlugin):
    def score(self, state, pod, node):
        return 1
"""


class Installed(ScorePlugin):
    def score(self, state: object, pod: object, node: object) -> int:
        return 2


@pytest.fixture
def plugin_file(tmp_path: Path) -> Path:
    path = tmp_path / "flat.py"
    path.write_text(GOOD)
    return path


def test_a_class_in_a_file_is_found_beside_the_in_tree_plugins(plugin_file: Path) -> None:
    classes = discover([f"{plugin_file}:Flat"], installed=[])
    assert classes["Flat"].name == "Flat"
    assert set(IN_TREE) < set(classes)


def test_a_class_in_a_module_is_found() -> None:
    assert load("podium.plugins.image_locality:ImageLocality").name == "ImageLocality"


def test_an_installed_plugin_is_found_by_its_entry_point() -> None:
    entry_point = EntryPoint("installed", f"{__name__}:Installed", ENTRY_POINT_GROUP)
    classes = discover([], installed=[_Loaded(entry_point)])  # type: ignore[list-item]
    assert classes["Installed"] is Installed


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("flat.py", "expected module:Class or path/file.py:Class"),
        (":Flat", "expected module:Class or path/file.py:Class"),
        ("nowhere.py:Flat", "there is no file nowhere.py"),
        ("no.such.module:Flat", "module no.such.module fails to load: ModuleNotFoundError"),
        ("json:dumps", "--plugin json:dumps is not a plugin"),
        ("podium.framework:ScorePlugin", "is not complete: it does not define score"),
        ("podium.plugins.node_name:Flat", "no class Flat in podium.plugins.node_name; plugins there: NodeName"),
    ],
)
def test_a_reference_that_leads_to_no_plugin_is_named_with_the_reason(reference: str, says: str) -> None:
    with pytest.raises(DiscoveryError) as raised:
        load(reference)
    assert says in str(raised.value)
    assert reference in str(raised.value)


def test_a_file_that_fails_to_load_says_how(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import no_such_thing_at_all")
    with pytest.raises(DiscoveryError, match="fails to load: ModuleNotFoundError: No module named"):
        load(f"{path}:Anything")


def test_a_file_that_others_could_have_changed_is_not_run(plugin_file: Path) -> None:
    plugin_file.write_text("raise AssertionError('it was run')")
    plugin_file.chmod(0o666)
    with pytest.raises(DiscoveryError, match=r"not loaded, others could have changed it: .* written by everybody"):
        load(f"{plugin_file}:Flat")


def test_a_module_that_others_could_have_changed_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "module_of_others.py"
    path.write_text("raise AssertionError('it was run')")
    path.chmod(0o666)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(DiscoveryError, match=r"module_of_others:Flat: not loaded, others could have changed it"):
        load("module_of_others:Flat")


def test_two_plugins_of_one_name_are_refused(tmp_path: Path, plugin_file: Path) -> None:
    second_file = tmp_path / "other.py"
    second_file.write_text(GOOD)
    with pytest.raises(DiscoveryError, match="there is another plugin named Flat"):
        discover([f"{plugin_file}:Flat", f"{second_file}:Flat"], installed=[])


def test_a_plugin_may_not_take_the_name_of_an_in_tree_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(GOOD.replace("Flat", "ImageLocality"))
    with pytest.raises(DiscoveryError, match=r"another plugin named ImageLocality, podium\.plugins\.image_locality"):
        discover([f"{path}:ImageLocality"], installed=[])


class _Loaded:
    """An entry point whose module is this test's, which import does not find by name."""

    def __init__(self, entry_point: EntryPoint) -> None:
        self.value = entry_point.value

    def load(self) -> type[Installed]:
        return Installed
