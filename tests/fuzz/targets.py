"""Every parser and decoder as a function of bytes that nobody has looked at, with inputs to begin with.

A function returns for whatever is refused with the error that is documented; any other exception is a finding.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from podium.cel import CompileError
from podium.cel.regex.matching import compile_pattern
from podium.cel.regex.syntax import PatternError
from podium.client.content_coding import Decompressor
from podium.client.kubeconfig import KubeconfigError, choose
from podium.client.list_body import ListBody
from podium.client.metrics_answers import (
    MetricsError,
    NodeNames,
    Readings,
    read_metrics_server,
    read_prometheus,
    read_watcher,
)
from podium.devices.selectors import compile_selector
from podium.lib.provenance import PREDICATE_TYPE, STATEMENT_TYPE, ProvenanceError, envelope, verified_statement
from podium.lib.yaml_reader import YamlError, read_documents
from podium.objects import quantity
from podium.objects.api_errors import ApiError
from podium.objects.errors import FieldError
from podium.objects.node_metrics import MetricsQuery
from podium.objects.resource_types import ALL, PODS
from podium.objects.wire import ObjectDecoder
from podium.provisioner.apis.cron import CronSchedule
from podium.provisioner.cloudprovider.imports import import_catalogue
from podium.recording import entries
from podium.recording.columns import entries_of
from podium.recording.segments import RecordingError, SegmentWriter, open_segments
from podium.sandbox import resources
from podium.sandbox.errors import ApiError as SandboxError
from podium.sandbox.field_selectors import parse_field_selector
from podium.sandbox.protobuf import MAGIC, decode_object
from podium.sandbox.selectors import parse_label_selector
from tests.builders import node, pod
from tests.fuzz import configuration
from tests.fuzz.examples import example
from tests.fuzz.mutations import encode
from tests.unit.recording.contents import content_of

_ROOT: Final = Path(__file__).parents[2]
_KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(32))
_CONFIGURATIONS_MAX: Final = 60
_PIECE_BYTES: Final = 700


class Target(NamedTuple):
    """A parser or decoder.

    Attributes:
        run: takes an input.
        seeds: returns the first inputs.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]


def _configuration(content: bytes) -> None:
    configuration.check(content)


def _configurations() -> Iterable[bytes]:
    return (text.encode() for text in configuration.seeds()[:_CONFIGURATIONS_MAX])


def _watch(content: bytes) -> None:
    for line in content.splitlines():
        for decoder in _DECODERS:
            with suppress(ApiError):
                decoder.event(line)


def _watch_lines() -> Iterable[bytes]:
    for resource_type in ALL:
        yield b'{"type":"ADDED","object":%b}' % encode(example(resource_type.type))


def _list(content: bytes) -> None:
    decoder = ObjectDecoder(PODS)
    with suppress(ApiError):
        decoder.page(content)
    body = ListBody(decoder)
    with suppress(ApiError):
        for start in range(0, len(content), _PIECE_BYTES):
            list(body.feed(content[start : start + _PIECE_BYTES]))
        body.finish()


def _lists() -> Iterable[bytes]:
    for count in (0, 1, 3):
        items = b",".join([encode(example(PODS.type))] * count)
        yield b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"20"},"items":[%b]}' % items


def _compression(content: bytes) -> None:
    for coding in ("gzip", "deflate"):
        with suppress(ApiError):
            for _ in Decompressor(coding).feed(content):
                pass


def _yaml(content: bytes) -> None:
    with suppress(YamlError):
        list(read_documents(content))


def _texts(*texts: str) -> Callable[[], Iterable[bytes]]:
    return lambda: (text.encode() for text in texts)


def _files(pattern: str) -> Callable[[], Iterable[bytes]]:
    return lambda: (path.read_bytes() for path in sorted((_ROOT / "examples").glob(pattern)))


def _quantity(content: bytes) -> None:
    with suppress(quantity.QuantityError):
        text = content.decode(errors="replace")
        canonical_text = quantity.canonical_text(text)
        assert quantity.canonical_text(canonical_text) == canonical_text
        quantity.value(text)
        quantity.milli_value(text)


def _cel(content: bytes) -> None:
    with suppress(CompileError):
        compile_selector(content.decode(errors="replace"))


def _regex(content: bytes) -> None:
    with suppress(PatternError):
        compile_pattern(content.decode(errors="replace"))


def _cron(content: bytes) -> None:
    with suppress(ValueError):
        CronSchedule.parse(content.decode(errors="replace"))


def _selectors(content: bytes) -> None:
    text = content.decode(errors="replace")
    with suppress(SandboxError):
        parse_label_selector(text)
    for resource in resources.RESOURCES:
        with suppress(SandboxError):
            parse_field_selector(text, resource)


def _protobuf(content: bytes) -> None:
    with suppress(ValueError):
        decode_object(content)


def _metrics(content: bytes) -> None:
    nodes = {"n1": node("n1")}
    for read in (
        lambda readings: read_watcher(readings, content),
        lambda readings: read_metrics_server(readings, content, nodes),
        lambda readings: read_prometheus(readings, content, MetricsQuery("up", "CPU")),
    ):
        readings = Readings(NodeNames(nodes.values()))
        with suppress(MetricsError):
            read(readings)
            assert readings.nodes.keys() <= nodes.keys()
        assert isinstance(readings.problems, str)


def _catalogue(content: bytes) -> None:
    with suppress(FieldError, orjson.JSONDecodeError):
        import_catalogue([("", orjson.loads(content))], ("z1",))


def _kubeconfig(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with suppress(KubeconfigError):
            choose(file.name, None)


def _columns(content: bytes) -> None:
    with suppress(ValueError):
        entries_of(content)


def _blocks() -> Iterable[bytes]:
    yield content_of(
        (entries.NOW, 5.0), (entries.PUT, ("/api/v1/nodes", node("n1"))), (entries.SIGNAL, 0), (entries.END, None)
    )
    yield content_of(
        (entries.ANSWER, (2, entries.OBJECT, pod("web"))), (entries.FAILED, ("u", "unschedulable", "full"))
    )


def _segment(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "000001.podium").write_bytes(content)
        with suppress(RecordingError):
            for _ in open_segments(Path(folder)).blocks():
                pass


def _segments() -> Iterable[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "recording"
        writer = SegmentWriter(directory, {"podium": "0"})
        for block in _blocks():
            writer.write(block, 0.0)
        writer.close()
        yield (directory / "000001.podium").read_bytes()


def _provenance(content: bytes) -> None:
    with suppress(ProvenanceError):
        verified_statement(content, _KEY.public_key())


def _provenances() -> Iterable[bytes]:
    statement = {"_type": STATEMENT_TYPE, "subject": [], "predicateType": PREDICATE_TYPE, "predicate": {}}
    yield envelope(statement, [_KEY])
    yield envelope({}, [])


_DECODERS: Final = tuple(ObjectDecoder(resource_type) for resource_type in ALL)

TARGETS: Final[Mapping[str, Target]] = {
    "configuration": Target(_configuration, _configurations),
    "yaml": Target(_yaml, _files("*/*.yaml")),
    "kubeconfig": Target(
        _kubeconfig,
        _texts(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: https://h:1}}]\nusers: [{name: u, user: {token: t}}]\n"
        ),
    ),
    "watch": Target(_watch, _watch_lines),
    "list": Target(_list, _lists),
    "compressed": Target(
        _compression, lambda: [gzip.compress(b"{}"), gzip.compress(b"a") + gzip.compress(b"b" * 9999)]
    ),
    "metrics": Target(
        _metrics,
        _texts(
            '{"timestamp":1,"window":{"start":1,"end":2},"data":{"NodeMetricsMap":{"n1":{"metrics":'
            '[{"name":"x","type":"CPU","operator":"Average","rollup":"15m","value":5}]}}}}',
            '{"kind":"NodeMetricsList","items":[{"metadata":{"name":"n1"},"window":"10s","usage":{"cpu":"1","memory":"1Gi"}}]}',
            '{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"n1"},"value":[1,"0.5"]}]}}',
        ),
    ),
    "quantity": Target(_quantity, _texts("1", "1.5Gi", "100m", "12e6", "-1Ki", "0.000000001n", "9223372036854775807")),
    "cel": Target(
        _cel,
        _texts(
            'device.driver == "d" && device.attributes["d"].model == "a"',
            'device.capacity["d"].memory.compareTo(quantity("1Gi")) >= 0',
            '["a", "b"].exists(x, x.startsWith("a")) ? true : size({1: 2u}) > 0',
        ),
    ),
    "regex": Target(_regex, _texts("^a+(b|c)*?[d-f]{2,3}$", r"(?i)\p{Greek}\d\b[^\s]", "(?P<n>x)|y")),
    "cron": Target(_cron, _texts("@hourly", "*/5 0-6,22 * JAN-MAR mon", "0 0 31 2 *")),
    "selectors": Target(
        _selectors, _texts("a=b,c!=d,e in (f,g),!h,i notin (j)", r"metadata.name=a\,b,spec.nodeName!=")
    ),
    "protobuf": Target(_protobuf, lambda: [MAGIC + b"\n\x0d\n\x02v1\x12\x07Binding\x12\x07\n\x05\n\x03web"]),
    "catalogue": Target(
        _catalogue,
        _texts(
            json.dumps({"InstanceTypes": [{"InstanceType": "m6i.large", "VCpuInfo": {"DefaultVCpus": 2}}]}),
            json.dumps([{"name": "n2-standard-4", "guestCpus": 4, "memoryMb": 16384, "zone": "z1"}]),
            json.dumps([{"name": "Standard_D2s_v5", "resourceType": "virtualMachines", "capabilities": []}]),
        ),
    ),
    "columns": Target(_columns, _blocks),
    "segment": Target(_segment, _segments),
    "provenance": Target(_provenance, _provenances),
}
