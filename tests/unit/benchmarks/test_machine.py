import platform

from benchmarks.machine import addition_ns, cpu_model


def test_the_first_processor_names_the_machine() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Some CPU 9000\n\nprocessor\t: 1\nmodel name\t: Other\n") == (
        "Some CPU 9000"
    )


def test_a_machine_without_model_names_is_called_by_its_architecture() -> None:
    assert cpu_model("processor\t: 0\nBogoMIPS\t: 50.00\n") == platform.machine()


def test_the_speed_of_the_machine_is_that_of_its_best_round() -> None:
    assert 0 < addition_ns(additions=1000, rounds=3) < 1e6
