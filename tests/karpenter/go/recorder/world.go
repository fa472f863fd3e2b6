package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	claimdisruption "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	nodeclaims "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
)

// world is a Karpenter that has just been started on the cluster of a question.
type world struct {
	ctx         context.Context
	client      client.Client
	clock       *steppedClock
	provider    cloudprovider.CloudProvider
	cluster     *state.Cluster
	costs       *cost.ClusterCost
	recorder    *eventLog
	provisioner *provisioning.Provisioner
}

// eventLog keeps every event that is published, however often.
type eventLog struct{ events []events.Event }

func (l *eventLog) Publish(published ...events.Event) { l.events = append(l.events, published...) }

// steppedClock lets waits end at once, in the time at which they would end.
type steppedClock struct{ *clocktesting.FakeClock }

func (c *steppedClock) After(wait time.Duration) <-chan time.Time {
	c.Step(wait)
	ended := make(chan time.Time, 1)
	ended <- c.Now()
	return ended
}

// context carries the settings as Karpenter reads its flags.
func (s *settings) context(ctx context.Context) (context.Context, error) {
	parsed := &options.Options{}
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("recorder", flag.ContinueOnError)}
	parsed.AddFlags(flags)
	var arguments []string
	for name, value := range map[string]string{
		"preference-policy": s.PreferencePolicy, "min-values-policy": s.MinValuesPolicy,
		"scheduler-config": string(s.SchedulerConfig), "feature-gates": s.gates(),
	} {
		if value != "" {
			arguments = append(arguments, fmt.Sprintf("--%s=%s", name, value))
		}
	}
	if err := parsed.Parse(flags, arguments...); err != nil {
		return nil, err
	}
	return options.ToContext(ctx, parsed), nil
}

func (s *settings) gates() string {
	var gates []string
	for name, value := range s.FeatureGates {
		gates = append(gates, fmt.Sprintf("%s=%t", name, value))
	}
	return strings.Join(gates, ",")
}

func newWorld(ctx context.Context, asked *question) (*world, error) {
	types, err := catalogue(ctx, asked.InstanceTypes)
	if err != nil {
		return nil, err
	}
	objects, err := decoded(asked.Objects)
	if err != nil {
		return nil, err
	}
	w := &world{ctx: ctx, recorder: &eventLog{}, clock: &steppedClock{clocktesting.NewFakeClock(asked.Now)}}
	w.client = indexed(fake.NewClientBuilder().WithScheme(scheme.Scheme)).
		WithStatusSubresource(&v1.NodeClaim{}, &v1.NodePool{}, &v1alpha1.NodeOverlay{}).
		WithInterceptorFuncs(interceptor.Funcs{Get: get}).WithObjects(objects...).Build()
	store := nodeoverlay.NewInstanceTypeStore()
	w.provider = overlay.Decorate(kwok.NewCloudProvider(ctx, w.client, types), w.client, store)
	w.cluster = state.NewCluster(w.clock, w.client, w.provider)
	w.costs = cost.NewClusterCost(ctx, w.provider, w.client)
	w.provisioner = provisioning.NewProvisioner(w.client, w.recorder, w.provider, w.cluster, w.clock, nil, nil)
	if options.FromContext(ctx).FeatureGates.NodeOverlay {
		undecorated := kwok.NewCloudProvider(ctx, w.client, types)
		overlays := nodeoverlay.NewController(w.clock, w.client, undecorated, store, w.cluster)
		if _, err := overlays.Reconcile(ctx, reconcile.Request{}); err != nil {
			return nil, err
		}
	}
	return w, w.sync()
}

// sync brings the objects into Karpenter's state, with the conditions that it sets itself.
func (w *world) sync() error {
	claims := &v1.NodeClaimList{}
	if err := w.client.List(w.ctx, claims); err != nil {
		return err
	}
	conditions := claimdisruption.NewController(w.clock, w.client, w.provider)
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !nodeclaims.IsManaged(claim, w.provider) {
			continue
		}
		if _, err := conditions.Reconcile(w.ctx, claim); err != nil {
			return err
		}
		w.cluster.UpdateNodeClaim(claim)
		// Nothing is known of the costs of a NodePool that is not there; Karpenter goes on without them.
		_ = w.costs.UpdateNodeClaim(w.ctx, claim)
	}
	nodes := &corev1.NodeList{}
	if err := w.client.List(w.ctx, nodes); err != nil {
		return err
	}
	for i := range nodes.Items {
		if err := w.cluster.UpdateNode(w.ctx, &nodes.Items[i]); err != nil {
			return err
		}
	}
	pods := &corev1.PodList{}
	if err := w.client.List(w.ctx, pods); err != nil {
		return err
	}
	for i := range pods.Items {
		// A pod on a node that is not there stays unknown, as it does in Karpenter.
		_ = w.cluster.UpdatePod(w.ctx, &pods.Items[i])
	}
	daemons := &appsv1.DaemonSetList{}
	if err := w.client.List(w.ctx, daemons); err != nil {
		return err
	}
	for i := range daemons.Items {
		if err := w.cluster.UpdateDaemonSet(w.ctx, &daemons.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// get reads as the cache does that Karpenter reads from: a volume has no namespace, whatever is asked for, and an object
// that is not there is called by its kind.
func get(
	ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption,
) error {
	if _, ok := object.(*corev1.PersistentVolume); ok {
		key.Namespace = ""
	}
	err := reader.Get(ctx, key, object, opts...)
	if !apierrors.IsNotFound(err) {
		return err
	}
	kind, kindErr := apiutil.GVKForObject(object, scheme.Scheme)
	if kindErr != nil {
		return kindErr
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
}

func indexed(builder *fake.ClientBuilder) *fake.ClientBuilder {
	return builder.
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(object client.Object) []string {
			return []string{object.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&corev1.Node{}, "spec.providerID", func(object client.Object) []string {
			return []string{object.(*corev1.Node).Spec.ProviderID}
		}).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", func(object client.Object) []string {
			return []string{object.(*storagev1.VolumeAttachment).Spec.NodeName}
		}).
		WithIndex(&v1.NodeClaim{}, "status.providerID", func(object client.Object) []string {
			return []string{object.(*v1.NodeClaim).Status.ProviderID}
		}).
		WithIndex(&v1.NodeClaim{}, "spec.nodeClassRef.group", func(object client.Object) []string {
			return []string{object.(*v1.NodeClaim).Spec.NodeClassRef.Group}
		}).
		WithIndex(&v1.NodeClaim{}, "spec.nodeClassRef.kind", func(object client.Object) []string {
			return []string{object.(*v1.NodeClaim).Spec.NodeClassRef.Kind}
		}).
		WithIndex(&v1.NodePool{}, "spec.template.spec.nodeClassRef.group", func(object client.Object) []string {
			return []string{object.(*v1.NodePool).Spec.Template.Spec.NodeClassRef.Group}
		}).
		WithIndex(&v1.NodePool{}, "spec.template.spec.nodeClassRef.kind", func(object client.Object) []string {
			return []string{object.(*v1.NodePool).Spec.Template.Spec.NodeClassRef.Kind}
		})
}

func decoded(texts []json.RawMessage) ([]client.Object, error) {
	objects := make([]client.Object, 0, len(texts))
	for _, text := range texts {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(text, &kind); err != nil {
			return nil, err
		}
		object, err := scheme.Scheme.New(kind.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, object); err != nil {
			return nil, err
		}
		objects = append(objects, storable(object))
	}
	return objects, nil
}

// storable is the object as the stand-in for an API server keeps it: one that is being deleted has a finalizer.
func storable(object runtime.Object) client.Object {
	stored := object.(client.Object)
	if stored.GetDeletionTimestamp() != nil && len(stored.GetFinalizers()) == 0 {
		stored.SetFinalizers([]string{"example.com/finalizer"})
	}
	if budget, ok := stored.(*policyv1.PodDisruptionBudget); ok && budget.Spec.Selector == nil {
		budget.Spec.Selector = &metav1.LabelSelector{}
	}
	return stored
}
