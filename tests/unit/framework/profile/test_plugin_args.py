from dataclasses import dataclass, field

import msgspec
import pytest

from podium.config import PluginConfig, Profile, RawArgs
from podium.framework import PluginError, ScorePlugin
from podium.framework.profile.plugin_args import args_of


@dataclass(frozen=True)
class WeightArgs:
    resource: str
    weight: int = 1
    zones: list[str] = field(default_factory=list)


class Typed(ScorePlugin):
    Args = WeightArgs

    def score(self, state: object, pod: object, node: object) -> int:
        return 0


class StructArgs(msgspec.Struct):
    resource: str = "cpu"


class TypedByStruct(Typed):
    Args = StructArgs


@dataclass(frozen=True)
class PoolArgs:
    pool_size: int = 1
    max_wait_s: float = 0.0


@dataclass(frozen=True)
class NestedArgs:
    main_pool: PoolArgs | None = None
    other_pools: list[PoolArgs] = field(default_factory=list)
    by_name: dict[str, PoolArgs] = field(default_factory=dict)


class Nested(Typed):
    Args = NestedArgs


class Untyped(ScorePlugin):
    def score(self, state: object, pod: object, node: object) -> int:
        return 0


def profile_with_args(name: str, args: object) -> Profile:
    return Profile("podium", plugin_config=(PluginConfig(name, RawArgs(args)),))


def test_args_become_a_value_of_the_declared_type() -> None:
    args = args_of(Typed, profile_with_args("Typed", {"resource": "cpu", "weight": 3}))
    assert args == WeightArgs("cpu", 3)


def test_without_an_entry_the_defaults_of_the_type_hold() -> None:
    assert args_of(TypedByStruct, Profile("podium")) == StructArgs()


def test_fields_may_be_in_camel_case_at_any_depth() -> None:
    args = args_of(
        Nested,
        profile_with_args(
            "Nested",
            {
                "mainPool": {"poolSize": 2, "max_wait_s": 1.5},
                "otherPools": [{"poolSize": 3}],
                "by_name": {"theBig": {"maxWaitS": 4}},
            },
        ),
    )
    assert args == NestedArgs(PoolArgs(2, 1.5), [PoolArgs(3)], {"theBig": PoolArgs(max_wait_s=4.0)})


def test_a_plugin_without_declared_args_gets_what_the_configuration_says() -> None:
    assert args_of(Untyped, profile_with_args("Untyped", {"anything": [1]})) == {"anything": [1]}
    assert args_of(Untyped, Profile("podium")) is None


@pytest.mark.parametrize(
    ("plugin", "args", "says"),
    [
        (Typed, {"resource": "cpu", "weight": "three"}, "args.weight: expected `int`, got `str`"),
        (Typed, {"resource": "cpu", "zones": ["a", 1]}, "args.zones[1]: expected `str`, got `int`"),
        (Typed, {"resource": "cpu", "wieght": 3}, "args.wieght: unknown field; known: resource, weight, zones"),
        (TypedByStruct, {"wieght": 3}, "args.wieght: unknown field; known: resource"),
        (
            Nested,
            {"otherPools": [{}, {"poolSiz": 3}]},
            "args.otherPools[1].poolSiz: unknown field; known: pool_size, max_wait_s",
        ),
        (
            Nested,
            {"mainPool": {"poolSize": 1, "pool_size": 2}},
            "args.mainPool.pool_size: given twice, in both spellings",
        ),
        (Typed, {}, "args: object missing required field `resource`"),
        (Typed, [1], "args: expected `object`, got `array`"),
    ],
)
def test_bad_args_are_refused_by_field(plugin: type[ScorePlugin], args: object, says: str) -> None:
    with pytest.raises(PluginError) as raised:
        args_of(plugin, profile_with_args(plugin.name, args))
    assert str(raised.value) == says
