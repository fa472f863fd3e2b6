package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const (
	configVersion = "kubescheduler.config.k8s.io/v1"
	syncTimeout   = time.Minute
)

// Of these the scheduler and its plugins keep copies of their own, made by handlers; of the rest they read the
// informers' stores.
var copied = map[schema.GroupVersionResource]runtime.Object{
	v1.SchemeGroupVersion.WithResource("pods"):                   &v1.Pod{},
	v1.SchemeGroupVersion.WithResource("nodes"):                  &v1.Node{},
	v1.SchemeGroupVersion.WithResource("persistentvolumes"):      &v1.PersistentVolume{},
	v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): &v1.PersistentVolumeClaim{},

	resourceapi.SchemeGroupVersion.WithResource("resourceclaims"): &resourceapi.ResourceClaim{},
	resourceapi.SchemeGroupVersion.WithResource("deviceclasses"):  &resourceapi.DeviceClass{},
}

// world is a scheduler that has seen one cluster, in order of namespace and name, and does nothing by itself.
type world struct {
	*scheduler.Scheduler
	framework framework.Framework
	snapshot  *cache.Snapshot
	deletions noted
	// deallocations are the claims that were taken back or deleted.
	deallocations noted
}

// newWorld has a scheduler see the question's cluster and these pods too.
//
// schedulerName says whose profile the world's framework is. Without sampling every attempt judges all nodes.
func newWorld(ctx context.Context, asked *question, schedulerName string, sampling bool, pods ...*v1.Pod) (*world, error) {
	options, err := asked.extend(ctx)
	if err != nil {
		return nil, err
	}
	config, err := asked.configuration()
	if err != nil {
		return nil, err
	}
	if !sampling {
		stopSampling(config)
	}
	objects, err := asked.cluster()
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	made := &world{}
	client := fake.NewSimpleClientset(objects...)
	client.PrependReactor("delete", "pods", made.deletions.react)
	client.PrependReactor("delete", "resourceclaims", made.deallocations.react)
	client.PrependReactor("update", "resourceclaims", made.deallocations.react)
	if err := made.start(ctx, client, config, options); err != nil {
		return nil, err
	}
	asked.rest()
	if err := made.enter(ctx, schedulerName); err != nil {
		return nil, err
	}
	return made, made.settle(ctx, objects)
}

// settle waits until plugins see the slices of the question, to which taints are added after the informers are in sync.
func (made *world) settle(ctx context.Context, objects []runtime.Object) error {
	count := 0
	for _, each := range objects {
		if _, ok := each.(*resourceapi.ResourceSlice); ok {
			count++
		}
	}
	lister := made.framework.SharedDRAManager().ResourceSlices()
	return wait.PollUntilContextTimeout(ctx, time.Millisecond, syncTimeout, true, func(context.Context) (bool, error) {
		listed, err := lister.ListWithDeviceTaintRules()
		return len(listed) >= count, err
	})
}

// newWorldOfPod is for a question about one pod, which waits in that world.
func newWorldOfPod(ctx context.Context, asked *question) (*world, *v1.Pod, error) {
	pod, err := readPod(asked.Pod)
	if err != nil {
		return nil, nil, err
	}
	made, err := newWorld(ctx, asked, pod.Spec.SchedulerName, false, pod)
	return made, pod, err
}

func (made *world) start(
	ctx context.Context, client kubernetes.Interface, config *schedulerconfig.KubeSchedulerConfiguration,
	options []scheduler.Option,
) error {
	factory, handlers, err := newInformers(client)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	made.Scheduler, err = scheduler.New(
		ctx, client, factory, nil, profile.NewRecorderFactory(broadcaster),
		append(
			options,
			scheduler.WithProfiles(config.Profiles...),
			scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
			scheduler.WithParallelism(1),
			scheduler.WithComponentConfigVersion(configVersion),
		)...,
	)
	if err != nil {
		return err
	}
	return startInformers(ctx, factory, handlers)
}

func (made *world) enter(ctx context.Context, schedulerName string) error {
	made.framework = made.Profiles[schedulerName]
	if made.framework == nil {
		return fmt.Errorf("no profile %q", schedulerName)
	}
	snapshot, ok := made.framework.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		return fmt.Errorf("a snapshot of another kind: %T", made.framework.SnapshotSharedLister())
	}
	made.snapshot = snapshot
	return made.look(ctx)
}

// look brings the snapshot up to date.
func (made *world) look(ctx context.Context) error {
	return made.Cache.UpdateSnapshot(klog.FromContext(ctx), made.snapshot)
}

func stopSampling(config *schedulerconfig.KubeSchedulerConfiguration) {
	all := int32(100)
	config.PercentageOfNodesToScore = &all
	for number := range config.Profiles {
		config.Profiles[number].PercentageOfNodesToScore = &all
	}
}

// noted are the objects of calls to the API that were kept from it, as namespace/name.
type noted struct {
	lock sync.Mutex
	keys []string
}

func (seen *noted) react(action clienttesting.Action) (bool, runtime.Object, error) {
	switch call := action.(type) {
	case clienttesting.DeleteAction:
		seen.add(action.GetNamespace(), call.GetName())
		return true, nil, nil
	case clienttesting.UpdateAction:
		written, err := meta.Accessor(call.GetObject())
		if err != nil {
			return true, nil, err
		}
		seen.add(action.GetNamespace(), written.GetName())
		return true, call.GetObject(), nil
	}
	return false, nil, nil
}

func (seen *noted) add(namespace, name string) {
	seen.lock.Lock()
	defer seen.lock.Unlock()
	seen.keys = append(seen.keys, namespace+"/"+name)
}

func (seen *noted) sorted() []string {
	seen.lock.Lock()
	defer seen.lock.Unlock()
	return slices.Sorted(slices.Values(seen.keys))
}

// handlers are those that keep copies.
type handlers struct {
	registered []toolscache.ResourceEventHandlerRegistration
}

// newInformers is a factory as kube-scheduler makes it, and the handlers that will keep copies of what they are told.
func newInformers(client kubernetes.Interface) (informers.SharedInformerFactory, *handlers, error) {
	kept := &handlers{}
	upstream := upstreamInformers(client)
	factory := informers.NewSharedInformerFactory(client, 0)
	for resource, object := range copied {
		generic, err := upstream.ForResource(resource)
		if err != nil {
			return nil, nil, err
		}
		factory.InformerFor(object, func(kubernetes.Interface, time.Duration) toolscache.SharedIndexInformer {
			return &noting{generic.Informer(), kept}
		})
	}
	return factory, kept, nil
}

// noting is an informer that notes who wants to hear from it.
type noting struct {
	toolscache.SharedIndexInformer
	kept *handlers
}

func (informer *noting) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := informer.SharedIndexInformer.AddEventHandler(handler)
	if err == nil {
		informer.kept.registered = append(informer.kept.registered, registration)
	}
	return registration, err
}
