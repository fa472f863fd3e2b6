package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	queue = "Queue"
	skip  = "Skip"
)

var actions = map[string]fwk.ActionType{"Add": fwk.Add, "Update": fwk.Update, "Delete": fwk.Delete}

// registration is what a plugin has asked to hear of.
type registration struct {
	plugin string
	event  fwk.ClusterEvent
	hint   fwk.QueueingHintFn
}

// answerChange is the cluster events that a change is read as, and what each means to the plugins that registered for it.
func answerChange(ctx context.Context, asked *question) (fields, error) {
	inside, pod, err := newWorldOfPod(ctx, asked)
	if err != nil {
		return nil, err
	}
	before, err := readOrNone(asked.Event.Old)
	if err != nil {
		return nil, err
	}
	after, err := readOrNone(asked.Event.New)
	if err != nil {
		return nil, err
	}
	happened, err := eventsOf(actions[asked.Event.Action], before, after)
	if err != nil {
		return nil, err
	}
	registered, err := inside.registrations(ctx)
	if err != nil {
		return nil, err
	}
	labels, hints := []string{}, fields{}
	for _, event := range happened {
		labels = append(labels, event.Label())
		hints[event.Label()] = hintsFor(ctx, registered, event, pod, before, after)
	}
	return fields{"events": labels, "hints": hints}, nil
}

func hintsFor(
	ctx context.Context, registered []registration, event fwk.ClusterEvent, pod *v1.Pod, before, after runtime.Object,
) fields {
	said := fields{}
	for _, each := range registered {
		if !framework.MatchClusterEvents(each.event, event) {
			continue
		}
		hint, err := each.hint(klog.FromContext(ctx), pod, orNil(before), orNil(after))
		if err != nil || hint == fwk.Queue {
			said[each.plugin] = queue
		} else if said[each.plugin] == nil {
			said[each.plugin] = skip
		}
	}
	return said
}

// registrations are those of the profile's plugins. An unset hint function queues; who wants to hear of new nodes, but
// not of their taints, is told of these too, and queues.
func (inside *world) registrations(ctx context.Context) ([]registration, error) {
	var registered []registration
	for _, plugin := range inside.framework.EnqueueExtensions() {
		wanted, err := plugin.EventsToRegister(ctx)
		if err != nil {
			return nil, err
		}
		var ofNodes fwk.ActionType
		for _, each := range wanted {
			hint := each.QueueingHintFn
			if hint == nil {
				hint = alwaysQueue
			}
			if each.Event.Resource == fwk.Node {
				ofNodes |= each.Event.ActionType
			}
			registered = append(registered, registration{plugin.Name(), each.Event, hint})
		}
		if widensNodeAdd && ofNodes&fwk.Add != 0 && ofNodes&fwk.UpdateNodeTaint == 0 {
			tainted := fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}
			registered = append(registered, registration{plugin.Name(), tainted, alwaysQueue})
		}
	}
	return registered, nil
}

// eventsOf reads a change as the scheduler's handlers read it.
func eventsOf(action fwk.ActionType, before, after runtime.Object) ([]fwk.ClusterEvent, error) {
	object := after
	if object == nil {
		object = before
	}
	switch object.(type) {
	case *v1.Node:
		if action == fwk.Update {
			return framework.NodeSchedulingPropertiesChange(after.(*v1.Node), before.(*v1.Node)), nil
		}
		return []fwk.ClusterEvent{{Resource: fwk.Node, ActionType: action}}, nil
	case *v1.Pod:
		switch action {
		case fwk.Update:
			return changesOf(after.(*v1.Pod), before.(*v1.Pod)), nil
		case fwk.Add:
			return []fwk.ClusterEvent{framework.EventAssignedPodAdd}, nil
		default:
			return []fwk.ClusterEvent{framework.EventAssignedPodDelete}, nil
		}
	}
	kinds, _, err := clientscheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	resource := kinds[0].Kind
	if group := kinds[0].Group; group != "" {
		resource = group + "/" + resource
	}
	return []fwk.ClusterEvent{{Resource: fwk.EventResource(resource), ActionType: action}}, nil
}

func alwaysQueue(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) {
	return fwk.Queue, nil
}

// orNil keeps an absent object from becoming an interface that holds one.
func orNil(object runtime.Object) any {
	if object == nil {
		return nil
	}
	return object
}
