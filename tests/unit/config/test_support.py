import pytest

from podium.config import IN_TREE_PLUGINS, ExtensionPoint, default_configuration, load, to_yaml, unsupported_features

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
QUIET = "leaderElection: {leaderElect: false}\n"
EVERYTHING = frozenset(IN_TREE_PLUGINS)


def verdict(text, plugins=EVERYTHING, registry=IN_TREE_PLUGINS):
    support = unsupported_features(load(HEAD + text, registry=registry), plugins, registry)
    return [error.text for error in support.refusals], list(support.warnings)


@pytest.mark.parametrize(
    "text",
    [
        "",
        QUIET,
        "leaderElection: {resourceName: podium}\nprofiles: [{schedulerName: podium}]",
        "leaderElection: {resourceNamespace: podium}\nprofiles: [{schedulerName: podium}]",
    ],
)
def test_file_that_asks_for_nothing_new_is_fine(text):
    assert verdict(text) == ([], [])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("profiles: [{schedulerName: podium}]", "leaderElection.resourceName"),
        (QUIET + "enableContentionProfiling: true", "enableContentionProfiling"),
        (QUIET + "parallelism: 16", "parallelism"),
        (
            QUIET + "clientConnection: {contentType: application/vnd.kubernetes.protobuf}",
            "clientConnection.contentType",
        ),
        (
            QUIET + "clientConnection: {acceptContentTypes: application/cbor}",
            "clientConnection.acceptContentTypes",
        ),
    ],
)
def test_field_without_effect_is_warned_about_by_name(text, path):
    refusals, warnings = verdict(text)
    assert refusals == []
    assert [warning.partition(":")[0] for warning in warnings] == [path]


@pytest.mark.parametrize(
    "text",
    [
        "enableProfiling: false",
        "enableProfiling: true",
        "clientConnection: {contentType: application/json, acceptContentTypes: application/json}",
        "delayCacheUntilActive: true",
        "profiles: [{schedulerName: podium}]",
    ],
)
def test_field_that_asks_for_what_podium_does_anyway_is_fine(text):
    assert verdict(QUIET + text) == ([], [])


def test_extenders_are_called_but_questions_are_not_answered_with_them():
    support = unsupported_features(load(HEAD + QUIET + "extenders: [{urlPrefix: http://x}]"), EVERYTHING)
    assert (support.refusals, support.warnings) == ((), ())
    assert [error.text for error in support.undecidable] == [
        "extenders: Forbidden: extenders are not asked here, so leave them out to see what the plugins alone decide"
    ]


def test_leader_election_does_not_keep_questions_from_being_answered():
    support = unsupported_features(load(HEAD + "leaderElection: {retryPeriod: 9s}"), EVERYTHING)
    assert (len(support.refusals), support.undecidable) == (1, ())


@pytest.mark.parametrize(
    ("fields", "warnings"),
    [("", 1), (", tlsConfig: {caFile: ca.pem}", 0), (", tlsConfig: {insecure: true}", 0)],
)
def test_https_without_verification_is_warned_about_unless_it_is_asked_for(fields, warnings):
    text = QUIET + f"extenders: [{{urlPrefix: 'https://x', enableHTTPS: true{fields}}}]"
    assert len(verdict(text)[1]) == warnings


def test_an_election_that_could_not_be_kept_is_refused():
    refusals, _ = verdict("leaderElection: {retryPeriod: 9s}")
    assert refusals == [
        "leaderElection.renewDeadline: Forbidden: must be greater than 1.2 times retryPeriod for an election to start"
    ]
    assert verdict("leaderElection: {leaderElect: false, retryPeriod: 9s}") == ([], [])


def test_default_plugins_that_are_missing_are_named_in_one_warning():
    assert verdict(QUIET, EVERYTHING - {"VolumeZone", "ImageLocality"}) == (
        [],
        ["profiles: default plugins that podium does not have yet are left out: ImageLocality, VolumeZone"],
    )


def test_missing_default_plugin_that_the_file_disables_is_no_matter():
    text = QUIET + "profiles: [{plugins: {multiPoint: {disabled: [{name: VolumeZone}]}}}]"
    assert verdict(text, EVERYTHING - {"VolumeZone"}) == ([], [])


def test_missing_plugin_that_the_file_enables_is_refused_with_its_line():
    text = QUIET + "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocality\n"
    support = unsupported_features(load(HEAD + text), EVERYTHING - {"ImageLocality"})
    assert [(error.text, error.line) for error in support.refusals] == [
        (
            "profiles[0].plugins.score.enabled[0].name: Forbidden: podium does not have the plugin ImageLocality yet",
            8,
        )
    ]
    assert support.warnings == ()


def test_default_file_written_out_asks_for_no_more_than_an_empty_one():
    text = to_yaml(default_configuration()).replace("leaderElect: true", "leaderElect: false")
    support = unsupported_features(load(text), EVERYTHING - {"VolumeZone"})
    assert support.refusals == ()
    assert support.warnings[-1].endswith("are left out: VolumeZone")


def test_users_own_plugin_is_there_once_it_is_registered():
    registry = {**IN_TREE_PLUGINS, "Mine": frozenset({ExtensionPoint.SCORE})}
    text = QUIET + "profiles: [{plugins: {score: {enabled: [{name: Mine, weight: 5}]}}}]"
    assert verdict(text, EVERYTHING | {"Mine"}, registry) == ([], [])
