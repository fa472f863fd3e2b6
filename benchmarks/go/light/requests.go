package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
)

// events is where Events are written: they are counted, and not kept.
const events = "/apis/events.k8s.io/v1/events"

// read answers with an object, a list or a watch.
func (s *server) read(answer http.ResponseWriter, request *http.Request, at place) {
	if at.name != "" {
		s.Lock()
		o := at.collection.objects[at.namespace+"/"+at.name]
		s.Unlock()
		if o == nil {
			s.respond(answer, notFound(at.name))
			return
		}
		reply(answer, http.StatusOK, o.body)
		return
	}
	if watch := request.URL.Query().Get("watch"); watch == "1" || watch == "true" {
		s.watch(answer, request, at.collection)
		return
	}
	s.Lock()
	items, version := s.list(at.collection, at.namespace), s.version
	s.Unlock()
	items, more := page(items, request.URL.Query())
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d","continue":%q},"items":[`,
		at.collection.kind, at.collection.apiVersion, version, more)
	for index, item := range items {
		if index > 0 {
			out.WriteByte(',')
		}
		out.Write(item.body)
	}
	out.WriteString("]}\n")
	reply(answer, http.StatusOK, out.Bytes())
}

// page returns the items of one page, and the key of its last item if there are more. Pages are of different versions.
func page(items []*object, query url.Values) ([]*object, string) {
	if after := query.Get("continue"); after != "" {
		items = items[sort.Search(len(items), func(i int) bool { return items[i].key() > after }):]
	}
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && limit < len(items) {
		return items[:limit], items[limit-1].key()
	}
	return items, ""
}

// change carries out a write and answers it, unless it returns an error.
func (s *server) change(answer http.ResponseWriter, method string, at place, body []byte) error {
	s.Lock()
	defer s.Unlock()
	if s.refusal != 0 {
		return &failure{s.refusal, "ServiceUnavailable", "writes are refused for now"}
	}
	if at.path == events {
		return s.count(answer, method, at, body)
	}
	key := at.namespace + "/" + at.name
	switch {
	case method == http.MethodPost && at.subresource == "binding":
		return s.binding(answer, at, key, body)
	case method == http.MethodPost && at.subresource == "eviction", method == http.MethodDelete:
		return s.remove(answer, at, key, body)
	case method == http.MethodPost:
		s.counts["creations"]++
		o, err := parsed(body)
		if err != nil {
			return &failure{http.StatusBadRequest, "BadRequest", err.Error()}
		}
		o.namespace = at.namespace
		if err := s.create(at.collection, o); err != nil {
			return err
		}
		reply(answer, http.StatusCreated, o.body)
		return nil
	case method == http.MethodPut, method == http.MethodPatch:
		return s.update(answer, method, at, key, body)
	}
	return &failure{http.StatusMethodNotAllowed, "MethodNotAllowed", method}
}

// count answers with the Event, as it is kept nowhere.
func (s *server) count(answer http.ResponseWriter, method string, at place, body []byte) error {
	s.counts["events"]++
	event, err := parsed(body)
	if method == http.MethodPatch {
		event, err = &object{name: at.name, metadata: fields{}, others: fields{}}, nil
	}
	if err != nil {
		return &failure{http.StatusBadRequest, "BadRequest", err.Error()}
	}
	event.namespace = at.namespace
	event.encode(at.collection.kind, at.collection.apiVersion)
	reply(answer, http.StatusCreated, event.body)
	return nil
}

func (s *server) binding(answer http.ResponseWriter, at place, key string, body []byte) error {
	s.counts["bindings"]++
	var asked struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
		Target struct {
			Name string `json:"name"`
		} `json:"target"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return &failure{http.StatusBadRequest, "BadRequest", err.Error()}
	}
	if err := s.bind(at.collection, key, asked.Metadata.UID, asked.Target.Name); err != nil {
		return err
	}
	reply(answer, http.StatusCreated, []byte(success))
	return nil
}

func (s *server) remove(answer http.ResponseWriter, at place, key string, body []byte) error {
	s.counts["deletions"]++
	o := at.collection.objects[key]
	if o == nil {
		return notFound(key)
	}
	type options struct {
		Preconditions struct {
			UID string `json:"uid"`
		} `json:"preconditions"`
	}
	var asked struct {
		options
		DeleteOptions options `json:"deleteOptions"`
	}
	_ = json.Unmarshal(body, &asked)
	for _, uid := range []string{asked.Preconditions.UID, asked.DeleteOptions.Preconditions.UID} {
		if uid != "" && uid != o.uid {
			return conflict("the object has another uid")
		}
	}
	last := *o
	s.put(at.collection, &last, "DELETED")
	reply(answer, http.StatusOK, []byte(success))
	return nil
}

// update stores another version, if it was made from the last one wherever it says from which.
func (s *server) update(answer http.ResponseWriter, method string, at place, key string, body []byte) error {
	before := at.collection.objects[key]
	if before == nil {
		return notFound(key)
	}
	asked, err := parsed(named(body, at.name))
	if err != nil {
		return &failure{http.StatusBadRequest, "BadRequest", err.Error()}
	}
	if asked.version != 0 && asked.version != before.version {
		return conflict("the object has been modified")
	}
	if asked.uid != "" && asked.uid != before.uid {
		return conflict("the object has another uid")
	}
	next := asked
	if method == http.MethodPatch {
		s.counts["patches"]++
		if next, err = before.patched(body); err != nil {
			return &failure{http.StatusBadRequest, "BadRequest", err.Error()}
		}
	} else {
		s.counts["updates"]++
	}
	next.name, next.namespace, next.uid, next.createdNs = before.name, before.namespace, before.uid, before.createdNs
	if next.node == "" {
		next.node = before.node
	}
	s.put(at.collection, next, "MODIFIED")
	reply(answer, http.StatusOK, next.body)
	return nil
}

// named is the body with a name, which a patch need not have.
func named(body []byte, name string) []byte {
	var whole, metadata fields
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	_ = json.Unmarshal(whole["metadata"], &metadata)
	if metadata == nil {
		metadata = fields{}
	}
	metadata["name"] = []byte(fmt.Sprintf("%q", name))
	whole["metadata"], _ = json.Marshal(metadata)
	result, _ := json.Marshal(whole)
	return result
}
