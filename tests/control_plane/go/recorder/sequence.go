package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// answerSequence is where each pod of a queue goes, one attempt each, every pod assumed on its node before the next.
func answerSequence(ctx context.Context, asked *question) (fields, error) {
	var pods []*v1.Pod
	for _, text := range asked.Pods {
		pod, err := readPod(text)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	inside, err := newWorld(ctx, asked, pods[0].Spec.SchedulerName, true)
	if err != nil {
		return nil, err
	}
	placements := []fields{}
	for _, pod := range pods {
		placement := fields{"pod": pod.Namespace + "/" + pod.Name}
		node, err := inside.place(ctx, pod)
		if err != nil {
			return nil, err
		}
		if node != "" {
			placement["node"] = node
		}
		placements = append(placements, placement)
	}
	return fields{"placements": placements}, nil
}

// place assumes the pod on the suggested node and reserves it there; no node if it fits nowhere.
func (inside *world) place(ctx context.Context, pod *v1.Pod) (string, error) {
	if err := inside.look(ctx); err != nil {
		return "", err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return "", err
	}
	chosen := inside.Profiles[pod.Spec.SchedulerName]
	queued := &framework.QueuedPodInfo{PodInfo: info, PodSignature: chosen.SignPod(ctx, pod)}
	state := framework.NewCycleState()
	result, err := inside.SchedulePod(ctx, chosen, state, queued)
	if err != nil {
		return "", nil
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = result.SuggestedHost
	if err := inside.Cache.AssumePod(klog.FromContext(ctx), assumed); err != nil {
		return "", err
	}
	if status := chosen.RunReservePluginsReserve(ctx, state, assumed, result.SuggestedHost); !status.IsSuccess() {
		return "", status.AsError()
	}
	return result.SuggestedHost, nil
}
