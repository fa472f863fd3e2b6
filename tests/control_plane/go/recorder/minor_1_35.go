//go:build minor_1_35

package main

import (
	"context"
	"errors"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// gatesOfGroups are none: the groups of this minor are not asked about.
var gatesOfGroups []string

// startInformers returns when they and the handlers have seen everything.
func startInformers(ctx context.Context, factory informers.SharedInformerFactory, handlers *handlers) error {
	factory.Start(ctx.Done())
	patient, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	for kind, isSynced := range factory.WaitForCacheSync(patient.Done()) {
		if !isSynced {
			return errors.New("not in sync: " + kind.String())
		}
	}
	return wait.PollUntilContextCancel(patient, time.Millisecond, true, func(context.Context) (bool, error) {
		for _, registration := range handlers.registered {
			if !registration.HasSynced() {
				return false, nil
			}
		}
		return true, nil
	})
}

// suggest is the scheduling cycle of a pod.
func (inside *world) suggest(
	ctx context.Context, chosen framework.Framework, state fwk.CycleState, info *framework.PodInfo,
) (scheduler.ScheduleResult, error) {
	return inside.SchedulePod(ctx, chosen, state, info.Pod)
}

// pendingAllocation is none: this minor only tells that there is one.
func pendingAllocation(fwk.ResourceClaimTracker, types.UID) *resourceapi.AllocationResult {
	return nil
}
