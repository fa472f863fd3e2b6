from podium.config.extension_points import IN_TREE_PLUGINS, ExtensionPoint


def test_there_are_sixteen_keys():
    assert len(ExtensionPoint) == 16


def test_interfaces_are_named_as_in_upstreams_messages():
    assert ExtensionPoint.PRE_FILTER.interface == "PreFilterPlugin"
    assert ExtensionPoint.PLACEMENT_GENERATE.interface == "PlacementGeneratePlugin"


def test_no_plugin_extends_multi_point():
    assert all(ExtensionPoint.MULTI_POINT not in points for points in IN_TREE_PLUGINS.values())
