from tests.upstream_e2e.page import page_text
from tests.upstream_e2e.suite import Results, Spec


def test_the_page_has_a_row_for_each_spec_and_a_column_for_each_scheduler() -> None:
    passing, failing = Spec("[s] Gang [Beta] waits", "passed", "", 1.0), Spec("[s] Gang ends", "failed", "why", 1.0)
    text = page_text({"podium": Results((failing, passing), ("one",)), "kube-scheduler": Results((passing,), ("one",))})
    assert "- podium: 2 specs: 1 failed, 1 passed.\n- kube-scheduler: 1 specs: 1 passed.\n" in text
    assert text.endswith("|---|---|---|\n| Gang ends | failed |  |\n| Gang waits | passed | passed |\n")
