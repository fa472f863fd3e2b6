"""Texts that are to be configurations: what `podium.config` makes of them is a configuration, or errors by field."""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from podium.config import ConfigError, ErrorKind, Loaded, effective, load, load_file, to_yaml, unsupported_features
from podium.config.document import TEXT_LENGTH_MAX
from podium.plugins import IN_TREE
from tests.fuzz.limits import STALL_S, stall_s
from tests.fuzz.mutations import Json, apply, mutations, one_of

_ROOT = Path(__file__).parents[2]
_RECORDED = _ROOT / "tests/parity/data/config-1.36.2.jsonl.gz"
_HEAD: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_TOKENS: Final = (
    *("&a ", "*a", "<<: *a\n", "---\n", "...\n", "!!binary ", "!!python/object:os.system ", "!!set ", "? ", "- "),
    *("{", "}", "[", "]", ": ", "#", "|\n", ">-\n", "%YAML 1.1\n", "\t", "\r", "\u2028", "\ufeff", "\x00", "\x85"),
    *("0x", "0o8", "1_0", "1e999", ".inf", ".nan", "~", "on", "1h1m", "-1s", "9" * 5000, '"\\ud800"', "'", '"'),
)
_TEXT_BYTES_MAX: Final = 64 * 1024
# Nothing else goes on yet while the configuration is read: it need not be short, but no longer than the text.
_S_PER_BYTE: Final = 5e-6


@cache
def seeds() -> tuple[str, ...]:
    """The examples, and the files that kube-scheduler was asked about."""
    with gzip.open(_RECORDED, "rt", encoding="utf-8") as lines:
        recorded_texts = [json.loads(line)["yaml"] for line in lines]
    return (*(path.read_text() for path in sorted((_ROOT / "examples/config").glob("*.yaml"))), *recorded_texts)


@cache
def _trees() -> tuple[Any, ...]:
    trees = []
    for text in seeds():
        try:
            trees.append(json.loads(json.dumps(yaml.safe_load(text))))
        except (yaml.YAMLError, ValueError, TypeError):
            continue
    return tuple(tree for tree in trees if isinstance(tree, dict))


def _edit(text: str, edits: list[tuple[int, int, str]]) -> str:
    """The text with pieces cut out and put in."""
    for at, cut, insert in edits:
        at %= len(text) + 1
        text = text[:at] + insert + text[at + cut :]
    return text


def bomb(levels: int, width: int) -> str:
    """A few lines that stand for very many values."""
    lines = [_HEAD, "a0: &a0 [x]\n"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]\n" for level in range(1, levels)]
    return "".join(lines)


def inputs() -> st.SearchStrategy[bytes]:
    """Files: rubbish, edited texts, changed trees as YAML and JSON, and bombs."""
    edit = st.tuples(st.integers(0, 5000), st.integers(0, 40), st.one_of(st.just(""), one_of(_TOKENS)))
    edited = st.builds(_edit, one_of(seeds()), st.lists(edit, min_size=1, max_size=6))
    changed_trees = st.builds(apply, one_of(_trees()), st.lists(mutations(), min_size=1, max_size=5))
    texts = st.one_of(
        edited,
        changed_trees.map(json.dumps),
        changed_trees.map(_as_yaml).filter(bool),
        st.text(max_size=200).map(lambda text: _HEAD + text),
        st.builds(bomb, st.integers(1, 12), st.integers(1, 12)),
    ).map(lambda text: text.encode(errors="replace"))
    return st.one_of(st.binary(max_size=300), texts).map(lambda text: text[:_TEXT_BYTES_MAX])


def _as_yaml(tree: Json) -> str:
    """Nothing where the tree is too deep for PyYAML's own writer."""
    try:
        return yaml.safe_dump(tree, allow_unicode=True)
    except RecursionError:
        return ""


def check(text: bytes) -> float:
    """Load it. Returns: the CPU time that took, in seconds."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        return stall_s(lambda: _load(file.name), STALL_S + len(text) * _S_PER_BYTE)


def _load(path: str) -> float:
    started_s = time.process_time()
    try:
        configuration = load_file(path)
    except ConfigError as error:
        refusal = error
    else:
        spent_s = time.process_time() - started_s
        _check_accepted(configuration)
        return spent_s
    spent_s = time.process_time() - started_s
    _check_refused(refusal)
    return spent_s


def _check_accepted(configuration: Loaded) -> None:
    unsupported_features(configuration, frozenset(IN_TREE))
    text = to_yaml(configuration.config)
    if len(text) > TEXT_LENGTH_MAX:
        return  # written out in full it has outgrown what is read
    second_config = load(text).config
    assert effective(second_config) == effective(configuration.config), "written back, it says something else"


def _check_refused(refusal: ConfigError) -> None:
    assert str(refusal)
    assert refusal.errors
    for error in refusal.errors:
        assert error.path or error.kind in (ErrorKind.SYNTAX, ErrorKind.TYPE), error
