import json
from pathlib import Path

import pytest
import yaml

from podium.config import ConfigError, load, load_file

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SECOND = f"{HEAD}profiles: [{{schedulerName: second}}]\n"


def config_map(name="scheduler-config", namespace="kube-system", **data):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _place(key, name="kube-system/scheduler-config"):
    return f"ConfigMap {name}: data[{key}]"


def _names(text):
    return [profile.scheduler_name for profile in load(text, "f").config.profiles]


@pytest.mark.parametrize("form", [yaml.safe_dump, json.dumps, lambda document: json.dumps(document, indent=2)])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda config_map: config_map,
        lambda config_map: {"apiVersion": "v1", "kind": "List", "items": [config_map]},
        lambda config_map: {"apiVersion": "v1", "kind": "ConfigMapList", "items": [config_map]},
    ],
)
def test_a_config_map_stands_for_the_configuration_in_it(form, wrap):
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    for content in (SECOND, json.dumps({**head, "profiles": [{"schedulerName": "second"}]})):
        assert _names(form(wrap(config_map(**{"config.yaml": content})))) == ["second"]


def test_the_objects_around_a_config_map_are_ignored():
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "second"}}
    second_map = config_map("other", **{"a.properties": "kind: of"})
    documents = [account, config_map(**{"config.yaml": SECOND, "notes": "for whom it may concern"}), second_map, None]
    assert _names(yaml.safe_dump_all(documents)) == ["second"]


def test_errors_name_the_key_and_the_line_in_it():
    text = yaml.safe_dump(config_map(**{"config.yaml": f"{HEAD}parallelism: five\n"}))
    with pytest.raises(ConfigError) as error:
        load(text, "f")
    (line,) = error.value.lines()
    assert line.startswith("f: ConfigMap kube-system/scheduler-config: data[config.yaml]:3: parallelism: ")


@pytest.mark.parametrize(
    ("documents", "error"),
    [
        (
            [config_map(**{"a.yaml": SECOND, "b.yaml": HEAD})],
            f"f: expected one KubeSchedulerConfiguration, found 2: {_place('a.yaml')}, {_place('b.yaml')}: give a file",
        ),
        (
            [config_map(a=SECOND), config_map("other", b=HEAD)],
            f"f: expected one KubeSchedulerConfiguration, found 2: {_place('a')}, {_place('b', 'kube-system/other')}: ",
        ),
        (
            [config_map(a="1", b="2")],
            f"f: no key of a ConfigMap holds a KubeSchedulerConfiguration: there are {_place('a')}, {_place('b')}",
        ),
        (
            [config_map(a="profiles: []")],
            'f: ConfigMap kube-system/scheduler-config: data[a]: apiVersion: Required value: expected "kubescheduler',
        ),
        ([config_map()], 'f:1: apiVersion: Unsupported value: "v1"'),
    ],
    ids=["two keys", "two maps", "none", "no kind", "empty"],
)
def test_several_configurations_or_none_are_refused_by_name(documents, error):
    with pytest.raises(ConfigError) as failure:
        load(yaml.safe_dump_all(documents), "f")
    assert str(failure.value).startswith(error)


def test_a_configuration_that_mentions_config_maps_is_read_as_it_is(tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(f"{SECOND}# kind: ConfigMap\n---\n{yaml.safe_dump(config_map(a=HEAD))}")
    configuration = load_file(path)
    assert configuration.config.profiles[0].scheduler_name == "second"
    assert configuration.warnings == ("only the first of 2 YAML documents is read",)
