package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	nodepools "sigs.k8s.io/karpenter/pkg/utils/nodepool"
)

// question is a cluster as Karpenter has it in memory when it starts to plan.
type question struct {
	client  client.Client
	cluster *state.Cluster
	clock   clock.Clock
	pools   []*v1.NodePool
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	types   []*cloudprovider.InstanceType
}

// line is one of the file: a catalogue, or a question.
type line struct {
	ID            string            `json:"id"`
	InstanceTypes json.RawMessage   `json:"instanceTypes"`
	Objects       []json.RawMessage `json:"objects"`
}

func newFlags() *flag.FlagSet { return flag.NewFlagSet("planner", flag.ContinueOnError) }

func readFile(ctx context.Context, path string) (*question, error) {
	asked := &question{clock: clock.RealClock{}}
	err := lines(path, func(text []byte) error {
		var read line
		if err := json.Unmarshal(text, &read); err != nil {
			return err
		}
		if read.ID == "" {
			var err error
			asked.types, err = catalogue(ctx, read.InstanceTypes)
			return err
		}
		for _, each := range read.Objects {
			if err := asked.add(each); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if asked.types == nil || asked.pods == nil {
		return nil, errors.New("the file defines no catalogue, or asks nothing")
	}
	nodepools.OrderByWeight(asked.pools)
	// Pods that wait are handed over: what the client is asked for is what runs on the nodes.
	asked.client = fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(pod client.Object) []string {
			return []string{pod.(*corev1.Pod).Spec.NodeName}
		}).Build()
	asked.cluster = state.NewCluster(asked.clock, asked.client, nil)
	for _, node := range asked.nodes {
		if err := asked.cluster.UpdateNode(ctx, node); err != nil {
			return nil, err
		}
	}
	return asked, nil
}

// catalogue is read by kwok's own provider, which reads files only.
func catalogue(ctx context.Context, types json.RawMessage) ([]*cloudprovider.InstanceType, error) {
	file, err := os.CreateTemp("", "instance-types-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(types); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	return kwok.ConstructInstanceTypes(
		kwokoptions.ToContext(ctx, &kwokoptions.Options{InstanceTypesFilePath: file.Name()}))
}

// add takes the kinds that benchmarks ask about: waiting pods, NodePools, and nodes that nobody manages.
func (q *question) add(text json.RawMessage) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "NodePool":
		return decode(text, &q.pools)
	case "Node":
		return decode(text, &q.nodes)
	case "Pod":
		return decode(text, &q.pods)
	}
	return fmt.Errorf("objects of kind %q are not read", kind.Kind)
}

func decode[T any](text json.RawMessage, into *[]*T) error {
	var object T
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	*into = append(*into, &object)
	return nil
}

// solve plans as one pass of the provisioner does, with its own limits, but for the time that it may take.
func (q *question) solve(ctx context.Context) (scheduling.Results, error) {
	types := make(map[string][]*cloudprovider.InstanceType, len(q.pools))
	for _, pool := range q.pools {
		types[pool.Name] = q.types
	}
	nodes := q.cluster.DeepCopyNodes().Active()
	settings := []scheduling.Options{scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(1)}
	topology, err := scheduling.NewTopology(ctx, q.client, q.cluster, nodes, q.pools, types, q.pods, settings...)
	if err != nil {
		return scheduling.Results{}, err
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	scheduler := scheduling.NewScheduler(ctx, q.client, q.pools, q.cluster, nodes, topology, types, nil, recorder,
		q.clock, nil, nil, settings...)
	results, err := scheduler.Solve(ctx, q.pods)
	if err != nil {
		return scheduling.Results{}, err
	}
	return results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes), nil
}
