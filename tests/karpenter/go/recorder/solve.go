package main

import (
	"errors"
	"math"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"
	karpenter "sigs.k8s.io/karpenter/pkg/scheduling"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
)

type solveAnswer struct {
	Ignored  map[string]string   `json:"ignored,omitempty"`
	Skipped  map[string]string   `json:"skipped,omitempty"`
	Existing map[string][]string `json:"existing,omitempty"`
	Claims   []claim             `json:"claims,omitempty"`
	Errors   map[string]string   `json:"errors,omitempty"`
}

type claim struct {
	Pool             string           `json:"pool"`
	Pods             []string         `json:"pods,omitempty"`
	Requirements     []requirement    `json:"requirements,omitempty"`
	Types            []string         `json:"types,omitempty"`
	Price            float64          `json:"price"`
	Requests         map[string]int64 `json:"requests,omitempty"`
	MinValuesRelaxed bool             `json:"minValuesRelaxed,omitempty"`
}

type requirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues *int     `json:"minValues,omitempty"`
}

// solve is one pass of the provisioner.
func (w *world) solve() (*solveAnswer, error) {
	answer := &solveAnswer{Ignored: map[string]string{}, Skipped: map[string]string{}}
	pods, err := nodeutils.GetProvisionablePods(w.ctx, w.client)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if err := w.provisioner.Validate(w.ctx, pod); err != nil {
			answer.Ignored[key(pod)] = err.Error()
		}
	}
	results, err := w.provisioner.Schedule(w.ctx)
	if err != nil {
		return nil, err
	}
	if results.PodErrors == nil {
		// Without a NodePool Karpenter solves nothing, and notes this of every pod.
		answer.Errors, err = w.withoutPools()
		return answer, err
	}
	for _, event := range w.recorder.events {
		if pool, ok := event.InvolvedObject.(*v1.NodePool); ok && event.Reason == events.NoCompatibleInstanceTypes {
			answer.Skipped[pool.Name] = event.Message
		}
	}
	answer.Existing, answer.Errors = existing(results), failures(results)
	for _, node := range results.NewNodeClaims {
		answer.Claims = append(answer.Claims, claimOf(node))
	}
	sortClaims(answer.Claims)
	return answer, nil
}

// withoutPools is what every pod is told where there is no NodePool to buy from; nothing if there is one.
func (w *world) withoutPools() (map[string]string, error) {
	pods, err := w.provisioner.GetPendingPods(w.ctx)
	if err != nil {
		return nil, err
	}
	nodes := w.cluster.DeepCopyNodes()
	moving, err := nodes.Deleting().CurrentlyReschedulablePods(w.ctx, w.client, w.clock, w.recorder)
	if err != nil {
		return nil, err
	}
	pods = append(pods, moving...)
	if _, err = w.provisioner.NewScheduler(w.ctx, pods, nodes.Active(), nil); !errors.Is(err, provisioning.ErrNodePoolsNotFound) {
		return nil, err
	}
	texts := map[string]string{}
	for _, pod := range pods {
		texts[key(pod)] = "no dynamic nodepools found"
	}
	return texts, nil
}

func key(object client.Object) string { return object.GetNamespace() + "/" + object.GetName() }

func existing(results scheduling.Results) map[string][]string {
	nodes := map[string][]string{}
	for _, node := range results.ExistingNodes {
		if len(node.Pods) > 0 {
			nodes[node.Name()] = names(node.Pods)
		}
	}
	return nodes
}

func failures(results scheduling.Results) map[string]string {
	texts := map[string]string{}
	for pod, err := range results.PodErrors {
		texts[key(pod)] = err.Error()
	}
	return texts
}

func names(pods []*corev1.Pod) []string {
	keys := make([]string, 0, len(pods))
	for _, pod := range pods {
		keys = append(keys, key(pod))
	}
	sort.Strings(keys)
	return keys
}

func sortClaims(claims []claim) {
	sort.Slice(claims, func(i, j int) bool {
		left, right := claims[i], claims[j]
		if len(left.Pods) > 0 && len(right.Pods) > 0 && left.Pods[0] != right.Pods[0] {
			return left.Pods[0] < right.Pods[0]
		}
		return left.Pool < right.Pool
	})
}

// claimOf is the NodeClaim that would be created, its instance types by price and name.
func claimOf(node *scheduling.NodeClaim) claim {
	created := node.ToNodeClaim()
	required := karpenter.NewNodeSelectorRequirementsWithMinValues(created.Spec.Requirements...)
	options := map[string]*cloudprovider.InstanceType{}
	for _, option := range node.InstanceTypeOptions {
		options[option.Name] = option
	}
	result := claim{Pool: node.NodePoolName, Pods: names(node.Pods), Requests: amounts(created.Spec.Resources.Requests)}
	result.MinValuesRelaxed = created.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey] == "true"
	for _, form := range created.Spec.Requirements {
		values := append([]string(nil), form.Values...)
		sort.Strings(values)
		if form.Key == corev1.LabelInstanceTypeStable {
			result.Types, values = values, nil
		}
		result.Requirements = append(result.Requirements, requirement{form.Key, string(form.Operator), values, form.MinValues})
	}
	sort.Slice(result.Requirements, func(i, j int) bool {
		left, right := result.Requirements[i], result.Requirements[j]
		return left.Key < right.Key || left.Key == right.Key && left.Operator < right.Operator
	})
	sort.SliceStable(result.Types, func(i, j int) bool {
		return cheapest(options[result.Types[i]], required) < cheapest(options[result.Types[j]], required)
	})
	if len(result.Types) > 0 {
		result.Price = cheapest(options[result.Types[0]], required)
	}
	return result
}

// cheapest is the price of the cheapest launchable offering, or the largest number if there is none.
func cheapest(option *cloudprovider.InstanceType, required karpenter.Requirements) float64 {
	lowest := math.MaxFloat64
	for _, offering := range option.Offerings {
		if offering.Launchable() && required.IsCompatible(offering.Requirements, karpenter.AllowUndefinedWellKnownLabels) {
			lowest = min(lowest, offering.Price)
		}
	}
	return lowest
}

// amounts are in thousandths of a CPU, and whole units of everything else, rounded up.
func amounts(requests corev1.ResourceList) map[string]int64 {
	numbers := map[string]int64{}
	for name, quantity := range requests {
		numbers[string(name)] = amount(name, quantity)
	}
	return numbers
}

func amount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
