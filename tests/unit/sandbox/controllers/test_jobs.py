def conditions(world):
    status = world.store.get("jobs", "web").get("status") or {}
    return [each["type"] for each in status.get("conditions") or ()]


def test_a_job_runs_so_many_at_a_time_until_so_many_have_succeeded(world, workload):
    world.store.create(workload("Job", restart="Never", parallelism=2, completions=3))
    world.settle(running=True)
    assert len(world.names()) == 2
    for name in sorted(world.names()):
        world.set_phase(name, "Succeeded")
    world.settle(running=True)
    assert world.store.get("jobs", "web")["status"]["active"] == 1
    for pod in world.pods():
        world.set_phase(pod["metadata"]["name"], "Succeeded")
    world.settle()
    status = world.store.get("jobs", "web")["status"]
    assert (status["succeeded"], status["active"], conditions(world)) == (3, 0, ["SuccessCriteriaMet", "Complete"])
    assert len(world.pods()) == 3


def test_a_pod_that_has_succeeded_counts_though_it_is_deleted(world, workload):
    world.store.create(workload("Job", restart="Never", completions=2))
    world.settle(running=True)
    [name] = world.names()
    world.set_phase(name, "Succeeded")
    world.store.delete("pods", name)
    world.settle()
    assert world.store.get("jobs", "web")["status"]["succeeded"] == 1
    assert name not in world.names()


def test_a_pod_that_is_evicted_is_replaced_until_the_limit(world, workload):
    world.store.create(workload("Job", restart="Never", backoffLimit=1))
    world.settle()
    for _ in range(2):
        assert conditions(world) == []
        [name] = world.names()
        world.store.delete("pods", name)
        world.settle()
    assert conditions(world) == ["FailureTarget", "Failed"]
    assert world.names() == set()


def test_a_suspended_job_has_no_pods_and_has_lost_nothing(world, workload):
    world.store.create(workload("Job", restart="Never", backoffLimit=0))
    world.settle()
    world.store.patch("jobs", "web", {"spec": {"suspend": True}})
    world.settle()
    assert (world.names(), conditions(world)) == (set(), [])
    world.store.patch("jobs", "web", {"spec": {"suspend": False}})
    world.settle()
    assert len(world.names()) == 1


def test_a_work_queue_is_done_when_one_has_succeeded_and_the_others_have_ended(world, workload):
    world.store.create(workload("Job", restart="Never", parallelism=2))
    world.settle(running=True)
    first, second = sorted(world.names())
    world.set_phase(first, "Succeeded")
    world.settle()
    assert conditions(world) == []
    world.set_phase(second, "Succeeded")
    world.settle()
    assert "Complete" in conditions(world)


def test_the_pods_of_a_job_go_with_it(world, workload):
    world.store.create(workload("Job", restart="Never"))
    world.settle(running=True)
    world.store.delete("jobs", "web")
    world.settle()
    assert world.names() == set()
    [pod] = world.store.list("pods")
    assert not pod["metadata"].get("finalizers")
