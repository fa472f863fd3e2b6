//go:build policies

package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	// Their arguments are among those that a configuration may have.
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	"sigs.k8s.io/scheduler-plugins/pkg/capacityscheduling"
	"sigs.k8s.io/scheduler-plugins/pkg/networkaware/networkoverhead"
	"sigs.k8s.io/scheduler-plugins/pkg/networkaware/topologicalsort"
	"sigs.k8s.io/scheduler-plugins/pkg/nodemetadata"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesources"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"
	"sigs.k8s.io/scheduler-plugins/pkg/podstate"
	"sigs.k8s.io/scheduler-plugins/pkg/preemptiontoleration"
	"sigs.k8s.io/scheduler-plugins/pkg/qos"
	"sigs.k8s.io/scheduler-plugins/pkg/sysched"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/loadvariationriskbalancing"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/lowriskovercommitment"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/peaks"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/targetloadpacking"
)

// watcherAddress stands for the address of the load watcher in a configuration.
const watcherAddress = "WATCHER"

var plugins = runtime.Registry{
	capacityscheduling.Name:         capacityscheduling.New,
	loadvariationriskbalancing.Name: loadvariationriskbalancing.New,
	lowriskovercommitment.Name:      lowriskovercommitment.New,
	networkoverhead.Name:            networkoverhead.New,
	nodemetadata.Name:               nodemetadata.New,
	noderesources.AllocatableName:   noderesources.NewAllocatable,
	noderesourcetopology.Name:       noderesourcetopology.New,
	peaks.Name:                      peaks.New,
	podstate.Name:                   podstate.New,
	preemptiontoleration.Name:       preemptiontoleration.New,
	qos.Name:                        qos.New,
	sysched.Name:                    sysched.New,
	targetloadpacking.Name:          targetloadpacking.New,
	topologicalsort.Name:            topologicalsort.New,
}

const handlersSee = 100 * time.Millisecond

// rest lets handlers of custom objects see them: plugins keep no sign that they have.
func (asked *question) rest() {
	if len(asked.Custom) > 0 {
		time.Sleep(handlersSee)
	}
}

// extend serves the question's custom objects and metrics, for as long as it is being answered.
func (asked *question) extend(ctx context.Context) ([]scheduler.Option, error) {
	server, err := serve(ctx, asked.Custom, asked.Metrics)
	if err != nil {
		return nil, err
	}
	asked.Config = json.RawMessage(strings.ReplaceAll(string(asked.Config), watcherAddress, server.URL))
	return []scheduler.Option{
		scheduler.WithFrameworkOutOfTreeRegistry(plugins),
		scheduler.WithKubeConfig(&rest.Config{Host: server.URL, QPS: -1}),
	}, nil
}
