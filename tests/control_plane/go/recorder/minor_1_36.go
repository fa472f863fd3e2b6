//go:build minor_1_36 || minor_1_35

package main

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// widensNodeAdd says that a plugin interested in new nodes is told of their taints, too.
const widensNodeAdd = true

// changesOf reads an update of a pod.
func changesOf(after, before *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(after, before)
}

func upstreamInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0)
}

// answerGroups has no answer: the groups of this minor have recordings of their own.
func answerGroups(context.Context, *question) (fields, error) {
	return nil, errors.New("groups are asked of the newest minor only")
}
