"""Answers of metrics sources: what is read, what is left out, and how that is said."""

from __future__ import annotations

import json

import pytest

from podium.client.metrics_answers import (
    MetricsError,
    NodeNames,
    Readings,
    read_metrics_server,
    read_prometheus,
    read_watcher,
)
from podium.objects.node_metrics import MetricsQuery
from tests.builders import node

ADDRESSES = {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}, {"type": "InternalIP", "address": "fd00::2"}]}
NODES = {item.name: item for item in (node("n1", cpu="4", memory="8Gi"), node("n2.example.com", status=ADDRESSES))}
QUERY = MetricsQuery("up", "CPU", factor=100.0)


def readings():
    return Readings(NodeNames(NODES.values()))


def values(result):
    return {
        name: [(item.type, item.operator, item.value) for item in measured.metrics]
        for name, measured in result.nodes.items()
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("n1", "n1"),
        ("n1:9100", "n1"),
        ("n1.example.com", "n1"),
        ("n1.example.com:9100", "n1"),
        ("n2", "n2.example.com"),
        ("n2.example.com", "n2.example.com"),
        ("10.0.0.2:9100", "n2.example.com"),
        ("[fd00::2]:9100", "n2.example.com"),
        ("fd00::2", "n2.example.com"),
        ("10.0.0.9:9100", None),
        ("n3", None),
        ("", None),
        (":9100", None),
    ],
)
def test_nodes_are_known_by_several_names(text, name):
    assert NodeNames(NODES.values()).name_of(text) == name


def test_a_short_name_of_two_nodes_is_none_of_them():
    names = NodeNames([node("a.x"), node("a.y")])
    assert names.name_of("a") is None
    assert names.name_of("a.x") == "a.x"


# ---------------------------------------------------------------- a load watcher


def watcher(nodes, **fields):
    return json.dumps({"window": {"end": 90}, "data": {"NodeMetricsMap": nodes}, **fields}).encode()


def test_a_load_watchers_values():
    metrics = [
        {"name": "x", "type": "CPU", "operator": "AVG", "rollup": "15m", "value": 5},
        {"type": "Bandwidth", "operator": "AVG", "value": 7},
        {"type": "Memory", "value": 1.5},
    ]
    result = readings()
    read_watcher(result, watcher({"n1": {"metrics": metrics, "tags": {}}}, source="Prometheus"))
    assert values(result) == {"n1": [("CPU", "AVG", 5.0), ("Memory", "", 1.5)]}
    assert result.window.end == 90
    assert result.problems == ""


def test_nodes_that_do_not_exist_are_named():
    result = readings()
    read_watcher(result, watcher({f"old-{at}": {"metrics": []} for at in range(5)}))
    assert result.problems == "no such node: old-0, old-1, old-2 and 2 more"


def test_a_node_in_another_form_costs_itself_only():
    result = readings()
    value = {"type": "CPU", "operator": "AVG", "value": 5}
    read_watcher(result, watcher({"n1": {"metrics": [{**value, "value": "high"}]}, "n2": {"metrics": [value]}}))
    assert values(result) == {"n2.example.com": [("CPU", "AVG", 5.0)]}
    assert result.problems == "not in a load watcher's form: n1"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"data": 7}', b"\xff\xff", b'{"data":' + b"[" * 100_000])
def test_bodies_that_are_no_answer(body):
    with pytest.raises(MetricsError, match="the answer cannot be read"):
        read_watcher(readings(), body)


# ---------------------------------------------------------------- metrics-server


def test_usage_in_percent_of_the_capacity():
    items = [
        {"metadata": {"name": "n1"}, "usage": {"cpu": "1500m", "memory": "2Gi"}},
        {"metadata": {"name": "gone"}, "usage": {"cpu": "1", "memory": "1"}},
        {"metadata": {"name": "n2"}, "usage": {"cpu": "much", "memory": 0}},
    ]
    result = readings()
    read_metrics_server(result, json.dumps({"items": items}).encode(), NODES)
    assert values(result) == {
        "n1": [("CPU", "Latest", 37.5), ("Memory", "Latest", 25.0)],
        "n2.example.com": [("Memory", "Latest", 0.0)],
    }
    assert result.problems == "no such node: gone; cpu cannot be read: n2.example.com"


def test_list_without_items_gives_no_readings():
    result = readings()
    read_metrics_server(result, b'{"items": null}', NODES)
    assert values(result) == {}


# ---------------------------------------------------------------- Prometheus


def vector(*series, **fields):
    result = [{"metric": labels, "value": [1, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}, **fields}).encode()


def test_series_of_a_vector_belong_to_nodes_by_name_or_address():
    result = readings()
    read_prometheus(result, vector(({"instance": "n1:9100"}, "0.25"), ({"instance": "10.0.0.2:9100"}, "1")), QUERY)
    assert values(result) == {"n1": [("CPU", "Latest", 25.0)], "n2.example.com": [("CPU", "Latest", 100.0)]}


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf", "1e999"])
def test_numbers_that_are_not_finite_are_left_out(number):
    result = readings()
    read_prometheus(result, vector(({"instance": "n1"}, number), ({"instance": "n2"}, "0")), QUERY)
    assert values(result).keys() == {"n2.example.com"}
    assert result.problems == "not a finite number: n1"


def test_of_two_series_for_a_node_the_higher_one_counts():
    result = readings()
    read_prometheus(result, vector(*(({"instance": "n1", "job": job}, job) for job in ("0.2", "0.7", "0.1"))), QUERY)
    assert values(result) == {"n1": [("CPU", "Latest", 70.0)]}
    assert result.problems == "query up: several series, the highest counts: n1"


def test_series_that_name_no_node_are_named():
    result = readings()
    read_prometheus(result, vector(({}, "1"), ({"instance": "10.9.9.9:9100"}, "1")), QUERY)
    assert result.problems == "query up: a series lacks the label: instance; no such node: 10.9.9.9:9100"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"status":"error","error":"parse error"}', "query up: parse error"),
        (b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "the answer is scalar"),
        (b'{"status":"success"}', "the answer is nothing"),
        (b"no", "the answer cannot be read"),
    ],
)
def test_answers_that_are_no_vector(body, message):
    with pytest.raises(MetricsError, match=message):
        read_prometheus(readings(), body, QUERY)


def test_a_series_in_another_form_costs_itself_only():
    good, bad = {"metric": {"instance": "n1"}, "value": [1, "0.5"]}, {"value": [1]}
    body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [bad, good]}}).encode()
    result = readings()
    read_prometheus(result, body, QUERY)
    assert values(result) == {"n1": [("CPU", "Latest", 50.0)]}


def test_a_long_answer_is_read_in_pieces():
    series = [({"instance": f"n{number % 2 + 1}", "pad": "x" * 500}, str(number / 4000)) for number in range(2000)]
    result = readings()
    read_prometheus(result, vector(*series), QUERY)
    assert values(result) == {"n1": [("CPU", "Latest", 49.95)], "n2.example.com": [("CPU", "Latest", 49.975)]}


def test_a_long_answer_of_anything_else_is_refused():
    body = b'{"status":"success","data":{"resultType":"vector","result":[' + b"[]," * 500_000 + b"[]]}}"
    with pytest.raises(MetricsError, match="the answer cannot be read: an item of more than 262144 bytes"):
        read_prometheus(readings(), body, QUERY)
