"""What files and directories stand for, and which of two objects counts."""

import gzip
import json

import pytest

from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.object_files import objects_of, read_file, sources_of, unique
from tests.manifests import node, pod


class _Folder:
    def __init__(self, path):
        self.path = path
        self.notes = []

    def put(self, name, *objects, text=None):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if text is not None else "\n---\n".join(json.dumps(item) for item in objects))
        return path

    def read(self, *names):
        self.notes = []
        sources = sources_of([str(path) for path in names or (self.path,)], read_file, self.notes.append)
        return objects_of(sources, self.notes.append)

    def names(self):
        return [item.manifest["metadata"]["name"] for item in self.read()]


@pytest.fixture
def folder(tmp_path):
    return _Folder(tmp_path / "dump")


def test_a_directory_is_read_with_those_below_it_in_order_of_paths(folder):
    folder.put("b.yaml", pod("b"))
    folder.put("a/z.json", pod("az"))
    folder.put("a/c/d.yml", pod("acd"))
    (folder.path / "c.yaml.gz").write_bytes(gzip.compress(json.dumps(pod("c")).encode()))
    folder.put("d.jsonl", text="".join(json.dumps(pod(name)) + "\n" for name in ("d1", "d2")))
    folder.put("README.md", text="not {read")
    assert folder.names() == ["acd", "az", "b", "c", "d1", "d2"]
    assert folder.notes == []


def test_links_are_followed_but_a_directory_is_entered_only_once(folder):
    folder.put("..2026/nodes.yaml", node("n1"))
    (folder.path / "..data").symlink_to("..2026")
    (folder.path / "nodes.yaml").symlink_to("..data/nodes.yaml")
    (folder.path / "itself").symlink_to(folder.path)
    assert folder.names() == ["n1"]
    assert folder.notes == []


def test_hidden_files_are_named_and_read_only_if_they_are_given_by_name(folder):
    folder.put("a.yaml", pod("a"))
    hidden = folder.put(".b.yaml", pod("b"))
    within = folder.put(".old/c.yaml", pod("c"))
    folder.put(".git/config", text="[core]")
    assert folder.names() == ["a"]
    assert folder.notes == [
        f"{path}: left out, because it is hidden; name it to have it read" for path in (hidden, within)
    ]
    assert [item.manifest["metadata"]["name"] for item in folder.read(hidden)] == ["b"]


@pytest.mark.parametrize("name", ["empty", "other"])
def test_a_directory_without_files_to_read_is_refused(name, folder):
    folder.put("other/notes.txt", text="")
    (folder.path / "empty").mkdir()
    with pytest.raises(ManifestError, match=rf"{name}: no file below this directory ends with \.yaml, \.yml, \.json"):
        folder.read(folder.path / name)


@pytest.mark.parametrize(
    ("text", "text_part"),
    [
        ("replicas: 3\nimage: {tag: v1}\n", "document 1: kind: required"),
        ("- a\n- b\n", "document 1: expected an object, got an array"),
        ("- {hosts: all, tasks: []}\n", "document 1: expected an object, got an array"),
        ("hello\n", "document 1: expected an object, got the value 'hello'"),
        ("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", "give it with --config"),
        ("apiVersion: v1\nkind: Config\nclusters: []\n", "give it with --kubeconfig"),
    ],
    ids=["values", "list", "playbook", "text", "configuration", "kubeconfig"],
)
def test_files_without_objects_are_left_out_of_a_directory_and_refused_by_name(text, text_part, folder):
    folder.put("a.yaml", pod("a"))
    path = folder.put("other.yaml", text=text)
    assert folder.names() == ["a"]
    (note,) = folder.notes
    assert note.startswith(f"{path}: ")
    assert text_part in note
    assert note.endswith(": left out, because it is not an object of a cluster")
    with pytest.raises(ManifestError):
        folder.read(path)


def test_a_broken_file_of_a_directory_is_refused(folder):
    folder.put("a.yaml", pod("a"))
    path = folder.put("b.yaml", text="apiVersion: v1\nkind: [")
    with pytest.raises(ManifestError, match=rf"^{path}: line 3: "):
        folder.read()
    folder.put("b.yaml", text="apiVersion: v1\nmetadata: {name: b}\n")
    with pytest.raises(ManifestError, match=rf"^{path}: document 1: kind: required"):
        folder.read()
    folder.put("b.yaml", text="apiVersion: v1\nkind: List\nitems: [null]\n")
    with pytest.raises(ManifestError, match=rf"^{path}: document 1: items\[0\]: expected an object, got null"):
        folder.read()


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_kustomization_that_changes_objects_is_refused_with_what_to_do(name, folder):
    folder.put("web.yaml", pod("web"))
    path = folder.put(name, text="namePrefix: a-\nresources: [web.yaml]\n")
    for target in (path, folder.path):
        with pytest.raises(ManifestError, match=f"^{path}: this is a kustomization, ") as error:
            folder.read(target)
        assert str(error.value).endswith(f"kubectl kustomize {folder.path} | podium COMMAND -f -")


def test_a_kustomization_that_only_lists_files_beside_it_is_left_out(folder):
    folder.put("web.yaml", pod("web"))
    path = folder.put("kustomization.yaml", text="kind: Kustomization\nresources: [web.yaml]\n")
    assert folder.names() == ["web"]
    assert folder.notes == [
        f"{path}: left out: this kustomization changes no object, so the files beside it are read as they are"
    ]
    for elsewhere in ("../base", "github.com/example/base?ref=v1", "https://example.com/web.yaml"):
        folder.put("kustomization.yaml", text=f"resources: [web.yaml, '{elsewhere}']\n")
        with pytest.raises(ManifestError, match="this is a kustomization"):
            folder.read()


@pytest.mark.parametrize(
    "text",
    [
        "{{- if .Values.enabled }}\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\n{{- end }}\n",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}-web\n",
        'apiVersion: v1\nkind: Pod\nmetadata:\n  name: "{{ .Release.Name }}-web"\n',
        'apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels:\n    {{- include "labels" . | nindent 4 }}\n',
    ],
    ids=["if", "name", "quoted", "include"],
)
def test_a_template_of_helm_is_named_with_what_to_do(text, folder):
    path = folder.put("templates/web.yaml", text=text)
    for target in (path, folder.path):
        with pytest.raises(ManifestError, match=f"^{path}: ") as error:
            folder.read(target)
        assert "template, such as those of Helm: give what it makes, such as helm template CHART | podium" in str(
            error.value
        )


def test_a_chart_of_helm_is_named_with_its_directory(folder):
    path = folder.put("Chart.yaml", text="apiVersion: v2\nname: web\nversion: 1.0.0\n")
    folder.put("values.yaml", text="replicas: 3\n")
    with pytest.raises(ManifestError, match=f"^{path}: this describes a chart of Helm") as error:
        folder.read()
    assert str(error.value).endswith(f"helm template {folder.path} | podium COMMAND -f -")


def test_templates_that_objects_hold_as_text_are_none_of_helm(folder):
    rule = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"t": "{{ .Labels.a }}"}}
    folder.put("a.yaml", rule)
    assert folder.names() == ["m"]


def test_the_last_of_several_objects_of_one_name_counts_and_is_named(folder):
    first = folder.put("a.yaml", node("n1", cpu="1"), pod("web"))
    last = folder.put(
        "b.yaml", node("n1", cpu="2"), pod("web"), {**pod("web"), "metadata": {"name": "web", "namespace": "shop"}}
    )
    items = {item.location: item.manifest for item in folder.read()}
    assert {where: manifest["metadata"]["name"] for where, manifest in items.items()} == {
        f"{last}: document 1": "n1",
        f"{last}: document 2": "web",
        f"{last}: document 3": "web",
    }
    note = f"{last}: document 1: Node n1: is there with other contents in {first}: document 1"
    assert folder.notes == [f"{note}; the last one counts, which is this one"]


def test_a_kind_of_another_group_is_another_object(folder):
    job = {"kind": "Job", "metadata": {"name": "train"}}
    folder.put("a.yaml", {**job, "apiVersion": "batch/v1"}, {**job, "apiVersion": "batch.volcano.sh/v1alpha1"})
    assert folder.names() == ["train", "train"]
    assert folder.notes == []


def test_objects_that_have_only_a_prefix_get_names_that_differ():
    waits = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}}
    second_prefix = {**waits, "metadata": {"generateName": "web-", "namespace": "shop"}}
    items = [LocatedManifest(waits, "a"), LocatedManifest(waits, "b"), LocatedManifest(second_prefix, "c")]
    names = [item.manifest["metadata"]["name"] for item in unique(items, lambda _: None)]
    assert len(set(names)) == 3
    assert names == [item.manifest["metadata"]["name"] for item in unique(items, lambda _: None)]
