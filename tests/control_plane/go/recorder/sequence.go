package main

import (
	"context"
	"errors"
	"sort"
	"time"

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
	if err := inside.order(pods); err != nil {
		return nil, err
	}
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

// order sorts pods that have entered the queue one after the other as its plugin does.
func (inside *world) order(pods []*v1.Pod) error {
	var failure error
	arrivals := make(map[*v1.Pod]time.Time, len(pods))
	for number, pod := range pods {
		arrivals[pod] = time.Unix(int64(number), 0)
	}
	queued := func(pod *v1.Pod) *framework.QueuedPodInfo {
		info, err := framework.NewPodInfo(pod)
		failure = errors.Join(failure, err)
		entry := &framework.QueuedPodInfo{PodInfo: info}
		entry.Timestamp = arrivals[pod]
		return entry
	}
	isBefore := inside.framework.QueueSortFunc()
	sort.SliceStable(pods, func(a, b int) bool { return isBefore(queued(pods[a]), queued(pods[b])) })
	return failure
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
	state := framework.NewCycleState()
	result, err := inside.suggest(ctx, chosen, state, info)
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
