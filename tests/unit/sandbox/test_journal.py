import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.errors import ApiError
from podium.sandbox.journal import ADDED, DELETED, MODIFIED, Change, Collection, Record


def write(collection, revision, name, *, delete=False):
    key = ("", name)
    previous = collection.records.get(key)
    kind = DELETED if delete else MODIFIED if previous else ADDED
    record = Record(key, {"metadata": {"name": name, "resourceVersion": str(revision)}}, revision)
    collection.commit(Change(kind, record, previous))


def test_a_cursor_reads_what_came_after_a_revision():
    collection = Collection(limit=10)
    for revision, name in enumerate("abc", start=1):
        write(collection, revision, name)
    changes = collection.changes_from(collection.cursor_after(1))
    assert [(change.type, change.revision) for change in changes] == [(ADDED, 2), (ADDED, 3)]


def test_the_history_is_bounded_and_what_is_forgotten_is_gone():
    collection = Collection(limit=5)
    for revision in range(1, 12):
        write(collection, revision, "a")
    assert collection.oldest == 5
    assert len(collection.changes_from(collection.cursor_after(5))) == 6
    with pytest.raises(ApiError) as caught:
        collection.cursor_after(4)
    assert caught.value.code == 410


def test_a_reader_that_is_too_slow_is_told_so():
    collection = Collection(limit=2)
    cursor = collection.end
    for revision in range(1, 6):
        write(collection, revision, "a")
    with pytest.raises(ApiError) as caught:
        collection.changes_from(cursor)
    assert caught.value.reason == "Expired"


def test_listeners_hear_of_every_change():
    collection, heard = Collection(limit=5), []
    collection.listeners[lambda: heard.append(len(collection.records))] = None
    write(collection, 1, "a")
    write(collection, 2, "a", delete=True)
    assert heard == [1, 0]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30))
def test_any_past_revision_in_the_history_can_be_seen_again(writes):
    collection, records_by_revision = Collection(limit=100), [(0, {})]
    for revision, (name, delete) in enumerate(writes, start=1):
        if delete and ("", name) not in collection.records:
            continue
        write(collection, revision, name, delete=delete)
        records_by_revision.append((revision, dict(collection.records)))
    for revision, records in records_by_revision:
        assert collection.at(revision) == records


def test_keys_stay_sorted_as_objects_come_and_go():
    collection = Collection(limit=5)
    for revision, name in enumerate("cab", start=1):
        write(collection, revision, name)
        assert collection.sorted_keys() == sorted(collection.records)
    write(collection, 4, "b", delete=True)
    assert [name for _, name in collection.sorted_keys()] == ["a", "c"]


def test_an_object_is_encoded_once_per_view():
    record = Record(("", "a"), {"metadata": {"name": "a"}}, 1)
    assert record.encoded("v1") is record.encoded("v1")
    assert record.encoded("other", lambda obj: {"seen": obj}) == b'{"seen":{"metadata":{"name":"a"}}}'
