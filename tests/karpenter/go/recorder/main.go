// Command recorder answers questions of `podium plan --cases` with Karpenter's own packages.
//
// It reads lines of JSON from a file: a line that defines a catalogue in kwok's format, and questions. For each question
// it writes one line with its id and its answers: Karpenter walks maps, so it is asked several times, and answers that
// differ are all listed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/karpenter/pkg/operator/logging"
)

// question is one line of the file: a catalogue, or a cluster to plan.
type question struct {
	ID            string            `json:"id"`
	Kind          string            `json:"kind"`
	Now           time.Time         `json:"now"`
	Catalogue     string            `json:"catalogue"`
	InstanceTypes json.RawMessage   `json:"instanceTypes"`
	Settings      settings          `json:"settings"`
	Objects       []json.RawMessage `json:"objects"`
}

// settings are Karpenter's flags as a question states them.
type settings struct {
	PreferencePolicy string          `json:"preferencePolicy"`
	MinValuesPolicy  string          `json:"minValuesPolicy"`
	FeatureGates     map[string]bool `json:"featureGates"`
	SchedulerConfig  json.RawMessage `json:"schedulerConfig"`
}

// answered is a question with the different answers to it.
type answered struct {
	ID      string            `json:"id"`
	Answers []json.RawMessage `json:"answers,omitempty"`
	Error   string            `json:"error,omitempty"`
}

func main() {
	times := flag.Int("times", 8, "how often each question is asked")
	flag.Parse()
	log.SetLogger(logging.NopLogger)
	klog.SetLogger(logging.NopLogger)
	if flag.NArg() != 1 {
		fail(fmt.Errorf("usage: recorder [--times N] FILE"))
	}
	if err := answerFile(flag.Arg(0), *times); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func answerFile(path string, times int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	catalogues := map[string]json.RawMessage{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<30)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		if asked.ID == "" {
			catalogues[asked.Catalogue] = asked.InstanceTypes
			continue
		}
		if asked.InstanceTypes == nil {
			asked.InstanceTypes = catalogues[asked.Catalogue]
		}
		if err := output.Encode(asked.answers(times)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// answers asks the question again and again, and keeps the answers that differ.
func (q *question) answers(times int) answered {
	result := answered{ID: q.ID}
	for range times {
		text, err := q.answer()
		if err != nil {
			result.Error = err.Error()
			return result
		}
		if !contains(result.Answers, text) {
			result.Answers = append(result.Answers, text)
		}
	}
	return result
}

func contains(texts []json.RawMessage, text json.RawMessage) bool {
	for _, other := range texts {
		if bytes.Equal(other, text) {
			return true
		}
	}
	return false
}

// answer asks once, of a Karpenter that has just been started.
func (q *question) answer() (json.RawMessage, error) {
	ctx, err := q.Settings.context(context.Background())
	if err != nil {
		return nil, err
	}
	world, err := newWorld(ctx, q)
	if err != nil {
		return nil, err
	}
	var answer any
	switch q.Kind {
	case "solve":
		answer, err = world.solve()
	case "consolidate":
		answer, err = world.disruption()
	default:
		err = fmt.Errorf("kind %q is not known", q.Kind)
	}
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(answer)
	return bytes.TrimSpace(text.Bytes()), err
}
