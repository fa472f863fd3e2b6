package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// fields are those of a JSON object, each as it was sent.
type fields = map[string]json.RawMessage

// object is one stored version of an object. It is never changed: a write stores another one.
type object struct {
	name, namespace, uid, node string
	metadata, others           fields
	version                    uint64
	createdNs                  int64
	body                       []byte
}

func (o *object) key() string { return o.namespace + "/" + o.name }

// stored are the fields of metadata that an object has by itself.
var stored = map[string]bool{"name": true, "namespace": true, "uid": true, "resourceVersion": true}

// parsed reads a manifest.
func parsed(manifest []byte) (*object, error) {
	var others, metadata fields
	if err := json.Unmarshal(manifest, &others); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(others["metadata"], &metadata); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	delete(others, "metadata")
	read := &object{metadata: metadata, others: others}
	read.name, read.namespace, read.uid = text(metadata["name"]), text(metadata["namespace"]), text(metadata["uid"])
	read.version, _ = strconv.ParseUint(text(metadata["resourceVersion"]), 10, 64)
	var spec struct {
		NodeName string `json:"nodeName"`
	}
	if raw := others["spec"]; raw != nil {
		if err := json.Unmarshal(raw, &spec); err != nil {
			return nil, fmt.Errorf("spec: %w", err)
		}
	}
	read.node = spec.NodeName
	if read.name == "" {
		return nil, fmt.Errorf("metadata.name is missing")
	}
	return read, nil
}

// encode writes the object as an API server does: kind, version and name come first.
func (o *object) encode(kind, apiVersion string) {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"kind":%q,"apiVersion":%q,"metadata":{"name":%q`, kind, apiVersion, o.name)
	if o.namespace != "" {
		fmt.Fprintf(&out, `,"namespace":%q`, o.namespace)
	}
	fmt.Fprintf(&out, `,"uid":%q,"resourceVersion":"%d"`, o.uid, o.version)
	write(&out, o.metadata, stored)
	out.WriteByte('}')
	write(&out, o.others, map[string]bool{"kind": true, "apiVersion": true})
	out.WriteByte('}')
	o.body = out.Bytes()
}

func write(out *bytes.Buffer, from fields, without map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if !without[name] {
			fmt.Fprintf(out, ",%q:", name)
			out.Write(from[name])
		}
	}
}

// bound is the object on that node, with the condition that an API server sets with the binding.
func (o *object) bound(node, now string) (*object, error) {
	next := *o
	next.node = node
	next.others = maps.Clone(o.others)
	next.others["spec"] = append([]byte(fmt.Sprintf(`{"nodeName":%q,`, node)), bytes.TrimLeft(o.others["spec"], "{ ")...)
	condition := fmt.Sprintf(`{"conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":%q}]}`, now)
	status, err := merged(o.others["status"], []byte(condition))
	next.others["status"] = status
	return &next, err
}

// patched is the object after a merge patch. Lists of objects that have a type, as conditions, are merged by it.
func (o *object) patched(patch []byte) (*object, error) {
	var changes fields
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	next := *o
	next.others = maps.Clone(o.others)
	for name, change := range changes {
		if name == "metadata" {
			continue
		}
		value, err := merged(next.others[name], change)
		if err != nil {
			return nil, err
		}
		next.others[name] = value
	}
	if changes["metadata"] == nil {
		return &next, nil
	}
	before, err := json.Marshal(o.metadata)
	if err != nil {
		return nil, err
	}
	metadata, err := merged(before, changes["metadata"])
	if err != nil {
		return nil, err
	}
	next.metadata = nil
	return &next, json.Unmarshal(metadata, &next.metadata)
}

func merged(value, change json.RawMessage) (json.RawMessage, error) {
	var before, patch any
	if len(value) > 0 {
		if err := decode(value, &before); err != nil {
			return nil, err
		}
	}
	if err := decode(change, &patch); err != nil {
		return nil, err
	}
	return json.Marshal(merge(before, patch))
}

func decode(raw []byte, into *any) error {
	reader := json.NewDecoder(bytes.NewReader(raw))
	reader.UseNumber()
	return reader.Decode(into)
}

func merge(before, patch any) any {
	switch change := patch.(type) {
	case map[string]any:
		result, _ := before.(map[string]any)
		if result == nil {
			result = map[string]any{}
		}
		for name, value := range change {
			if value == nil {
				delete(result, name)
			} else {
				result[name] = merge(result[name], value)
			}
		}
		return result
	case []any:
		return mergeByType(before, change)
	}
	return patch
}

func mergeByType(before any, change []any) any {
	result, _ := before.([]any)
	for _, item := range change {
		entry, isObject := item.(map[string]any)
		if !isObject || entry["type"] == nil {
			return change
		}
		kept := make([]any, 0, len(result)+1)
		for _, existing := range result {
			if other, _ := existing.(map[string]any); other == nil || other["type"] != entry["type"] {
				kept = append(kept, existing)
			}
		}
		if entry["$patch"] != "delete" {
			kept = append(kept, entry)
		}
		result = kept
	}
	return result
}

func text(raw json.RawMessage) string {
	var value string
	_ = json.Unmarshal(raw, &value)
	return value
}
