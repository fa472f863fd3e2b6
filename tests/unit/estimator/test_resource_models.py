import pytest
from msgspec import convert

from podium.estimator.cluster_objects import ResourceModel
from podium.estimator.resource_models import default_models, fault_of, standardise

INT64_MAX = str(2**63 - 1)


def _models(*bounds, names=("cpu",)):
    """Grades of these (min, max)."""
    return [
        convert({"grade": grade, "ranges": [{"name": name, "min": low, "max": high} for name in names]}, ResourceModel)
        for grade, (low, high) in enumerate(bounds)
    ]


def test_default_models_are_valid_and_nine():
    assert len(default_models()) == 9
    assert fault_of(default_models()) is None
    assert standardise(default_models()) == default_models()


def test_standard_models_are_in_order_and_have_no_end():
    turned = standardise(reversed(_models(("1", "2"), ("2", "4"))))
    assert [(model.ranges[0].min, model.ranges[0].max) for model in turned] == [("0", "2"), ("2", INT64_MAX)]


@pytest.mark.parametrize(
    ("models", "fault"),
    [
        ([*_models(("0", "1")), *_models(("1", INT64_MAX))], "The grade of each models should not be the same"),
        (
            [*_models(("0", "1")), *_models(("0", "1"), ("1", INT64_MAX), names=("cpu", "memory"))[1:]],
            "The number of resource types should be the same",
        ),
        (_models(("0", "0")), "The max value of each resource must be greater than the min value"),
        (_models(("1", INT64_MAX)), "The min value of each resource in the first model should be 0"),
        (
            [*_models(("0", "1")), *_models(("0", "1"), ("1", INT64_MAX), names=("memory",))[1:]],
            "The resource types of each models should be the same",
        ),
        (_models(("0", "1"), ("2", INT64_MAX)), "Model intervals for resources must be contiguous and non-overlapping"),
        (
            _models(("0", "1"), ("1000m", INT64_MAX)),
            "Model intervals for resources must be contiguous and non-overlapping",
        ),
        (_models(("0", "1"), ("1", "2")), "The max value of each resource in the last model should be MaxInt64"),
    ],
)
def test_a_fault_has_upstreams_message(models, fault):
    assert fault_of(models) == fault
