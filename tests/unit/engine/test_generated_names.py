import re

from podium.engine.generated_names import with_generated_name


def _name(prefix, **fields):
    return with_generated_name({"kind": "Pod", "metadata": {"generateName": prefix, **fields}})["metadata"]["name"]


def test_a_name_is_the_prefix_and_five_letters_or_digits_without_vowels():
    assert re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", _name("web-"))
    assert _name("web-") == _name("web-")
    assert _name("web-") != _name("web-", labels={"a": "b"})


def test_a_long_prefix_is_cut_as_an_api_server_cuts_it():
    assert len(_name("a" * 80)) == 63


def test_a_name_that_is_taken_is_not_derived_again():
    manifest = {"kind": "Pod", "metadata": {"generateName": "web-"}}
    manifests = [with_generated_name(manifest)]
    assert with_generated_name(manifest, manifests.__contains__) not in manifests


def test_objects_with_a_name_or_without_a_prefix_are_unchanged():
    for metadata in ({"name": "a", "generateName": "b-"}, {}, {"generateName": 3}, {"generateName": ""}, None):
        manifest = {"kind": "Pod", "metadata": metadata}
        assert with_generated_name(manifest) is manifest


def test_thousands_of_objects_of_one_content_get_names_in_little_time():
    manifest = {"kind": "Pod", "metadata": {"generateName": "web-"}}
    names: set[str] = set()
    attempts = 0

    def is_taken(candidate):
        nonlocal attempts
        attempts += 1
        return candidate["metadata"]["name"] in names

    for number in range(5000):
        names.add(with_generated_name(manifest, is_taken, number)["metadata"]["name"])
    assert len(names) == 5000
    assert attempts < 15_000
