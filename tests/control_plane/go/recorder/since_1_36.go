//go:build !minor_1_35

package main

import (
	"context"
	"errors"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// gatesOfGroups are the further gates that a question sets.
var gatesOfGroups = []string{string(features.TopologyAwareWorkloadScheduling)}

// startInformers returns when they and the handlers have seen everything.
func startInformers(ctx context.Context, factory informers.SharedInformerFactory, handlers *handlers) error {
	factory.StartWithContext(ctx)
	patient, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := factory.WaitForCacheSyncWithContext(patient).AsError(); err != nil {
		return err
	}
	checkers := make([]toolscache.DoneChecker, 0, len(handlers.registered))
	for _, registration := range handlers.registered {
		checkers = append(checkers, registration.HasSyncedChecker())
	}
	if !toolscache.WaitFor(patient, "", checkers...) {
		return errors.New("handlers are not in sync")
	}
	return nil
}

// suggest is the scheduling cycle of a pod.
func (inside *world) suggest(
	ctx context.Context, chosen framework.Framework, state fwk.CycleState, info *framework.PodInfo,
) (scheduler.ScheduleResult, error) {
	queued := &framework.QueuedPodInfo{PodInfo: info, PodSignature: chosen.SignPod(ctx, info.Pod)}
	return inside.SchedulePod(ctx, chosen, state, queued)
}

func pendingAllocation(tracker fwk.ResourceClaimTracker, uid types.UID) *resourceapi.AllocationResult {
	return tracker.GetPendingAllocation(uid)
}
