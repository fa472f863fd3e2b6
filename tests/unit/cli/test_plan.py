import gzip
import json
from functools import partial

import pytest

from tests.unit.cli.commands import run
from tests.unit.provisioner.clusters import TYPES, node_pool, pod

_run = partial(run, "plan")

CATALOGUE = {"catalogue": "few", "instanceTypes": list(TYPES)}


def _case(name, *objects):
    now = "2026-06-01T12:00:00Z"
    return {"id": name, "kind": "solve", "now": now, "catalogue": "few", "objects": [node_pool(), *objects]}


def _written(path, *lines):
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n")
    return path


def _answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_cases_are_answered_in_the_order_of_the_file(tmp_path):
    path = _written(tmp_path / "cases.jsonl", CATALOGUE, _case("b", pod("web")), "", _case("a"))
    result = _run("--cases", path)
    assert (result.exit_code, result.stderr) == (0, "")
    first, second = _answers(result)
    assert list(first) == ["id", "ignored", "skipped", "existing", "claims", "errors"]
    assert (first["id"], first["claims"][0]["pods"]) == ("b", ["default/web"])
    assert second == {"id": "a", "ignored": {}}


def test_compressed_cases_and_cases_from_standard_input_are_read(tmp_path):
    lines = _written(tmp_path / "cases.jsonl", CATALOGUE, _case("a", pod("web"))).read_bytes()
    packed = tmp_path / "cases.jsonl.gz"
    packed.write_bytes(gzip.compress(lines))
    assert _run("--cases", packed).stdout == _run("--cases", "-", stdin=lines.decode()).stdout != ""


def test_a_case_of_many_pods_is_answered_alike_in_whatever_order_its_objects_come(tmp_path):
    pods = [pod(f"p{index}", cpu=str(1 + index % 3)) for index in range(9)]
    one = _run("--cases", _written(tmp_path / "one", CATALOGUE, _case("a", *pods)))
    other = _run("--cases", _written(tmp_path / "other", CATALOGUE, _case("a", *reversed(pods))))
    assert one.stdout == other.stdout


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{", "not a case: "),
        ("[]", "not a case: expected an object"),
        ({**_case("x"), "kind": "guess"}, 'kind: "guess" is not'),
        ({**_case("x"), "now": "noon"}, 'now: "noon" is not a timestamp'),
        ({**_case("x"), "objects": 3}, "objects: is not a list"),
        ({**_case("x"), "catalogue": "none"}, 'catalogue: "none" is not defined'),
        ({"catalogue": "bad", "instanceTypes": [{"name": 3}]}, "instanceTypes[0].name: 3 is not a text"),
        (_case("x", pod("web", cpu="lots")), 'objects[1].spec.containers[0].resources.requests[cpu]: "lots"'),
        (_case("x", {**pod("web"), "spec": "none"}), "objects[1].spec: expected `object`, got `str`".replace("`", "")),
    ],
)
def test_a_broken_line_is_named_and_does_not_stop_the_others(tmp_path, line, text):
    path = _written(tmp_path / "cases.jsonl", CATALOGUE, _case("a", pod("web")), line, _case("b"))
    result = _run("--cases", path)
    assert result.exit_code == 1
    assert [each["id"] for each in _answers(result)] == ["a", "b"]
    (said,) = result.stderr.splitlines()
    assert said.startswith(f"Error: {path}:3: {text}")


def test_a_file_without_cases_is_an_error(tmp_path):
    path = _written(tmp_path / "cases.jsonl", CATALOGUE)
    result = _run("--cases", path)
    assert result.exit_code == 1
    assert f"{path}: no line of it is a case" in result.stderr


def test_a_torn_archive_is_named_after_its_answers(tmp_path):
    lines = "".join(f"{json.dumps(_case(f'c{index}', pod('web')))}\n" for index in range(200))
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(gzip.compress(f"{json.dumps(CATALOGUE)}\n{lines}".encode())[:-100])
    result = _run("--cases", path)
    assert result.exit_code == 1
    assert str(path) in result.stderr
    assert _answers(result)[0]["id"] == "c0"
