import pytest

from podium.sandbox.store import Store


def storage_class(name, creation_time="2026-01-01T00:00:00Z", default=True, mark="storageclass"):
    annotations = {f"{mark}.kubernetes.io/is-default-class": str(default).lower()}
    metadata = {"name": name, "creationTimestamp": creation_time, "annotations": annotations}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "p"}


def claim(annotations=None, **spec):
    metadata = {"name": "data", "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("classes", "class_name"),
    [
        ([], None),
        ([storage_class("a", default=False)], None),
        ([storage_class("a"), storage_class("b", creation_time="2026-01-02T00:00:00Z")], "b"),
        ([storage_class("b"), storage_class("a")], "a"),
        ([storage_class("old", mark="storageclass.beta")], "old"),
    ],
)
def test_a_claim_without_a_class_gets_the_newest_default(store: Store, classes, class_name):
    for document in classes:
        store.put_raw(document)
    assert store.create(claim())["spec"].get("storageClassName") == class_name


@pytest.mark.parametrize(
    "manifest",
    [claim(storageClassName=""), claim(storageClassName="x"), claim({"volume.beta.kubernetes.io/storage-class": "x"})],
)
def test_a_claim_that_names_a_class_keeps_it(store: Store, manifest):
    store.put_raw(storage_class("a"))
    assert store.create(manifest)["spec"].get("storageClassName") == manifest["spec"].get("storageClassName")
