// A light API server for benchmarks: it stores objects in memory, serves lists and watches, binds pods, and keeps no
// other rules: no validation, no authentication, no quotas. It shows what a scheduler does when nothing else is the limit.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

// kind is a row of the file of kinds: where the objects are served, and what they are called.
type kind struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
}

func main() {
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	certificate := flag.String("certificate", "", "the certificate's file")
	key := flag.String("key", "", "the key's file")
	kindsPath := flag.String("kinds", "", "a JSON file of the kinds that are served")
	flag.Parse()
	content, err := os.ReadFile(*kindsPath)
	if err != nil {
		log.Fatal(err)
	}
	var kinds []kind
	if err := json.Unmarshal(content, &kinds); err != nil {
		log.Fatal(err)
	}
	served := newServer(kinds)
	log.Fatal(http.ListenAndServeTLS(*address, *certificate, *key, served))
}

// server answers requests from the store.
type server struct {
	store
}

func newServer(kinds []kind) *server {
	served := &server{store{collections: map[string]*collection{}, counts: map[string]int{}}}
	for _, row := range kinds {
		served.collections[row.Path] = &collection{
			kind: row.Kind, apiVersion: row.APIVersion,
			objects: map[string]*object{}, watchers: map[*watcher]struct{}{},
		}
	}
	return served
}

// place is what a path names.
type place struct {
	collection                   *collection
	path                         string
	namespace, name, subresource string
}

// find reads a path such as /api/v1/namespaces/NAMESPACE/pods/NAME/binding.
func (s *server) find(path string) (place, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	head := 2
	if parts[0] == "apis" {
		head = 3
	}
	if len(parts) <= head {
		return place{}, false
	}
	at := place{}
	rest := parts[head:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		at.namespace, rest = rest[1], rest[2:]
	}
	at.path = "/" + strings.Join(append(append([]string{}, parts[:head]...), rest[0]), "/")
	at.collection = s.collections[at.path]
	if len(rest) > 1 {
		at.name = rest[1]
	}
	if len(rest) > 2 {
		at.subresource = rest[2]
	}
	return at, at.collection != nil
}

func (s *server) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	switch request.URL.Path {
	case "/readyz", "/healthz", "/livez":
		io.WriteString(answer, "ok")
		return
	case "/version":
		reply(answer, http.StatusOK, []byte(`{"major":"1","minor":"37","gitVersion":"v1.37.2+light"}`))
		return
	case "/light/objects":
		s.respond(answer, s.load(request.Body))
		return
	case "/light/statistics":
		s.statistics(answer)
		return
	case "/light/refusal":
		s.Lock()
		_, err := fmt.Fscan(request.Body, &s.refusal)
		s.Unlock()
		s.respond(answer, err)
		return
	}
	if strings.HasSuffix(request.URL.Path, "reviews") {
		reply(answer, http.StatusCreated, review(request.Body))
		return
	}
	at, isServed := s.find(request.URL.Path)
	if !isServed {
		s.respond(answer, notFound(request.URL.Path))
		return
	}
	if request.Method == http.MethodGet {
		s.read(answer, request, at)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = s.change(answer, request.Method, at, body)
	}
	if err != nil {
		s.respond(answer, err)
	}
}

// review allows everything to everybody.
func review(body io.Reader) []byte {
	var asked fields
	_ = json.NewDecoder(body).Decode(&asked)
	if asked == nil {
		asked = fields{}
	}
	asked["status"] = []byte(`{"allowed":true,"authenticated":true,"user":{"username":"admin","groups":["system:masters"]}}`)
	answer, _ := json.Marshal(asked)
	return answer
}

// load creates objects, one in each line, at once: no write comes in between.
func (s *server) load(body io.Reader) error {
	byKind := map[string]*collection{}
	for _, c := range s.collections {
		byKind[c.apiVersion+" "+c.kind] = c
	}
	type pair struct {
		collection *collection
		object     *object
	}
	var pairs []pair
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		o, err := parsed(append([]byte(nil), lines.Bytes()...))
		if err != nil {
			return &failure{http.StatusBadRequest, "BadRequest", err.Error()}
		}
		c := byKind[text(o.others["apiVersion"])+" "+text(o.others["kind"])]
		if c == nil {
			return notFound(string(o.others["kind"]))
		}
		pairs = append(pairs, pair{c, o})
	}
	if err := lines.Err(); err != nil {
		return err
	}
	s.Lock()
	defer s.Unlock()
	for _, next := range pairs {
		if err := s.create(next.collection, next.object); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) statistics(answer http.ResponseWriter) {
	s.Lock()
	content, err := json.Marshal(map[string]any{"counts": s.counts, "waits_s": s.waits})
	s.Unlock()
	if err != nil {
		s.respond(answer, err)
		return
	}
	reply(answer, http.StatusOK, content)
}

func reply(answer http.ResponseWriter, code int, body []byte) {
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(code)
	answer.Write(body)
}

func (s *server) respond(answer http.ResponseWriter, err error) {
	if err == nil {
		reply(answer, http.StatusOK, []byte(success))
		return
	}
	refused, isRefused := err.(*failure)
	if !isRefused {
		refused = &failure{http.StatusInternalServerError, "InternalError", err.Error()}
	}
	reply(answer, refused.code, status(refused))
}

const success = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`

func status(refused *failure) []byte {
	message, _ := json.Marshal(refused.message)
	return []byte(fmt.Sprintf(
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%s,"reason":%q,"code":%d}`,
		message, refused.reason, refused.code))
}
