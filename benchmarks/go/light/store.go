package main

import (
	"fmt"
	"net/http"
	"sort"
	"sync"
	"time"
)

// historyMax is how many changes of a kind a watch can be resumed from.
const historyMax = 50_000

// change is one line of a watch.
type change struct {
	version uint64
	line    []byte
}

// collection is all objects of a kind, and those who watch them.
type collection struct {
	kind, apiVersion string
	objects          map[string]*object
	history          []change
	// trimmed is the version up to which history has been dropped.
	trimmed  uint64
	watchers map[*watcher]struct{}
}

// store is all that the server keeps, under one lock.
type store struct {
	sync.Mutex
	version     uint64
	collections map[string]*collection
	// counts are the requests by what they asked for.
	counts map[string]int
	// waits are the times from the creation of each pod until it was bound, in seconds.
	waits []float64
	// refusal is the status of the answer to each write while it is not zero.
	refusal int
}

// failure is an answer that refuses.
type failure struct {
	code            int
	reason, message string
}

func (f *failure) Error() string { return f.message }

func notFound(what string) error {
	return &failure{http.StatusNotFound, "NotFound", what + " not found"}
}

func conflict(message string) error {
	return &failure{http.StatusConflict, "Conflict", message}
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// put stores a version of an object and tells those who watch. The caller has the lock.
func (s *store) put(c *collection, o *object, event string) {
	s.version++
	o.version = s.version
	o.encode(c.kind, c.apiVersion)
	if event == "DELETED" {
		delete(c.objects, o.key())
	} else {
		c.objects[o.key()] = o
	}
	line := make([]byte, 0, len(o.body)+40)
	line = append(line, `{"type":"`...)
	line = append(line, event...)
	line = append(line, `","object":`...)
	line = append(append(line, o.body...), "}\n"...)
	if len(c.history) >= historyMax {
		half := historyMax / 2
		c.trimmed = c.history[half-1].version
		c.history = append([]change(nil), c.history[half:]...)
	}
	c.history = append(c.history, change{s.version, line})
	for follower := range c.watchers {
		follower.send(line)
	}
}

func (s *store) create(c *collection, o *object) error {
	if c.objects[o.key()] != nil {
		return &failure{http.StatusConflict, "AlreadyExists", o.key() + " exists already"}
	}
	if o.uid == "" {
		o.uid = fmt.Sprintf("11111111-0000-4000-8000-%012x", s.version+1)
	}
	if o.metadata["creationTimestamp"] == nil {
		o.metadata["creationTimestamp"] = []byte(fmt.Sprintf("%q", now()))
	}
	o.createdNs = time.Now().UnixNano()
	s.put(c, o, "ADDED")
	return nil
}

// bind is the one rule that is kept: a pod is bound once.
func (s *store) bind(c *collection, key, uid, node string) error {
	pod := c.objects[key]
	if pod == nil {
		return notFound("pod " + key)
	}
	if uid != "" && uid != pod.uid {
		s.counts["conflicts"]++
		return conflict("the pod has another uid")
	}
	if pod.node != "" {
		s.counts["conflicts"]++
		return conflict("pod " + key + " is already assigned to node " + pod.node)
	}
	next, err := pod.bound(node, now())
	if err != nil {
		return err
	}
	s.waits = append(s.waits, float64(time.Now().UnixNano()-pod.createdNs)/1e9)
	s.put(c, next, "MODIFIED")
	return nil
}

func (s *store) list(c *collection, namespace string) []*object {
	items := make([]*object, 0, len(c.objects))
	for _, item := range c.objects {
		if namespace == "" || item.namespace == namespace {
			items = append(items, item)
		}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].key() < items[j].key() })
	return items
}
