from pathlib import Path

from benchmarks.planner import answer
from benchmarks.waiting_cluster import write_case


def test_a_plan_is_counted_and_measured(tmp_path: Path) -> None:
    write_case(tmp_path / "case", pods=10, pools=2, nodes=1, node_cpu=16)
    told = answer(tmp_path / "case")
    assert told["claims"] > 0
    assert told["price"] > 0
    assert (told["on_claims"] + told["on_nodes"], told["errors"]) == (10, 0)
    assert min(told["wall_s"], told["cpu_s"], told["peak_rss_bytes"] / 2**20) > 0
