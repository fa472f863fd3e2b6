"""The chart: what each value changes, and what wrong values are told."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.helm.chart import CHART, KUBERNETES, Helm, Json, one

pytestmark = pytest.mark.control_plane

Values = dict[str, Any]

KINDS = [
    *("ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "PodDisruptionBudget", "Role", "RoleBinding"),
    "ServiceAccount",
]
"""What is installed without any values."""
MONITORING = {
    "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}},
    "podMonitor": {"enabled": True, "tokenSecret": {"name": "token"}, "labels": {"release": "prometheus"}},
    "rules": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboards": {"enabled": True, "labels": {"grafana_folder": "kubernetes"}},
    "readers": [{"namespace": "monitoring", "name": "prometheus"}],
}
EVERYTHING: Values = {
    "image": {"repository": "registry.example/podium", "tag": "1", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "replicas": 3,
    "configuration": {"profiles": [{"schedulerName": "podium"}, {"schedulerName": "podium-batch"}]},
    "featureGates": {"GenericWorkload": True, "GangScheduling": False},
    "plugins": {"files": {"a.py": "X = 1\n", "b.py": "Y = '''\n  z\n'''\n"}, "classes": ["a.py:A", "ours.b:B"]},
    "ui": {"enabled": True},
    "coscheduling": {"enabled": True, "args": {"permitWaitingTimeSeconds": 30}},
    "tracing": {"endpoint": "http://collector:4318", "samplingRatePerMillion": 1000000},
    "extraEnv": [{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "a=b"}],
    "extraArgs": ["-v", "--avoid-conflicts"],
    "extraVolumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
    "rbac": {"extraRules": [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["list", "watch"]}]},
    "serviceAccount": {"name": "scheduler", "annotations": {"a": "b"}},
    "podDisruptionBudget": {"minAvailable": "50%", "maxUnavailable": None},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "topologySpread": {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "monitoring": MONITORING,
    "estimator": {"enabled": True, "members": ["m1"], "mode": "accurate", "extraArgs": ["--on-unsynced=max"]},
    "fleets": {
        "enabled": True,
        "certificatesSecret": "fleets-cert",
        "verifyClients": True,
        "staleAfter": "1m30s",
        "useStale": True,
        "prices": {"large": 0.5, "west/*": 0.25},
        "extraArgs": ["-v"],
    },
    "memberRoles": {"enabled": True, "accurate": True, "fleets": True},
    "provisioner": {
        "enabled": True,
        "provider": "karpenter",
        "rules": "podium",
        "extraArgs": ["--catalogue=/etc/types/all.json"],
        "extraVolumes": [{"name": "types", "configMap": {"name": "types"}}],
        "extraVolumeMounts": [{"name": "types", "mountPath": "/etc/types"}],
    },
}
PROVISIONER = ["ClusterRole", "ClusterRoleBinding", "Deployment", "Role", "RoleBinding", "ServiceAccount"]
DEFINITION = "CustomResourceDefinition"
NUMA_PROFILE = {
    "schedulerName": "podium",
    "plugins": {"multiPoint": {"enabled": [{"name": "NodeResourceTopologyMatch"}]}},
}
ADDED_OR_GONE: list[tuple[Values, list[str], list[str]]] = [
    ({}, [], []),
    ({"podDisruptionBudget": {"enabled": False}}, [], ["PodDisruptionBudget"]),
    ({"serviceAccount": {"create": False, "name": "other"}}, [], ["ServiceAccount"]),
    ({"rbac": {"create": False}}, [], ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ({"networkPolicy": {"enabled": True}}, ["NetworkPolicy"], []),
    ({"plugins": {"files": {"a.py": ""}}}, ["ConfigMap"], []),
    ({"featureGates": {"GenericWorkload": True}}, ["ClusterRole", "ClusterRoleBinding"], []),
    ({"featureGates": {"GenericWorkload": False}}, [], []),
    ({"ui": {"enabled": True}}, ["ClusterRole"], []),
    ({"coscheduling": {"enabled": True}}, ["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"], []),
    ({"coscheduling": {"enabled": True, "createDefinition": False}}, ["ClusterRole", "ClusterRoleBinding"], []),
    ({"configuration": {"profiles": [NUMA_PROFILE]}}, ["ClusterRole", "ClusterRoleBinding", DEFINITION], []),
    (
        {"configuration": {"profiles": [NUMA_PROFILE]}, "policies": {"createDefinitions": False}},
        ["ClusterRole", "ClusterRoleBinding"],
        [],
    ),
    ({"tracing": {"endpoint": "http://collector:4318"}}, [], []),
    ({"monitoring": {"serviceMonitor": {"enabled": True}}}, ["Service", "ServiceMonitor"], []),
    ({"monitoring": {"podMonitor": MONITORING["podMonitor"]}}, ["PodMonitor"], []),
    ({"monitoring": {"rules": MONITORING["rules"]}}, ["PrometheusRule"], []),
    ({"monitoring": {"dashboards": MONITORING["dashboards"]}}, ["ConfigMap"], []),
    ({"monitoring": {"readers": MONITORING["readers"]}}, ["ClusterRole", "ClusterRoleBinding"], []),
    ({"estimator": {"enabled": True, "members": ["a", "b"]}}, ["Deployment", "Service", "Service"], []),
    ({"fleets": {"enabled": True}}, ["Deployment", "Service"], []),
    ({"fleets": {"enabled": True, "prices": {"*": 1}}}, ["ConfigMap", "Deployment", "Service"], []),
    ({"scheduler": {"enabled": False}, "fleets": {"enabled": True}}, ["Deployment", "Service"], KINDS),
    ({"memberRoles": {"enabled": True, "fleets": True}}, ["ClusterRole", "ClusterRole"], []),
    ({"memberRoles": {"enabled": True}}, ["ClusterRole"], []),
    ({"memberRoles": {"enabled": True, "accurate": True}}, ["ClusterRole", "ClusterRole"], []),
    ({"memberRoles": {"accurate": True}}, [], []),
    ({"scheduler": {"enabled": False}, "memberRoles": {"enabled": True}}, ["ClusterRole"], KINDS),
    ({"provisioner": {"enabled": True}}, PROVISIONER, []),
    (
        {"provisioner": {"enabled": True, "provider": "sandbox", "rules": "podium"}},
        [*PROVISIONER, *["ClusterRole", "ClusterRoleBinding"] * 2],
        [],
    ),
    ({"provisioner": {"provider": "sandbox"}}, [], []),
]
PROFILE = {"schedulerName": "podium"}
WRONG: list[tuple[Values, str]] = [
    # The schema.
    ({"replica": 3}, "additional properties 'replica' not allowed"),
    ({"replicas": "two"}, "at '/replicas': got string, want integer"),
    ({"replicas": 0}, "at '/replicas': minimum: got 0, want 1"),
    ({"image": {"pullPolicy": "Sometimes"}}, "at '/image/pullPolicy': value must be one of"),
    ({"configuration": {"profiles": []}}, "at '/configuration/profiles': minItems"),
    ({"configuration": {"profiles": [{}]}}, "at '/configuration/profiles/0': missing property 'schedulerName'"),
    ({"configuration": {"kind": "Other"}}, "at '/configuration/kind': value must be 'KubeSchedulerConfiguration'"),
    (
        {"configuration": {"podMaxBackofSeconds": 3}},
        "at '/configuration': additional properties 'podMaxBackofSeconds' not allowed",
    ),
    ({"configuration": {"parallelism": "many"}}, "at '/configuration/parallelism': got string, want integer"),
    (
        {"configuration": {"profiles": [{**PROFILE, "plugins": {"filters": {}}}]}},
        "at '/configuration/profiles/0/plugins': additional properties 'filters' not allowed",
    ),
    (
        {"configuration": {"profiles": [{**PROFILE, "plugins": {"filter": {"enabled": [{"weight": 1}]}}}]}},
        "at '/configuration/profiles/0/plugins/filter/enabled/0': missing property 'name'",
    ),
    (
        {
            "configuration": {
                "profiles": [
                    {**PROFILE, "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": "Most"}}]}
                ]
            }
        },
        "at '/configuration/profiles/0/pluginConfig/0/args/scoringStrategy': got string, want object",
    ),
    (
        {"configuration": {"extenders": [{"urlPrefix": "http://a", "filterverb": "filter"}]}},
        "at '/configuration/extenders/0': additional properties 'filterverb' not allowed",
    ),
    ({"features": {"device": True}}, "at '/features': additional properties 'device' not allowed"),
    ({"featureGates": {"GangScheduling": "yes"}}, "at '/featureGates/GangScheduling': got string, want boolean"),
    (
        {"featureGates": {"GangSheduling": True}},
        "at '/featureGates': additional properties 'GangSheduling' not allowed",
    ),
    ({"featureGates": {"SidecarContainers": False}}, "at '/featureGates/SidecarContainers': value must be true"),
    (
        {"featureGates": {"TaintTolerationComparisonOperators": True}},
        "at '/featureGates/TaintTolerationComparisonOperators': value must be false",
    ),
    ({"featureGates": {"GangScheduling": True}}, "at '/featureGates': missing property 'GenericWorkload'"),
    (
        {"featureGates": {"GangScheduling": True, "GenericWorkload": False}},
        "at '/featureGates/GenericWorkload': value must be true",
    ),
    ({"asDefaultScheduler": "yes"}, "at '/asDefaultScheduler': got string, want boolean"),
    ({"plugins": {"classes": ["A"]}}, "at '/plugins/classes/0': 'A' does not match pattern"),
    ({"extraArgs": ["run"]}, "at '/extraArgs/0': 'run' does not match pattern"),
    ({"podDisruptionBudget": {"maxUnavailable": "one"}}, "at '/podDisruptionBudget/maxUnavailable'"),
    ({"topologySpread": {"whenUnsatisfiable": "Maybe"}}, "at '/topologySpread/whenUnsatisfiable'"),
    ({"resources": {"limit": {}}}, "at '/resources': additional properties 'limit' not allowed"),
    ({"monitoring": {"serviceMonitor": {"interval": "often"}}}, "at '/monitoring/serviceMonitor/interval'"),
    ({"monitoring": {"readers": [{"name": "a"}]}}, "at '/monitoring/readers/0': missing property 'namespace'"),
    ({"estimator": {"mode": "fast"}}, "at '/estimator/mode': value must be one of 'parity', 'accurate'"),
    ({"estimator": {"members": ["A_b"]}}, "at '/estimator/members/0': 'A_b' does not match pattern"),
    ({"fleets": {"staleAfter": "soon"}}, "at '/fleets/staleAfter': 'soon' does not match pattern"),
    ({"fleets": {"prices": {"large": -1}}}, "at '/fleets/prices/large': minimum: got -1, want 0"),
    ({"fleets": {"members": ["a"]}}, "at '/fleets': additional properties 'members' not allowed"),
    ({"provisioner": {"provider": "aws"}}, "at '/provisioner/provider': value must be one of 'plan-only', 'sandbox'"),
    ({"provisioner": {"rules": "ours"}}, "at '/provisioner/rules': value must be one of 'karpenter', 'podium'"),
    ({"coscheduling": {"args": {"permitWaitingTime": 1}}}, "at '/coscheduling/args': additional properties"),
    ({"tracing": {"endpoint": "collector:4318"}}, "at '/tracing/endpoint': 'collector:4318' does not match pattern"),
    ({"tracing": {"samplingRatePerMillion": 1000001}}, "at '/tracing/samplingRatePerMillion': maximum: got 1.000001"),
    # What a schema cannot say.
    (
        {"tracing": {"samplingRatePerMillion": 1}},
        "tracing.samplingRatePerMillion: has no effect without tracing.endpoint",
    ),
    (
        {"extraArgs": ["--tracing-endpoint=http://a"]},
        "extraArgs[0]: the chart sets --tracing-endpoint from other values",
    ),
    (
        {
            "configuration": {
                "profiles": [{**PROFILE, "plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}]
            }
        },
        "configuration.profiles[0].plugins.multiPoint.enabled: coscheduling.enabled enables Coscheduling",
    ),
    (
        {"provisioner": {"extraArgs": ["--provider=sandbox"]}},
        "provisioner.extraArgs[0]: the chart sets or relies on --provider",
    ),
    ({"scheduler": {"enabled": False}}, "scheduler.enabled: nothing is installed if"),
    (
        {"configuration": {"profiles": [PROFILE, PROFILE]}},
        "configuration.profiles[1].schedulerName: another profile is named podium",
    ),
    (
        {
            "features": {"devices": False},
            "configuration": {
                "profiles": [{**PROFILE, "plugins": {"filter": {"enabled": [{"name": "DynamicResources"}]}}}]
            },
        },
        "configuration.profiles[0].plugins.filter.enabled: DynamicResources belongs to a feature that is off",
    ),
    ({"configuration": {"leaderElection": {"leaderElect": False}}}, "replicas: more than one needs"),
    (
        {"configuration": {"leaderElection": {"resourceName": "kube-scheduler"}}},
        "configuration.leaderElection.resourceName: kube-scheduler holds that lease",
    ),
    (
        {"configuration": {"leaderElection": {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}}},
        "choose another name, or set asDefaultScheduler",
    ),
    (
        {"configuration": {"profiles": [PROFILE, {"schedulerName": "default-scheduler"}]}},
        "configuration.profiles[1].schedulerName: podium would bind every pod that names no scheduler",
    ),
    (
        {"asDefaultScheduler": True},
        "asDefaultScheduler: no profile in configuration.profiles is named default-scheduler",
    ),
    (
        {"extraArgs": ["--as-default-scheduler"]},
        "extraArgs[0]: the chart sets --as-default-scheduler from other values",
    ),
    ({"plugins": {"files": {"a.txt": ""}}}, "plugins.files: a.txt is not the name of a Python file"),
    ({"plugins": {"classes": ["a.py:A"]}}, "plugins.classes[0]: a.py:A is in no file of plugins.files"),
    ({"plugins": {"files": {"b.py": ""}, "classes": ["a.py:A"]}}, "plugins.classes[0]: plugins.files has no a.py"),
    ({"plugins": {"files": {"b.py": ""}, "image": "a"}}, "plugins.image: plugin files come from plugins.files already"),
    ({"extraArgs": ["--config=/a"]}, "extraArgs[0]: the chart sets --config from other values"),
    ({"extraArgs": ["--ui"]}, "extraArgs[0]: the chart sets --ui from other values"),
    ({"extraArgs": ["-v", "--reload"]}, "extraArgs[1]: the chart sets --reload from other values"),
    ({"extraArgs": ["--leader-elect-resource-name=a"]}, "extraArgs[0]: the chart sets --leader-elect-resource-name"),
    ({"serviceAccount": {"create": False}}, "serviceAccount.name: is needed if serviceAccount.create is false"),
    ({"podDisruptionBudget": {"minAvailable": 1}}, "podDisruptionBudget.minAvailable: set either this or"),
    (
        {"podDisruptionBudget": {"minAvailable": 2, "maxUnavailable": None}},
        "podDisruptionBudget.minAvailable: 2 of 2 replicas would block every drain",
    ),
    ({"monitoring": {"podMonitor": {"enabled": True}}}, "monitoring.podMonitor.tokenSecret.name: is needed"),
    ({"estimator": {"enabled": True}}, "estimator.members: names the member clusters, and is empty"),
    ({"fleets": {"verifyClients": True}}, "fleets.verifyClients: needs fleets.certificatesSecret"),
    ({"fleets": {"extraArgs": ["--use-stale"]}}, "fleets.extraArgs[0]: the chart sets or relies on --use-stale"),
]


def container(objects: list[Json], name: str = "podium") -> Json:
    [only_container] = one(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(only_container, dict)
    return only_container


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_lint_has_nothing_to_say(helm: Helm, values: Values) -> None:
    result = helm.run("lint", "--strict", "--kube-version", KUBERNETES, str(CHART), values=values)
    assert result.returncode == 0, result.stdout
    assert "[WARNING]" not in result.stdout


@pytest.mark.parametrize(("values", "added_kinds", "removed_kinds"), ADDED_OR_GONE, ids=lambda value: str(value)[:60])
def test_each_option_adds_and_removes_just_its_objects(
    helm: Helm, values: Values, added_kinds: list[str], removed_kinds: list[str]
) -> None:
    kinds = list(KINDS)
    for kind in removed_kinds:
        kinds.remove(kind)
    objects = helm.objects(values)
    assert sorted(item["kind"] for item in objects) == sorted([*kinds, *added_kinds])
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("values", "message"), WRONG, ids=lambda value: str(value)[:60])
def test_wrong_values_are_refused_by_their_key(helm: Helm, values: Values, message: str) -> None:
    assert message in helm.refusal(values)


def test_names_and_namespaces_follow_the_release(helm: Helm) -> None:
    values = {**EVERYTHING, "serviceAccount": {}}
    objects = helm.objects(values, release="mine", namespace="scheduling")
    fixed_names = {"karmada-scheduler-estimator-m1", "podgroups.scheduling.x-k8s.io"}
    names = {item["metadata"]["name"] for item in objects} - fixed_names
    assert all(name.startswith("mine") for name in names)
    assert "podium" not in names
    elsewhere = [item for item in objects if item["metadata"].get("namespace") not in (None, "scheduling")]
    # There, and nowhere else, it is written whose client certificates are believed.
    assert {(item["kind"], item["metadata"]["namespace"]) for item in elsewhere} == {
        ("Role", "kube-system"),
        ("RoleBinding", "kube-system"),
    }
    for item in objects:
        for subject in item.get("subjects", []):
            assert subject["namespace"] == (
                "monitoring" if item["metadata"]["name"] == "mine-metrics" else "scheduling"
            )
    configuration = yaml.safe_load(one(objects, "ConfigMap", "mine")["data"]["config.yaml"])
    assert configuration["leaderElection"] == {"resourceName": "mine", "resourceNamespace": "scheduling"}


def test_shards_run_as_a_stateful_set_and_may_list_their_leases(helm: Helm) -> None:
    objects = helm.objects({"shards": {"group": "podium", "key": "example.com/rack"}, "replicas": 3})
    spec = one(objects, "StatefulSet", "podium")["spec"]
    assert (spec["replicas"], spec["podManagementPolicy"]) == (3, "Parallel")
    arguments = spec["template"]["spec"]["containers"][0]["args"]
    assert {"--shards=podium", "--shard-key=example.com/rack"} <= set(arguments)
    rules = [rule for item in objects if item["kind"] == "Role" for rule in item["rules"]]
    assert {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "update"]} in rules


def test_values_arrive_in_the_pods(helm: Helm) -> None:
    objects = helm.objects(EVERYTHING)
    spec = one(objects, "Deployment", "podium")["spec"]
    template = spec["template"]
    assert spec["replicas"] == 3
    assert template["metadata"]["labels"]["a"] == template["metadata"]["annotations"]["a"] == "b"
    for field in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity"):
        assert template["spec"][field] == EVERYTHING[field]
    assert template["spec"]["serviceAccountName"] == "scheduler"
    [constraint] = template["spec"]["topologySpreadConstraints"]
    assert EVERYTHING["topologySpread"].items() <= constraint.items()
    main_container = container(objects)
    assert (main_container["image"], main_container["imagePullPolicy"]) == ("registry.example/podium:1", "Always")
    assert main_container["args"] == [
        *("run", "--config=/etc/podium/config.yaml", "--secure-port=10259"),
        *("--plugin=/etc/podium-plugins/a.py:A", "--plugin=ours.b:B"),
        "--feature-gates=GangScheduling=false,GenericWorkload=true",
        "--ui",
        *("--tracing-endpoint=http://collector:4318", "--tracing-sampling-rate-per-million=1000000"),
        *EVERYTHING["extraArgs"],
    ]
    assert main_container["env"] == EVERYTHING["extraEnv"]
    profiles = yaml.safe_load(one(objects, "ConfigMap", "podium")["data"]["config.yaml"])["profiles"]
    for profile in profiles:
        assert profile["plugins"]["multiPoint"] == {
            "enabled": [{"name": "Coscheduling"}],
            "disabled": [{"name": "PrioritySort"}],
        }
        assert profile["pluginConfig"] == [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 30}}]
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    assert {mount["name"] for mount in main_container["volumeMounts"]} == set(volumes) == {"config", "plugins", "ca"}
    assert volumes["plugins"]["configMap"] == {"name": "podium-plugins"}
    assert one(objects, "ConfigMap", "podium-plugins")["data"] == EVERYTHING["plugins"]["files"]
    assert one(objects, "PodDisruptionBudget")["spec"]["minAvailable"] == "50%"
    assert container(objects, "podium-provisioner")["args"][2:] == [
        *("--provider=karpenter", "--namespace=kube-system", "--rules=podium"),
        "--catalogue=/etc/types/all.json",
    ]
    assert container(objects, "podium-provisioner")["volumeMounts"] == EVERYTHING["provisioner"]["extraVolumeMounts"]
    assert container(objects, "podium-estimator")["args"][-2:] == ["--mode=accurate", "--on-unsynced=max"]
    fleets = container(objects, "podium-fleets")
    assert fleets["args"][5:] == [
        *("--tls-cert-file=/etc/podium-pki/tls.crt", "--tls-private-key-file=/etc/podium-pki/tls.key"),
        *("--grpc-client-ca-file=/etc/podium-pki/ca.crt", "--stale-after=1m30s", "--use-stale"),
        *("--prices=/etc/prices/prices.yaml", "-v"),
    ]
    prices = yaml.safe_load(one(objects, "ConfigMap", "podium-fleets-prices")["data"]["prices.yaml"])
    assert prices == EVERYTHING["fleets"]["prices"]
    pod = one(objects, "Deployment", "podium-fleets")["spec"]["template"]["spec"]
    assert {mount["name"] for mount in fleets["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    [subject] = one(objects, "ClusterRoleBinding", "podium-metrics")["subjects"]
    assert subject == {"kind": "ServiceAccount", "namespace": "monitoring", "name": "prometheus"}


def test_plugins_come_from_a_config_map_or_an_image_as_well(helm: Helm) -> None:
    for source, volume in (
        ({"configMap": "policies"}, {"configMap": {"name": "policies"}}),
        ({"image": "registry.example/policies:1"}, {"image": {"reference": "registry.example/policies:1"}}),
    ):
        objects = helm.objects({"plugins": {**source, "classes": ["a.py:A"]}})
        [_, plugins] = one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
        assert plugins == {"name": "plugins", **volume}
        assert "--plugin=/etc/podium-plugins/a.py:A" in container(objects)["args"]


def test_pods_restart_when_their_configuration_changes_and_not_otherwise(helm: Helm) -> None:
    def annotations(values: Values) -> Json:
        metadata = one(helm.objects(values), "Deployment")["spec"]["template"]["metadata"]
        checksums = metadata.get("annotations", {})
        assert isinstance(checksums, dict)
        return checksums

    profiles = {"configuration": {"profiles": [{"schedulerName": "other"}]}}
    assert annotations({}) == annotations({"replicas": 1, "networkPolicy": {"enabled": True}})
    assert annotations({}) != annotations(profiles)
    assert annotations({**profiles, "restartOnChange": False}) == {}
    assert "--reload" not in container(helm.objects({}))["args"]
    reloading = container(helm.objects({"restartOnChange": False}))
    assert "--reload" in reloading["args"]
    assert [variable["name"] for variable in reloading["env"]] == ["POD_NAME", "POD_NAMESPACE", "POD_UID"]


def test_whole_configurations_are_taken_as_they_are(helm: Helm) -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "InterPodAffinityArgs", "hardPodAffinityWeight": 5}
    own = {"name": "Ours", "args": {"anything": [{"at": "all"}]}}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaseDuration": "20s", "resourceNamespace": "leases"},
        "clientConnection": {"qps": 1234567, "burst": 2000000},
        "profiles": [
            {"schedulerName": "a", "pluginConfig": [{"name": "InterPodAffinity", "args": args}, own]},
            {"schedulerName": "b", "percentageOfNodesToScore": 50},
        ],
        "extenders": [{"urlPrefix": "https://licences:8888", "filterVerb": "filter", "weight": 5}],
    }
    objects = helm.objects({"configuration": configuration})
    lease = {"leaseDuration": "20s", "resourceNamespace": "leases", "resourceName": "podium"}
    text = one(objects, "ConfigMap")["data"]["config.yaml"]
    assert yaml.safe_load(text) == {**configuration, "leaderElection": lease}
    roles = {item["metadata"]["namespace"]: item for item in objects if item["kind"] == "Role"}
    assert sorted(roles) == ["kube-system", "leases"]
    assert roles["leases"]["rules"][1]["resourceNames"] == ["podium"]


def test_kube_schedulers_place_is_taken_with_its_name_and_its_lease(helm: Helm) -> None:
    values: Values = {
        "asDefaultScheduler": True,
        "configuration": {"profiles": [{"schedulerName": "default-scheduler"}]},
    }
    objects = helm.objects(values, namespace="scheduling")
    assert "--as-default-scheduler" in container(objects)["args"]
    assert "--as-default-scheduler" not in container(helm.objects({}))["args"]
    configuration = yaml.safe_load(one(objects, "ConfigMap")["data"]["config.yaml"])
    assert configuration["leaderElection"] == {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}
    leases = [
        (role["metadata"]["namespace"], rule.get("resourceNames"), rule["verbs"])
        for role in objects
        if role["kind"] == "Role"
        for rule in role["rules"]
        if rule["resources"] == ["leases"]
    ]
    assert leases == [("kube-system", None, ["create"]), ("kube-system", ["kube-scheduler"], ["get", "update"])]
    values["configuration"]["leaderElection"] = {"resourceName": "ours"}
    configuration = yaml.safe_load(one(helm.objects(values), "ConfigMap")["data"]["config.yaml"])
    assert configuration["leaderElection"]["resourceName"] == "ours"


def test_the_lease_is_not_of_the_chart_since_a_podium_may_have_made_it_before(helm: Helm) -> None:
    for values in ({}, EVERYTHING):
        assert "Lease" not in {item["kind"] for item in helm.objects(values)}
