"""The parts of one scheduler, wired to an API server: every component of the scheduling path is made here.

Never starts anything: `daemon.app` runs the tasks, and a test or a simulation may run them by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from podium.binder import (
    Binder,
    ExtenderPool,
    PodsInPreBind,
    PreemptionExecutor,
    PreemptionLoops,
    RunningPreemptions,
    WaitingPods,
)
from podium.client.dispatcher import Requester
from podium.client.informer_set import InformerSet
from podium.cluster import Cache, pod_usage_in
from podium.config import KubeSchedulerConfiguration, Profile
from podium.daemon.backlog import Backlog
from podium.daemon.binding_cycles import BindingCycles
from podium.daemon.boundary import Boundary
from podium.daemon.companions import PREEMPTING, companion_tasks, demand_same_companions
from podium.daemon.conflicts import Conflicts
from podium.daemon.decisions import DecisionExecutor
from podium.daemon.failures import FailureHandler
from podium.daemon.gang_stories import GangStories
from podium.daemon.handle import PluginHandle
from podium.daemon.handlers import BrokenObjects, NodeHandler
from podium.daemon.loop import SchedulingLoop
from podium.daemon.new_plugins import NewPlugins, is_users
from podium.daemon.observers import Observers, read_statistics
from podium.daemon.options import Options
from podium.daemon.pod_groups import PodGroupAttempts
from podium.daemon.pod_handler import PodHandler
from podium.daemon.resource_handlers import add_resource_handlers
from podium.daemon.restarts import demand_no_restart
from podium.daemon.verdict_log import explainer_for
from podium.daemon.writes import Writes
from podium.engine.placing import Engine
from podium.framework.contract.handle import Handle
from podium.framework.contract.plugin import Plugin
from podium.framework.cycle.extenders import Extenders
from podium.framework.cycle.scoring import NearBest, choose
from podium.framework.profile.runtime import Framework, construct, names_to_construct
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.node_metrics import MetricsSource
from podium.objects.resource_types import NODES, POD_GROUPS, PODS
from podium.queues import (
    Nominator,
    PodBackoff,
    QueuedPodGroups,
    QueueProfile,
    QueueState,
    QueueTimes,
    SchedulingQueue,
    build_hint_map,
)
from podium.server.election import Term
from podium.server.supervision import Tasks
from podium.server.wakeup import WakeUp
from podium.telemetry import Metrics, verbosity

if TYPE_CHECKING:
    from podium.daemon.followed_kubeconfig import FollowedKubeconfig

_NEAR_BEST_MARGIN: Final = 10

T = TypeVar("T")


class Scheduler:
    """A scheduler with its parts. Faces read them through its attributes.

    `kubeconfig` is where its credentials come from, if they come from a kubeconfig; `pods_aside` returns the pods that
    the store of pods lacks, as they do not concern this member of a group of shards.

    Args:
        informers: get the handlers; they must not have started.
        observers: hear what the components report.
        term: the leadership; None without leader election.
        boundary: what comes from outside passes through it.
    """

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        options: Options,
        session: Requester,
        informers: InformerSet,
        observers: Observers,
        *,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        term: Term | None = None,
        boundary: Boundary | None = None,
    ) -> None:
        self.scheduler_names = frozenset(profile.scheduler_name for profile in config.profiles)
        self.session, self.informers = session, informers
        self.clock, self.metrics = clock, metrics
        self.boundary = boundary = boundary or Boundary()
        self._decision_clock = boundary.clock(clock)
        self.config, self.classes = config, options.plugins
        self.refused_configuration: Callable[[], str] = str
        self.pods_aside: Callable[[], Iterable[Pod]] = tuple
        self.kubeconfig: FollowedKubeconfig | None = None
        self.options = options
        self._random, self._term = boundary.random(random), term
        self._pods = informers.informer(PODS)
        self._wake_up = WakeUp()
        self._waiting_pods, self._pods_in_pre_bind = WaitingPods(self._decision_clock), PodsInPreBind()
        self._observers = observers
        self._extenders = Extenders(config.extenders, self._random)

        self.writes = Writes(
            session,
            config.client_connection,
            clock,
            observer=observers.requests.observer,
            is_muted=lambda: not boundary.writes_events or (term is not None and not term.is_holding),
            make_client=boundary.api_client,
        )
        self.extender_pool = ExtenderPool(
            self._extenders,
            self.writes.client,
            metrics,
            # An extender that binds writes to the cluster like podium itself, so it needs the lease, too.
            may_bind=(lambda: True) if term is None else term.may_write,
        )
        self._groups = groups = None if options.pod_groups is None else QueuedPodGroups(options.pod_groups)
        states = None if groups is None else groups.states
        self.cache = Cache(BrokenObjects(metrics), pod_usage_in(config.release), pod_groups=states)
        self._preemptions = self._make_running_preemptions()
        nominator = Nominator(self._pods.get)
        self.frameworks = self._make_frameworks(nominator)
        self.queue = self._make_queue(nominator)
        # The plugins need the groups, the queue needs the plugins, and the groups need the queue.
        if groups is not None:
            groups.use_queue(self.queue)
        self.conflicts = Conflicts(self.cache, clock, metrics, self.writes.client.read_failure)
        if options.avoids_conflicts:
            self.writes.client.refuse_bindings_if(self.conflicts.is_too_late)
        self._backlog = self._make_backlog()
        self.conflicts.on_confirmed(self._backlog.tell_progress)
        self._failures = FailureHandler(
            self.queue, self._pods.get, self.writes.recorder, metrics, clock, observers.attempts.observer
        )
        self.binding_cycles = self._make_binding_cycles()
        self._preemption = self._make_preemption()
        self.loop = self._make_loop()
        informers.consistency.on_consistent(boundary.signal(self._wake_up.set))
        self._handle_events()
        self._companion_tasks = companion_tasks(
            self.frameworks.values(), self.queue, self.writes.client, informers, self._decision_clock
        )
        self._export_statistics()

    @property
    def tasks(self) -> Tasks:
        """The tasks that run while this process schedules."""
        return {
            "conflicts": self.conflicts.run,
            "confirmations": self.binding_cycles.confirmations.run,
            "preemption loops": self._preemption.wake_released,
            "scheduling loop": self.loop.run,
            **self._companion_tasks,
        }

    def leader(self) -> str | None:
        """Return the replica that schedules in place of this one; "" if unknown; None if this process schedules."""
        return None if self._term is None or self._term.is_holding else self._term.holder

    def share(self, make: Callable[[Handle], T]) -> T:
        """Return what the plugins of all profiles share; see `Handle.shared`."""
        return self._handle.shared(make)

    @property
    def metrics_sources(self) -> Mapping[str, MetricsSource]:
        """The sources of node metrics that plugins have asked for, by name."""
        return self._handle.metrics_sources

    @property
    def gang_stories(self) -> GangStories:
        """The stories of gangs, for pages that explain them."""
        groups = None if self._groups is None else self.informers.informer(POD_GROUPS)
        return GangStories(lambda: self.frameworks, self._groups, groups, self._waiting_pods, self.cache.pod)

    # ------------------------------------------------------------ deciding

    def _make_frameworks(self, nominator: Nominator) -> dict[str, Framework]:
        self._handle = handle = PluginHandle(
            self._decision_clock,
            self._random,
            self.writes.client,
            self._preemptions,
            self._waiting_pods,
            nominator,
            self.writes.recorder,
            self.cache,
            self.informers,
            self._groups,
            release=self.config.release,
            # The queue is made after the plugins.
            move_to_active=lambda pods, after_s: self.queue.activate(pods, after_s),  # noqa: PLW0108
            reading=self.boundary.reading,
            scheduler_names=self.scheduler_names,
            kubeconfig=self.options.kubeconfig or self.config.client_connection.kubeconfig or None,
        )
        frameworks = {
            profile.scheduler_name: Framework(profile, self.classes, handle, self._observers.plugins.observer)
            for profile in self.config.profiles
        }
        for framework in frameworks.values():
            # It only measures with it.
            framework.clock = self.clock
        return frameworks

    def _queue_profiles(self, frameworks: Mapping[str, Framework]) -> list[QueueProfile]:
        has_extenders = bool(self.config.extenders)
        return [
            QueueProfile(
                name,
                framework.pre_enqueue,
                build_hint_map(
                    framework.plugins.values(),
                    framework.release.events,
                    has_extenders=has_extenders,
                    may_close_nodes=True,
                ),
            )
            for name, framework in frameworks.items()
        ]

    def _make_queue(self, nominator: Nominator) -> SchedulingQueue:
        config = self.config
        return SchedulingQueue(
            self._queue_profiles(self.frameworks),
            # All profiles have the same QueueSort plugin, which the configuration's validation demands.
            next(iter(self.frameworks.values())).queue_sort,
            self._decision_clock,
            self._pods.get,
            wake=self._wake_up.set,
            times=QueueTimes(
                PodBackoff(config.pod_initial_backoff_s, config.pod_max_backoff_s),
                self.options.pod_max_in_unschedulable_s,
            ),
            observer=self._observers.queue.observer,
            nominator=nominator,
            # What people read shows the time of day, also in a replay, whose decisions have a clock of their own.
            listing_clock=self.clock,
            groups=self.options.pod_groups,
            release=config.release,
        )

    def _make_loop(self) -> SchedulingLoop:
        self._engine = engine = Engine(
            self.cache,
            self.queue.nominator,
            self.config.percentage_of_nodes_to_score,
            self._extenders,
            # Replicas that choose the same best node collide on every pod; near ties are worth less than that.
            NearBest(self._random, _NEAR_BEST_MARGIN) if self.options.avoids_conflicts else choose,
            explainer_for(verbosity()),
            # Scores of an attempt are kept only for the recorder, and take hundreds of bytes for each.
            keeps_scores=self.options.recorder_bytes > 0,
        )
        executor = DecisionExecutor(
            engine,
            self.binding_cycles,
            self._preemption,
            self._failures,
            self.writes.statuses,
            self._backlog,
            self.metrics,
            self.clock,
            self._observers.attempts.observer,
            groups=self.config.release.served(POD_GROUPS),
        )
        return SchedulingLoop(
            self.frameworks,
            self.queue,
            self.cache,
            engine,
            executor,
            self._failures,
            self._backlog,
            self.boundary.stores(self.informers.consistency),
            self.writes.recorder,
            self.metrics,
            self._decision_clock,
            ask=self.extender_pool.answer,
            compute=self.boundary.compute,
            wake_up=self._wake_up,
            groups=None
            if self._groups is None
            else PodGroupAttempts(engine, self.frameworks, self._groups, self.informers.informer(POD_GROUPS)),
        )

    def new_plugins(self, config: KubeSchedulerConfiguration, classes: Mapping[str, type[Plugin]]) -> NewPlugins:
        """Construct those plugins of users that another configuration adds or changes. They are not in use yet.

        Their code may do anything and never return, so this may be called in another thread while pods are scheduled.

        Raises:
            RestartNeededError, ConfigError, PluginError: it cannot be used.
        """
        demand_no_restart(self.config, config)
        # Watches cannot be added once informers run, so the plugins get those that exist; nothing opens before
        # `reload`.
        new = NewPlugins(replace(self._handle, watches=frozenset(self.informers.resources), opened=threading.Event()))
        for profile in config.profiles:
            kept_plugins = self._kept_plugins(profile, classes)
            plugins = {
                name: construct(classes[name], profile, new.handle)
                for name in names_to_construct(profile, classes)
                if name not in kept_plugins and is_users(classes[name])
            }
            # Their events are asked for again once they are in use; if that does not end, it should be here.
            build_hint_map(plugins.values(), config.release.events)
            new.by_profile[profile.scheduler_name] = plugins
        return new

    def reload(
        self, config: KubeSchedulerConfiguration, classes: Mapping[str, type[Plugin]], new: NewPlugins
    ) -> tuple[str, ...]:
        """Decide by another configuration from the next attempt on, and return the profiles that have changed.

        A plugin whose class and args are as before stays, with all that it knows. An attempt under way ends as it
        began. Pods that were rejected or gated are tried again.

        Args:
            new: what `new_plugins` has made of the same configuration.

        Raises:
            RestartNeededError, ConfigError, PluginError: it cannot be used; then nothing has changed.
        """
        demand_no_restart(self.config, config)
        frameworks = {
            profile.scheduler_name: self._reload_framework(profile, classes, new) for profile in config.profiles
        }
        profiles = self._queue_profiles(frameworks)
        profile_names = tuple(name for name, framework in frameworks.items() if framework is not self.frameworks[name])
        # Nothing below can fail, as a reload must not stop half way.
        new.open()
        self.config, self.classes = config, classes
        self._engine.percentage_of_nodes_to_score = config.percentage_of_nodes_to_score
        self.frameworks.update(frameworks)
        self.queue.reload(profiles)
        return profile_names

    def _kept_plugins(self, profile: Profile, classes: Mapping[str, type[Plugin]]) -> dict[str, Plugin]:
        """Return the plugins of a profile that stay in use when it becomes this one."""
        former = self.config.profile(profile.scheduler_name)
        assert former is not None
        return {
            name: plugin
            for name, plugin in self.frameworks[profile.scheduler_name].plugins.items()
            # A plugin that stays keeps its state, such as gangs that wait, which a new one would have lost.
            if classes.get(name) is type(plugin) and former.args_of(name) == profile.args_of(name)
        }

    def _reload_framework(self, profile: Profile, classes: Mapping[str, type[Plugin]], new: NewPlugins) -> Framework:
        name = profile.scheduler_name
        current, kept_plugins = self.frameworks[name], self._kept_plugins(profile, classes)
        if profile == self.config.profile(name) and kept_plugins.keys() == current.plugins.keys():
            return current
        plugins = {**kept_plugins, **new.by_profile[name]}
        framework = Framework(profile, classes, new.handle, self._observers.plugins.observer, plugins)
        framework.clock = self.clock
        demand_same_companions(current, framework)
        return framework

    def _is_protected(self, victim: Pod) -> bool:
        """Return True if the pod belongs to another scheduler and the options exempt such pods from preemption."""
        return not self.options.preempts_pods_of_others and victim.spec.scheduler_name not in self.scheduler_names

    # ------------------------------------------------------------ carrying decisions out

    def _make_binding_cycles(self) -> BindingCycles:
        writes = self.writes
        binder = Binder(
            self.clock,
            statuses=writes.client,
            events=writes.recorder,
            observer=self._observers.plugins.observer,
            waiting_pods=self._waiting_pods,
            pods_in_pre_bind=self._pods_in_pre_bind,
            extenders=self.extender_pool if self._extenders else None,
        )
        return BindingCycles(
            binder,
            self.cache,
            self.queue,
            self._failures,
            writes.statuses,
            self.conflicts,
            self._backlog,
            self.metrics,
            self._observers.attempts.observer,
            is_bound=writes.client.is_bound,
        )

    def _make_backlog(self) -> Backlog:
        return Backlog(
            self.boundary.reading(lambda: self.writes.dispatcher.backlog() + self.extender_pool.backlog()),
            self.boundary.reading(self.conflicts.unconfirmed_count),
            avoids_conflicts=self.options.avoids_conflicts,
        )

    def _make_running_preemptions(self) -> RunningPreemptions:
        observer = self._observers.preemption.observer
        loops = PreemptionLoops(self._decision_clock, self.cache.pods_on, self.writes.recorder.record, observer)
        return RunningPreemptions(self._pods.get, observer, self.clock, is_protected=self._is_protected, loops=loops)

    def _make_preemption(self) -> PreemptionExecutor:
        cache, queue = self.cache, self.queue
        return PreemptionExecutor(
            self.writes.client,
            self.writes.recorder,
            self._preemptions,
            plugin=PREEMPTING,
            waiting_pods=self._waiting_pods,
            pods_in_pre_bind=self._pods_in_pre_bind,
            nominated_to=queue.nominated_pods_for_node,
            activate=lambda pod: queue.activate([pod]),
            is_gated=lambda pod: queue.state_of(pod) is QueueState.GATED,
            takes_room=lambda uid: cache.pod(uid) is not None,
            release=self.config.release,
        )

    # ------------------------------------------------------------ the watches, and the metrics

    def _make_pod_handler(self) -> PodHandler:
        make: Callable[..., PodHandler] = PodHandler
        if self.options.shards is not None:
            # Imported here: most daemons are no shards.
            from podium.daemon.shards.pod_handler import ShardPodHandler

            make = partial(ShardPodHandler, self.share)
        return make(
            self.cache,
            self.queue,
            self._waiting_pods,
            self.writes.recorder,
            self.scheduler_names,
            self.conflicts,
            self.clock,
            self.metrics,
            saw_unbound=self.informers.saw_unbound,
            binding_cycles=self.binding_cycles.under_way,
            pod_groups=self._groups,
            release=self.config.release,
        )

    def _handle_events(self) -> None:
        informers, queue, clock, metrics = self.informers, self.queue, self.clock, self.metrics
        informers.informer(NODES).add_handler(NodeHandler(self.cache, queue, clock, metrics))
        self.pod_handler = self._make_pod_handler()
        self._pods.add_handler(self.pod_handler)
        add_resource_handlers(informers, queue, clock, metrics, self.config.release, self._handle, self.frameworks)

    def _export_statistics(self) -> None:
        queue = self.queue
        absent = () if self.config.release.queue.has_group_entries else ("incomplete", "pending")
        self.metrics.read_pending_pods(
            lambda: {name: count for name, count in queue.statistics().pending_pods.items() if name not in absent}
        )
        self.metrics.read_queued_entities(lambda: queue.statistics().queued_entities)
        self.metrics.read_cache_size(self.cache.statistics)
        read_statistics(self.metrics, self.writes.recorder, self.writes.dispatcher, self.informers)
