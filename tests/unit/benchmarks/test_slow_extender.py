import json

import pytest

from benchmarks.slow_extender import answer


@pytest.mark.parametrize(
    "args",
    [
        {"Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n1"}}]}, "NodeNames": None},
        {"Nodes": None, "NodeNames": ["n1", "n2"]},
    ],
)
def test_every_node_is_let_through_as_it_was_sent(args):
    assert json.loads(answer(json.dumps({"Pod": {}, **args}).encode())) == args
