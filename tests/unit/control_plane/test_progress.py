import io

from tests.control_plane.progress import Progress


def test_ticks_are_thinned_out_and_phases_are_not() -> None:
    now_s = 100.0
    stream = io.StringIO()
    progress = Progress(stream=stream, interval_s=5.0, clock=lambda: now_s)
    progress.phase("compiling")
    for now_s in (101.0, 104.9, 105.0, 106.0):
        progress.tick(f"at {now_s}")
    progress.phase("built")
    assert stream.getvalue().splitlines() == [
        "control plane [   0.0 s] compiling",
        "control plane [   5.0 s] at 105.0",
        "control plane [   6.0 s] built",
    ]
