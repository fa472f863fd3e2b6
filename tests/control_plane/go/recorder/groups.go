//go:build !minor_1_36 && !minor_1_35

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	backend "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	settleTime = 5 * time.Second
	lookAgain  = time.Millisecond
)

// groupQueue is a scheduler whose queue pods enter one by one, and what it has made of them.
type groupQueue struct {
	*world
	client *fake.Clientset
	queue  *backend.PriorityQueue

	lock      sync.Mutex
	outcomes  []fields
	bound     map[string]string
	condition fields
	tried     map[string]bool
}

// answerGroups is every attempt at a queue of pods, some of them in groups, until nothing is active. Nothing comes back
// from backoff; victims are gone at once.
func answerGroups(ctx context.Context, asked *question) (fields, error) {
	made := &groupQueue{world: &world{}, bound: map[string]string{}, tried: map[string]bool{}}
	if err := made.begin(ctx, asked); err != nil {
		return nil, err
	}
	var pods []*v1.Pod
	for _, text := range asked.Pods {
		pod, err := readPod(text)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
		if err := made.arrive(ctx, pod); err != nil {
			return nil, err
		}
	}
	attempts := []fields{}
	for len(made.queue.PodsInActiveQ()) > 0 {
		attempt, err := made.attempt(ctx)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, attempt)
	}
	return fields{"attempts": attempts, "gated": made.gated(ctx, pods)}, nil
}

func (made *groupQueue) begin(ctx context.Context, asked *question) error {
	config, err := asked.configuration()
	if err != nil {
		return err
	}
	objects, err := asked.cluster()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if group, ok := object.(*schedulingapi.PodGroup); ok && group.Namespace == "" {
			group.Namespace = v1.NamespaceDefault
		}
	}
	made.client = fake.NewSimpleClientset(objects...)
	made.client.PrependReactor("delete", "pods", made.deletions.react)
	made.client.PrependReactor("create", "pods", made.onBinding)
	made.client.PrependReactor("patch", "podgroups", made.onCondition)
	if err := made.start(ctx, made.client, config, nil); err != nil {
		return err
	}
	priorities, ok := made.SchedulingQueue.(*backend.PriorityQueue)
	if !ok {
		return fmt.Errorf("a queue of another kind: %T", made.SchedulingQueue)
	}
	made.queue = priorities
	handle := made.FailureHandler
	made.FailureHandler = func(ctx context.Context, chosen framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		made.note(failure(info.Pod, status, nominating))
		handle(ctx, chosen, info, status, nominating, start)
	}
	return made.enter(ctx, config.Profiles[0].SchedulerName)
}

func failure(pod *v1.Pod, status *fwk.Status, nominating *fwk.NominatingInfo) fields {
	reason := v1.PodReasonSchedulerError
	if status.IsRejected() {
		reason = v1.PodReasonUnschedulable
	}
	nominated := pod.Status.NominatedNodeName
	if nominating.Mode() == fwk.ModeOverride {
		nominated = nominating.NominatedNodeName
	}
	outcome := fields{"pod": keyOf(pod), "reason": reason, "message": status.Message()}
	if nominated != "" {
		outcome["nominated"] = nominated
	}
	return outcome
}

func (made *groupQueue) note(outcome fields) {
	made.lock.Lock()
	defer made.lock.Unlock()
	made.outcomes = append(made.outcomes, outcome)
	made.tried[outcome["pod"].(string)] = true
}

func (made *groupQueue) onBinding(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding, ok := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
	if !ok {
		return false, nil, nil
	}
	made.lock.Lock()
	defer made.lock.Unlock()
	made.bound[binding.Namespace+"/"+binding.Name] = binding.Target.Name
	return true, binding, nil
}

func (made *groupQueue) onCondition(action clienttesting.Action) (bool, runtime.Object, error) {
	var patch struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
		return true, nil, err
	}
	made.lock.Lock()
	defer made.lock.Unlock()
	for _, each := range patch.Status.Conditions {
		made.condition = fields{"type": each.Type, "status": each.Status, "reason": each.Reason, "message": each.Message}
	}
	return false, nil, nil
}

// arrive has a pod enter the queue, and waits until the handlers have heard of it.
func (made *groupQueue) arrive(ctx context.Context, pod *v1.Pod) error {
	if _, err := made.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if made.Profiles[pod.Spec.SchedulerName] == nil {
		return nil
	}
	err := settle(func() bool {
		pods, _ := made.queue.PendingPods()
		return slices.ContainsFunc(pods, func(each *v1.Pod) bool { return each.UID == pod.UID }) || made.isIncomplete(pod)
	})
	// The event that follows is handled in the same call.
	time.Sleep(3 * lookAgain)
	return err
}

// isIncomplete is whether the pod's group is missing.
func (made *groupQueue) isIncomplete(pod *v1.Pod) bool {
	if pod.Spec.SchedulingGroup == nil {
		return false
	}
	_, err := made.Cache.PodGroupStates().Get(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
	return err == nil && !made.hasGroup(pod)
}

func (made *groupQueue) hasGroup(pod *v1.Pod) bool {
	_, err := made.Cache.PodGroups().Get(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
	return err == nil
}

func (made *groupQueue) attempt(ctx context.Context) (fields, error) {
	made.lock.Lock()
	made.outcomes, made.condition = nil, nil
	before := len(made.bound)
	made.lock.Unlock()
	made.deletions = noted{}
	next := made.NextEntity
	var entity framework.QueuedEntityInfo
	var members []string
	made.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		popped, err := next(logger)
		entity = popped
		if popped != nil {
			popped.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
				members = append(members, keyOf(info.Pod))
				return true
			})
		}
		return popped, err
	}
	made.ScheduleOne(ctx)
	made.NextEntity = next
	answer := fields{}
	if group, ok := entity.(*framework.QueuedPodGroupInfo); ok {
		answer["group"] = group.Namespace + "/" + group.Name
	}
	err := settle(func() bool {
		made.lock.Lock()
		defer made.lock.Unlock()
		return len(made.outcomes)+len(made.bound)-before >= len(members)
	})
	if err != nil {
		return nil, fmt.Errorf("attempt at %v: %w", members, err)
	}
	made.lock.Lock()
	defer made.lock.Unlock()
	pods := []fields{}
	for _, member := range members {
		at := slices.IndexFunc(made.outcomes, func(each fields) bool { return each["pod"] == member })
		if at >= 0 {
			pods = append(pods, made.outcomes[at])
		} else {
			pods = append(pods, fields{"pod": member, "node": made.bound[member]})
			made.tried[member] = true
		}
	}
	answer["pods"] = pods
	if made.condition != nil {
		answer["condition"] = made.condition
	}
	return answer, made.evict(ctx, answer)
}

// evict takes the victims off their nodes, and out of their groups, without an event.
func (made *groupQueue) evict(ctx context.Context, answer fields) error {
	victims := made.deletions.sorted()
	if len(victims) == 0 {
		return nil
	}
	answer["victims"] = victims
	for _, victim := range victims {
		namespace, name, _ := strings.Cut(victim, "/")
		pod, err := made.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := made.Cache.RemovePod(klog.FromContext(ctx), pod); err != nil {
			return err
		}
	}
	return nil
}

// gated is why each pod that was never tried is not let into the active queue.
func (made *groupQueue) gated(ctx context.Context, pods []*v1.Pod) fields {
	answer := fields{}
	for _, pod := range pods {
		chosen := made.Profiles[pod.Spec.SchedulerName]
		if made.tried[keyOf(pod)] || chosen == nil {
			continue
		}
		for _, plugin := range chosen.PreEnqueuePlugins() {
			if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
				answer[keyOf(pod)] = fields{"code": status.Code().String(), "plugin": plugin.Name(), "reasons": status.Reasons()}
				break
			}
		}
	}
	return answer
}

func keyOf(pod *v1.Pod) string {
	return pod.Namespace + "/" + pod.Name
}

func settle(isSettled func() bool) error {
	for ends := time.Now().Add(settleTime); !isSettled(); time.Sleep(lookAgain) {
		if time.Now().After(ends) {
			return fmt.Errorf("not settled after %v", settleTime)
		}
	}
	return nil
}
