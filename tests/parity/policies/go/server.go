//go:build policies

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// kinds are the custom ones that plugins read, by the path of their group and version.
var kinds = map[string][]metav1.APIResource{
	"scheduling.x-k8s.io/v1alpha1":                {{Name: "elasticquotas", Kind: "ElasticQuota", Namespaced: true}},
	"topology.node.k8s.io/v1alpha2":               {{Name: "noderesourcetopologies", Kind: "NodeResourceTopology"}},
	"appgroup.diktyo.x-k8s.io/v1alpha1":           {{Name: "appgroups", Kind: "AppGroup", Namespaced: true}},
	"networktopology.diktyo.x-k8s.io/v1alpha1":    {{Name: "networktopologies", Kind: "NetworkTopology", Namespaced: true}},
	"security-profiles-operator.x-k8s.io/v1beta1": {{Name: "seccompprofiles", Kind: "SeccompProfile", Namespaced: true}},
}

// api is as much of an API server as plugins ask for their custom objects, which never change, and a load watcher.
type api struct {
	objects []*unstructured.Unstructured
	metrics []byte
}

func serve(ctx context.Context, objects []json.RawMessage, metrics []byte) (*httptest.Server, error) {
	served := &api{metrics: metrics}
	for _, text := range objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		object.SetResourceVersion("1")
		if object.GetUID() == "" {
			object.SetUID(types.UID("uid-of-" + object.GetName()))
		}
		served.objects = append(served.objects, object)
	}
	server := httptest.NewServer(served)
	context.AfterFunc(ctx, func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server, nil
}

func (served *api) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case path[0] == "watcher":
		served.answerWatcher(writer)
	case path[0] == "api":
		reply(writer, metav1.APIVersions{Versions: []string{"v1"}})
	case len(path) == 1:
		reply(writer, groups())
	case len(path) == 2:
		for _, group := range groups().Groups {
			if group.Name == path[1] {
				reply(writer, group)
				return
			}
		}
		http.NotFound(writer, request)
	case len(path) == 3:
		resources, ok := kinds[path[1]+"/"+path[2]]
		if !ok {
			http.NotFound(writer, request)
			return
		}
		reply(writer, metav1.APIResourceList{GroupVersion: path[1] + "/" + path[2], APIResources: resources})
	default:
		served.answerObjects(writer, request, path)
	}
}

func (served *api) answerWatcher(writer http.ResponseWriter) {
	if isAbsent(served.metrics) {
		http.Error(writer, "no metrics", http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(served.metrics)
}

// answerObjects answers a get, a list over all namespaces, or a watch.
func (served *api) answerObjects(writer http.ResponseWriter, request *http.Request, path []string) {
	groupVersion, rest, namespace := path[1]+"/"+path[2], path[3:], ""
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	kind := ""
	for _, resource := range kinds[groupVersion] {
		if resource.Name == rest[0] {
			kind = resource.Kind
		}
	}
	var items []unstructured.Unstructured
	for _, object := range served.objects {
		isAmong := object.GetAPIVersion() == groupVersion && object.GetKind() == kind
		if isAmong && (namespace == "" || object.GetNamespace() == namespace) {
			items = append(items, *object)
		}
	}
	switch {
	case len(rest) > 1:
		for _, item := range items {
			if item.GetName() == rest[1] {
				reply(writer, &item)
				return
			}
		}
		http.NotFound(writer, request)
	case request.URL.Query().Get("watch") != "":
		watch(writer, request, groupVersion, kind, items)
	default:
		list := &unstructured.UnstructuredList{Items: items}
		list.SetAPIVersion(groupVersion)
		list.SetKind(kind + "List")
		list.SetResourceVersion("1")
		reply(writer, list)
	}
}

// watch sends the objects if they are asked for, and nothing more until it is closed.
func watch(writer http.ResponseWriter, request *http.Request, groupVersion, kind string, items []unstructured.Unstructured) {
	writer.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(writer)
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		for _, item := range items {
			_ = encoder.Encode(fields{"type": "ADDED", "object": item.Object})
		}
		_ = encoder.Encode(fields{"type": "BOOKMARK", "object": fields{
			"apiVersion": groupVersion, "kind": kind,
			"metadata": fields{"resourceVersion": "1", "annotations": fields{metav1.InitialEventsAnnotationKey: "true"}},
		}})
	}
	writer.(http.Flusher).Flush()
	<-request.Context().Done()
}

func groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{}
	for groupVersion := range kinds {
		name, version, _ := strings.Cut(groupVersion, "/")
		discovered := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: version}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: name, Versions: []metav1.GroupVersionForDiscovery{discovered}, PreferredVersion: discovered,
		})
	}
	return list
}

func reply(writer http.ResponseWriter, answer any) {
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(answer)
}
