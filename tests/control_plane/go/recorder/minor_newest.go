//go:build !minor_1_36 && !minor_1_35

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// widensNodeAdd says that a plugin interested in new nodes is told of their taints, too.
const widensNodeAdd = false

// changesOf reads an update of the very pod that waits.
func changesOf(after, before *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(after, before, true)
}

func upstreamInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0, nil)
}
