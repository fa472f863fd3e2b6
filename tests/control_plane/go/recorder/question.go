package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	resourcedefaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

const defaultConfig = `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}`

// question is one line of the input. Objects are the state after the event, where there is one.
type question struct {
	ID      string            `json:"id"`
	Objects []json.RawMessage `json:"objects"`
	Pod     json.RawMessage   `json:"pod"`
	Pods    []json.RawMessage `json:"pods"`
	Config  json.RawMessage   `json:"config"`
	Event   *event            `json:"event"`
	Gates   map[string]bool   `json:"gates"`
	Custom  []json.RawMessage `json:"custom"`
	Metrics json.RawMessage   `json:"metrics"`

	Expression string          `json:"expression"`
	Driver     string          `json:"driver"`
	Device     json.RawMessage `json:"device"`
}

// event is a change of the cluster. Action is Add, Update or Delete.
type event struct {
	Action string          `json:"action"`
	Old    json.RawMessage `json:"old"`
	New    json.RawMessage `json:"new"`
}

func (asked *question) configuration() (*schedulerconfig.KubeSchedulerConfiguration, error) {
	text := []byte(asked.Config)
	if isAbsent(asked.Config) {
		text = []byte(defaultConfig)
	}
	object, _, err := configscheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("config: a %T", object)
	}
	return config, nil
}

func (asked *question) cluster() ([]runtime.Object, error) {
	objects := make([]runtime.Object, 0, len(asked.Objects)+1)
	for _, text := range asked.Objects {
		object, err := read(text)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// read decodes an object by its kind. A pod without a scheduler's name is nobody's, so that its nomination counts for
// nothing. A claim gets what API servers fill in.
func read(text []byte) (runtime.Object, error) {
	object, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	switch item := object.(type) {
	case *v1.Pod:
		if item.Namespace == "" {
			item.Namespace = v1.NamespaceDefault
		}
	case *resourceapi.ResourceClaim:
		resourcedefaults.SetObjectDefaults_ResourceClaim(item)
		if item.ResourceVersion == "" {
			item.ResourceVersion = "1"
		}
	}
	return object, nil
}

// readOrNone is nil for an object that is not there.
func readOrNone(text json.RawMessage) (runtime.Object, error) {
	if isAbsent(text) {
		return nil, nil
	}
	return read(text)
}

// readPod decodes a pod to schedule, which need not say that it is a pod.
func readPod(text []byte) (*v1.Pod, error) {
	var pod v1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		return nil, err
	}
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	return &pod, nil
}

func isAbsent(text json.RawMessage) bool {
	return len(text) == 0 || string(text) == "null"
}
