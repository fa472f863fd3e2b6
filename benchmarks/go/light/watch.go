package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const bookmarkEvery = 10 * time.Second

// watcher is one open watch. What it has not sent yet waits in it.
type watcher struct {
	sync.Mutex
	lines [][]byte
	bell  chan struct{}
}

// send never blocks: a slow watcher only makes its own lines wait.
func (w *watcher) send(line []byte) {
	w.Lock()
	w.lines = append(w.lines, line)
	w.Unlock()
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

func (w *watcher) take() [][]byte {
	w.Lock()
	defer w.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

func (s *store) watch(answer http.ResponseWriter, request *http.Request, c *collection) {
	query := request.URL.Query()
	from, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	if seconds == 0 {
		seconds = 1800
	}
	answer.Header().Set("Content-Type", "application/json")
	follower := &watcher{bell: make(chan struct{}, 1)}
	follower.bell <- struct{}{}
	s.Lock()
	if from < c.trimmed {
		s.Unlock()
		fmt.Fprintf(answer, `{"type":"ERROR","object":%s}`+"\n", status(&failure{http.StatusGone, "Expired", "too old resource version"}))
		return
	}
	for _, missed := range c.history {
		if missed.version > from {
			follower.lines = append(follower.lines, missed.line)
		}
	}
	c.watchers[follower] = struct{}{}
	s.Unlock()
	defer func() {
		s.Lock()
		delete(c.watchers, follower)
		s.Unlock()
	}()
	ends, cancel := context.WithTimeout(request.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	s.follow(ends, answer, c, follower)
}

// follow writes what comes until the watch ends: all lines that wait are one write.
func (s *store) follow(ends context.Context, answer http.ResponseWriter, c *collection, follower *watcher) {
	flusher, _ := answer.(http.Flusher)
	flusher.Flush()
	bookmarks := time.NewTicker(bookmarkEvery)
	defer bookmarks.Stop()
	for {
		select {
		case <-ends.Done():
			return
		case <-bookmarks.C:
			// The version is read with the lines that come before it.
			s.Lock()
			follower.send([]byte(fmt.Sprintf(
				`{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"}}}`+"\n",
				c.kind, c.apiVersion, s.version)))
			s.Unlock()
		case <-follower.bell:
			if lines := follower.take(); len(lines) > 0 {
				if _, err := answer.Write(bytes.Join(lines, nil)); err != nil {
					return
				}
				flusher.Flush()
			}
		}
	}
}
