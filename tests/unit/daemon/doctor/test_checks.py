"""The doctor's questions, answered by an API server that is a table."""

from __future__ import annotations

from dataclasses import replace
from email.utils import formatdate
from typing import Any

import orjson
import pytest

from podium.cli.options.configuration import Usable, usable
from podium.daemon.doctor import Finding, Report, Verdict, examine, examine_needs
from podium.lib.clock import ManualClock
from podium.objects.api_errors import ApiError, Forbidden, NotFound, ServerError, Unauthorized, Unreachable
from podium.objects.resource_types import ALL
from podium.objects.times import format_micro_time
from podium.provisioner.controller.app import ProviderName
from podium.provisioner.controller.permissions import needs

pytestmark = pytest.mark.anyio

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
EVENTS = "/apis/events.k8s.io/v1/events"


class Server:
    """Answers as a healthy one; a test takes things away."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.version: Any = {"gitVersion": "v1.36.2"}
        self.ahead_s = 0.0
        self.date: str | None = None
        self.failure: ApiError | None = None
        self.denied: dict[tuple[str, str], bool] = {}
        self.lease: Any = None
        self.lease_writers: Any = []
        self.events: Any = []
        self.pods: Any = []
        self.unserved: set[str] = set()
        self.asked: list[str] = []

    async def stream(self, path: str, **_: Any) -> Any:
        self.asked.append(path)
        if self.failure is not None:
            raise self.failure
        return _Stream(
            orjson.dumps(self.version), self.date or formatdate(self.clock.now() + self.ahead_s, usegmt=True)
        )

    async def post(self, path: str, body: bytes) -> bytes:
        self.asked.append(path)
        if path.endswith("/selfsubjectreviews"):
            return orjson.dumps({"status": {"userInfo": {"username": "system:serviceaccount:kube-system:podium"}}})
        attributes = orjson.loads(body)["spec"]["resourceAttributes"]
        resource = attributes["resource"] + (f"/{attributes['subresource']}" if attributes["subresource"] else "")
        return orjson.dumps({"status": {"allowed": (resource, attributes["verb"]) not in self.denied}})

    async def request(self, method: str, path: str, *_: Any, **__: Any) -> bytes:
        assert method == "GET", "it changes nothing"
        self.asked.append(path)
        if path == LEASE:
            if self.lease is None:
                raise NotFound("no such lease")
            return orjson.dumps({"metadata": {"managedFields": self.lease_writers}, "spec": self.lease})
        if path.startswith(EVENTS):
            if isinstance(self.events, ApiError):
                raise self.events
            return orjson.dumps({"items": self.events})
        if path.startswith("/api/v1/pods?"):
            if isinstance(self.pods, ApiError):
                raise self.pods
            return orjson.dumps({"items": self.pods})
        names = [resource_type.plural for resource_type in ALL if resource_type.path.startswith(f"{path}/")]
        return orjson.dumps({"resources": [{"name": name} for name in names if name not in self.unserved]})


class _Stream:
    def __init__(self, body: bytes, date: str) -> None:
        self._chunks = [body, b""]
        self.date = date

    async def read(self) -> bytes:
        return self._chunks.pop(0)

    def close(self) -> None:
        pass


def usable_with_election(**election: Any) -> Usable:
    good = usable(None)
    config = good.config
    election_config = replace(config.leader_election, resource_name="podium", **election)
    return replace(good, config=replace(config, leader_election=election_config))


async def findings(server: Any, **election: Any) -> list[Finding]:
    report, good = Report(), usable_with_election(**election)
    await examine(report, server, good.config, good.plugins, server.clock)
    return report.findings


async def not_ok(server: Any, **election: Any) -> list[tuple[str, Verdict, str]]:
    problems = [finding for finding in await findings(server, **election) if finding.verdict is not Verdict.OK]
    assert all(finding.advice for finding in problems)
    return [(finding.check, finding.verdict, finding.message) for finding in problems]


async def test_every_check_is_ok_if_the_server_answers_as_it_should() -> None:
    report = await findings(Server())
    assert {finding.verdict for finding in report} == {Verdict.OK}
    assert [finding.check for finding in report] == [
        *("api server", "clock", "credentials", "apis", "rights", "lease", "others")
    ]


@pytest.mark.parametrize(
    ("failure", "check", "words"),
    [
        (Unauthorized("no"), "credentials", "does not accept our credentials"),
        (Unreachable("no route"), "api server", "it cannot be reached: no route"),
        (ServerError("broken"), "api server", "does not report its version"),
    ],
)
async def test_without_an_answer_there_is_one_finding(failure: ApiError, check: str, words: str) -> None:
    server = Server()
    server.failure = failure
    [(check_name, verdict, message)] = await not_ok(server)
    assert (check_name, verdict) == (check, Verdict.ERROR)
    assert words in message
    assert server.asked == ["/version"]


@pytest.mark.parametrize("version", [{}, [], None, {"gitVersion": 1}])
async def test_what_is_no_api_server_is_asked_no_more(version: Any) -> None:
    server = Server()
    server.version = version
    [(check, verdict, message)] = await not_ok(server)
    assert (check, verdict) == ("api server", Verdict.ERROR)
    assert "does not report its version: the response has no gitVersion" in message
    assert server.asked == ["/version"]


@pytest.mark.parametrize("version", ["v1.34.0", "v1.34.5-gke.100", "v1.36.2"])
async def test_versions_within_the_skew_are_fine(version: str) -> None:
    server = Server()
    server.version = {"gitVersion": version}
    assert await not_ok(server) == []


@pytest.mark.parametrize("version", ["v1.33.9", "v1.38.0", "v2.34.0", ""])
async def test_other_versions_are_warned_about(version: str) -> None:
    server = Server()
    server.version = {"gitVersion": version}
    [(check, verdict, message)] = await not_ok(server)
    assert (check, verdict) == ("api server", Verdict.WARNING)
    assert "podium supports 1.34 to 1.37" in message


@pytest.mark.parametrize(
    ("ahead_s", "words"), [(60.0, "local clock is 60 s behind"), (-90.0, "local clock is 90 s ahead of")]
)
async def test_clocks_that_disagree_are_warned_about(ahead_s: float, words: str) -> None:
    server = Server()
    server.ahead_s = ahead_s
    [(check, verdict, message)] = await not_ok(server)
    assert (check, verdict, words in message) == ("clock", Verdict.WARNING, True)


async def test_a_server_that_does_not_tell_its_time_is_warned_about() -> None:
    server = Server()
    server.date = "noon"
    [(check, verdict, _)] = await not_ok(server)
    assert (check, verdict) == ("clock", Verdict.WARNING)


async def test_each_denied_verb_has_a_finding_with_who_needs_it_and_the_rule_to_add() -> None:
    server = Server()
    server.denied = {("pods/binding", "create"): True, ("leases", "update"): True}
    problems = [finding for finding in await findings(server) if finding.verdict is Verdict.ERROR]
    assert [finding.message for finding in problems] == [
        "not allowed to create pods/binding, which DefaultBinder needs",
        "not allowed to update leases.coordination.k8s.io podium in kube-system, which leader election needs",
    ]
    assert '{apiGroups: [""], resources: [pods/binding], verbs: [create]}' in problems[0].advice
    assert "the Role in kube-system" in problems[1].advice
    assert "resourceNames: [podium]" in problems[1].advice


async def test_an_interface_that_an_older_server_lacks_degrades_its_plugins() -> None:
    server = Server()
    server.unserved = {"volumeattachments"}
    [(check, verdict, message)] = await not_ok(server)
    assert (check, verdict) == ("apis", Verdict.WARNING)
    assert "volumeattachments at /apis/storage.k8s.io/v1, which NodeVolumeLimits reads" in message


async def test_a_server_without_nodes_is_none() -> None:
    server = Server()
    server.unserved = {"nodes"}
    [(check, verdict, _)] = await not_ok(server)
    assert (check, verdict) == ("apis", Verdict.ERROR)


def lease_spec(server: Server, age_s: float) -> Any:
    renewed = format_micro_time(server.clock.now() - age_s)
    return {"holderIdentity": "other_1", "leaseDurationSeconds": 15, "renewTime": renewed}


async def test_a_lease_that_is_held_means_standing_by_or_a_conflict() -> None:
    server = Server()
    server.lease = lease_spec(server, 3.0)
    [(check, verdict, message)] = await not_ok(server)
    assert (check, verdict) == ("lease", Verdict.WARNING)
    assert message == "kube-system/podium is held by other_1: podium would stand by until the holder ends"
    [(_, _, message)] = await not_ok(server, leader_elect=False)
    assert message == "kube-system/podium is held by other_1, and this configuration has no leader election"


async def test_a_lease_that_kube_scheduler_holds_is_an_error_without_the_flag_that_allows_it() -> None:
    server = Server()
    server.lease = lease_spec(server, 3.0)
    server.lease_writers = [{"manager": "kube-scheduler", "fieldsV1": {"f:spec": {"f:holderIdentity": {}}}}]
    [finding] = [finding for finding in await findings(server) if finding.check == "lease"]
    assert finding.verdict is Verdict.ERROR
    assert finding.message.startswith(
        "leaderElection.resourceName: kube-system/podium is held by other_1, which is kube"
    )
    assert "--as-default-scheduler" in finding.advice
    report, good = Report(), usable_with_election()
    server_of: Any = server
    await examine(report, server_of, good.config, good.plugins, server.clock, is_default_scheduler=True)
    [finding] = [finding for finding in report.findings if finding.check == "lease"]
    assert finding.verdict is Verdict.WARNING


async def test_a_lease_that_ran_out_is_nobodys() -> None:
    server = Server()
    server.lease = lease_spec(server, 60.0)
    assert await not_ok(server) == []


async def test_a_finding_names_another_scheduler_that_binds_under_our_name() -> None:
    server = Server()
    times = {"default-scheduler-a": 10.0, "default-scheduler-b": 1000.0}
    server.events = [
        {"reportingInstance": name, "eventTime": format_micro_time(server.clock.now() - age_s)}
        for name, age_s in times.items()
    ]
    [(check, verdict, message)] = await not_ok(server)
    assert (check, verdict) == ("others", Verdict.WARNING)
    assert message == "default-scheduler-a has bound pods as default-scheduler in the last 120 s"
    [events_path] = [path for path in server.asked if path.startswith(EVENTS)]
    assert "fieldSelector=reason%3DScheduled%2CreportingController%3Ddefault-scheduler" in events_path


async def test_where_events_may_not_be_listed_nobody_can_tell() -> None:
    server = Server()
    server.events = Forbidden("no")
    assert "others" not in [finding.check for finding in await findings(server)]


async def test_a_finding_names_pods_that_wait_under_a_misspelt_name() -> None:
    server = Server()
    names = {"a": ("default-schedular", 100.0), "b": ("default-schedular", 40.0), "c": ("default-schedular", 5.0)}
    names |= {"d": ("volcano", 100.0), "e": ("default-scheduler", 100.0)}
    server.pods = [
        {
            "metadata": {
                "namespace": "shop",
                "name": name,
                "creationTimestamp": format_micro_time(server.clock.now() - age_s),
            },
            "spec": {"schedulerName": scheduler},
        }
        for name, (scheduler, age_s) in names.items()
    ]
    [(check, verdict, message)] = await not_ok(server)
    assert (check, verdict) == ("pods", Verdict.WARNING)
    assert message == (
        "2 wait for a scheduler named default-schedular, such as shop/a; a profile here is named default-scheduler"
    )
    server.pods = Forbidden("no")
    assert await not_ok(server) == []


def test_a_report_is_good_with_warnings_and_bad_with_errors() -> None:
    report = Report()
    report.ok("a", "fine")
    report.warn("b", "so so", "look")
    assert report.is_good
    report.fail("c", "bad", "mend it")
    assert report.to_json() == {
        "ok": False,
        "findings": [
            {"check": "a", "verdict": "ok", "message": "fine", "advice": ""},
            {"check": "b", "verdict": "warning", "message": "so so", "advice": "look"},
            {"check": "c", "verdict": "error", "message": "bad", "advice": "mend it"},
        ],
    }


async def provisioners(server: Server, provider: ProviderName) -> list[tuple[str, Verdict, str]]:
    report = Report()
    await examine_needs(report, server, needs(provider), server.clock)  # type: ignore[arg-type]
    return [
        (finding.check, finding.verdict, finding.advice)
        for finding in report.findings
        if finding.verdict is not Verdict.OK
    ]


async def test_a_finding_names_the_role_that_a_provisioner_lacks() -> None:
    server = Server()
    server.denied = {("nodes", "delete"): True}
    assert all(check != "rights" for check, *_ in await provisioners(server, "plan-only"))
    [advice] = [advice for check, _, advice in await provisioners(server, "sandbox") if check == "rights"]
    assert advice.endswith("(deploy/provisioner has it)")


async def test_a_provisioner_that_writes_node_claims_needs_them_to_be_served() -> None:
    """The table of this server has none of Karpenter's kinds."""
    verdicts = {advice: verdict for _, verdict, advice in await provisioners(Server(), "karpenter")}
    assert verdicts["install its CustomResourceDefinition"] is Verdict.ERROR
    assert Verdict.ERROR not in {verdict for _, verdict, _ in await provisioners(Server(), "sandbox")}
