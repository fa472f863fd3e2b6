from pathlib import Path

from benchmarks.planner import answer
from benchmarks.waiting_cluster import write_case


def test_a_plan_is_counted_and_measured(tmp_path: Path) -> None:
    write_case(tmp_path / "case", pods=10, pools=2, nodes=1, node_cpu=16)
    plan_answer = answer(tmp_path / "case")
    assert plan_answer["claims"] > 0
    assert plan_answer["price"] > 0
    assert (plan_answer["on_claims"] + plan_answer["on_nodes"], plan_answer["errors"]) == (10, 0)
    assert min(plan_answer["wall_s"], plan_answer["cpu_s"], plan_answer["peak_rss_bytes"] / 2**20) > 0
