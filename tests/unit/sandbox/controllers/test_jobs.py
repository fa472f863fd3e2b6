import pytest

from podium.sandbox.controllers.jobs import indexes_in, indexes_text


def conditions(bench):
    status = bench.store.get("jobs", "web").get("status") or {}
    return [condition["type"] for condition in status.get("conditions") or ()]


def test_a_job_runs_so_many_at_a_time_until_so_many_have_succeeded(bench, workload):
    bench.store.create(workload("Job", restart="Never", parallelism=2, completions=3))
    bench.settle(running=True)
    assert len(bench.names()) == 2
    for name in sorted(bench.names()):
        bench.set_phase(name, "Succeeded")
    bench.settle(running=True)
    assert bench.store.get("jobs", "web")["status"]["active"] == 1
    for pod in bench.pods():
        bench.set_phase(pod["metadata"]["name"], "Succeeded")
    bench.settle()
    status = bench.store.get("jobs", "web")["status"]
    assert (status["succeeded"], status["active"], conditions(bench)) == (3, 0, ["SuccessCriteriaMet", "Complete"])
    assert len(bench.pods()) == 3


def test_a_pod_that_has_succeeded_counts_though_it_is_deleted(bench, workload):
    bench.store.create(workload("Job", restart="Never", completions=2))
    bench.settle(running=True)
    [name] = bench.names()
    bench.set_phase(name, "Succeeded")
    bench.store.delete("pods", name)
    bench.settle()
    assert bench.store.get("jobs", "web")["status"]["succeeded"] == 1
    assert name not in bench.names()


def test_a_pod_that_is_evicted_is_replaced_until_the_limit(bench, workload):
    bench.store.create(workload("Job", restart="Never", backoffLimit=1))
    bench.settle()
    for _ in range(2):
        assert conditions(bench) == []
        [name] = bench.names()
        bench.store.delete("pods", name)
        bench.settle()
        bench.pass_time(10)
        bench.settle()
    assert conditions(bench) == ["FailureTarget", "Failed"]
    assert bench.names() == set()


def test_each_failure_doubles_the_time_until_a_pod_is_replaced_up_to_ten_minutes(bench, workload):
    bench.store.create(workload("Job", restart="Never", backoffLimit=100))
    bench.settle(running=True)
    for wait_s in (10, 20, 40, 80, 160, 320, 600, 600):
        bench.store.delete("pods", *bench.names())
        bench.settle()
        bench.pass_time(wait_s - 1)
        bench.settle()
        assert bench.names() == set()
        bench.pass_time(1)
        bench.settle(running=True)
        assert len(bench.names()) == 1


def test_a_success_forgives_earlier_failures(bench, workload):
    bench.store.create(workload("Job", restart="Never", completions=9))
    bench.settle(running=True)
    for phase, wait_s in (("Failed", 10), ("Succeeded", 0), ("Failed", 10)):
        [name] = [pod["metadata"]["name"] for pod in bench.pods() if pod["status"]["phase"] == "Running"]
        # A pod ends when its Ready condition turns false.
        time = bench.store.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        bench.set_phase(name, phase, conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": time}])
        bench.settle(running=True)
        running = [pod for pod in bench.pods() if pod["status"]["phase"] == "Running"]
        assert len(running) == (not wait_s)
        bench.pass_time(wait_s)
        bench.settle(running=True)


def test_pods_that_the_job_deletes_itself_are_no_failures(bench, workload):
    bench.store.create(workload("Job", restart="Never", parallelism=3, completions=9))
    bench.settle(running=True)
    bench.store.patch("jobs", "web", {"spec": {"parallelism": 1}})
    bench.settle(running=True)
    assert "failed" not in bench.store.get("jobs", "web")["status"]
    bench.store.patch("jobs", "web", {"spec": {"parallelism": 2}})
    bench.settle(running=True)
    assert len(bench.names()) == 2


def test_what_still_runs_when_a_job_fails_has_failed_too(bench, workload):
    bench.store.create(workload("Job", restart="Never", parallelism=3, completions=9, backoffLimit=0))
    bench.settle(running=True)
    bench.set_phase(min(bench.names()), "Failed")
    bench.settle()
    assert conditions(bench) == ["FailureTarget", "Failed"]
    assert bench.store.get("jobs", "web")["status"]["failed"] == 3


def policy(action, **pattern):
    return {"podFailurePolicy": {"rules": [{"action": action} | pattern]}, "backoffLimit": 0}


def fail(bench, *, code=1, conditions=()):
    [name] = bench.names()
    time = bench.store.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    state = {"terminated": {"exitCode": code, "finishedAt": time}}
    containers = [{"name": "main", "image": "web:1", "imageID": "", "restartCount": 0, "ready": False, "state": state}]
    bench.set_phase(name, "Failed", containerStatuses=containers, conditions=list(conditions))
    bench.settle()


def test_a_rule_on_conditions_ignores_disruptions_but_waits_all_the_same(bench, workload):
    rule = policy("Ignore", onPodConditions=[{"type": "DisruptionTarget"}])
    bench.store.create(workload("Job", restart="Never", **rule))
    bench.settle(running=True)
    [first] = bench.names()
    fail(bench, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    assert conditions(bench) == []
    assert bench.names() == {first}
    bench.pass_time(10)
    bench.settle()
    assert len(bench.names()) == 2


def test_a_rule_on_exit_codes_fails_the_job(bench, workload):
    rule = policy("FailJob", onExitCodes={"operator": "In", "values": [42]}) | {"backoffLimit": 6}
    bench.store.create(workload("Job", restart="Never", **rule))
    bench.settle(running=True)
    fail(bench, code=42)
    assert conditions(bench) == ["FailureTarget", "Failed"]


def test_with_the_replacement_policy_failed_a_pod_is_replaced_once_it_has_ended(bench, workload):
    bench.store.create(workload("Job", restart="Never", podReplacementPolicy="Failed"))
    bench.settle(running=True)
    [name] = bench.names()
    bench.store.delete("pods", name)
    bench.settle()
    bench.pass_time(60)
    bench.settle()
    assert bench.names() == set()
    time = bench.store.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = [{"type": "Ready", "status": "False", "lastTransitionTime": time}]
    bench.set_phase(name, "Failed", conditions=ready)
    bench.settle()
    assert bench.names() == set()
    bench.pass_time(10)
    bench.settle()
    assert len(bench.names()) == 1


def test_a_suspended_job_has_no_pods_and_has_lost_nothing(bench, workload):
    bench.store.create(workload("Job", restart="Never", backoffLimit=0))
    bench.settle()
    bench.store.patch("jobs", "web", {"spec": {"suspend": True}})
    bench.settle()
    assert (bench.names(), conditions(bench)) == (set(), [])
    bench.store.patch("jobs", "web", {"spec": {"suspend": False}})
    bench.settle()
    assert len(bench.names()) == 1


def test_a_work_queue_is_done_when_one_has_succeeded_and_the_others_have_ended(bench, workload):
    bench.store.create(workload("Job", restart="Never", parallelism=2))
    bench.settle(running=True)
    first, second = sorted(bench.names())
    bench.set_phase(first, "Succeeded")
    bench.settle()
    assert conditions(bench) == []
    bench.set_phase(second, "Succeeded")
    bench.settle()
    assert "Complete" in conditions(bench)


def indexes(bench):
    annotations = (pod["metadata"]["annotations"] for pod in bench.pods() if pod["status"]["phase"] != "Succeeded")
    return sorted(annotation["batch.kubernetes.io/job-completion-index"] for annotation in annotations)


def test_an_indexed_job_runs_each_index_until_it_has_succeeded(bench, workload):
    bench.store.create(workload("Job", restart="Never", parallelism=2, completions=4, completionMode="Indexed"))
    bench.settle(running=True)
    assert indexes(bench) == ["0", "1"]
    pod = next(pod for pod in bench.pods() if pod["metadata"]["name"].startswith("web-1-"))
    assert pod["spec"]["hostname"] == "web-1"
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    bench.set_phase(pod["metadata"]["name"], "Succeeded")
    bench.settle(running=True)
    assert indexes(bench) == ["0", "2"]
    # A failed pod is replaced by one of its index.
    name = next(pod["metadata"]["name"] for pod in bench.pods() if "-2-" in pod["metadata"]["name"])
    bench.set_phase(name, "Failed")
    bench.settle(running=True)
    bench.pass_time(10)
    bench.settle(running=True)
    assert indexes(bench) == ["0", "2", "2"]
    while bench.store.get("jobs", "web")["status"].get("succeeded", 0) < 4:
        for running_pod in bench.pods():
            if running_pod["status"]["phase"] == "Running":
                bench.set_phase(running_pod["metadata"]["name"], "Succeeded")
        bench.settle(running=True)
    status = bench.store.get("jobs", "web")["status"]
    assert (status["completedIndexes"], status["succeeded"], status["failed"]) == ("0-3", 4, 1)
    assert "Complete" in conditions(bench)


def test_indexes_beyond_the_completions_are_given_up(bench, workload):
    bench.store.create(workload("Job", restart="Never", parallelism=3, completions=3, completionMode="Indexed"))
    bench.settle(running=True)
    bench.store.patch("jobs", "web", {"spec": {"completions": 2, "parallelism": 2}})
    bench.settle()
    assert indexes(bench) == ["0", "1"]


@pytest.mark.parametrize("text", ["", "3", "0,1", "0-2", "1,3-5,7"])
def test_indexes_are_written_as_they_are_read(text):
    assert indexes_text(indexes_in(text)) == text


def test_the_pods_of_a_job_go_with_it(bench, workload):
    bench.store.create(workload("Job", restart="Never"))
    bench.settle(running=True)
    bench.store.delete("jobs", "web")
    bench.settle()
    assert bench.names() == set()
    [pod] = bench.store.list("pods")
    assert not pod["metadata"].get("finalizers")
