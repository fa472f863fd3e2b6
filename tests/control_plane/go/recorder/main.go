// Command recorder answers questions to a scheduler with kube-scheduler's own packages, without a cluster.
//
// It reads a question a line, in the shape that `podium evaluate` reads, and answers each with a line in the shape that
// `podium evaluate` writes: {"id", ...answer}, or {"id", "failed"} where there is none. A question is one of five: a
// pod (an attempt over all nodes), a queue of pods (where each goes), a queue with pod groups (every attempt), a pod and
// an event (which plugins would have the pod tried again for it), or an expression and a device (whether it selects the
// device).
//
// Feature gates are at their defaults, with two exceptions: those of pod groups are as the question says, and pods that
// are asked about alone or in groups are preempted for at once (SchedulerAsyncPreemption=false), so that the victims can
// be read off the calls to the API.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

const lineBytes = 1 << 20

// fields are those of a JSON object.
type fields = map[string]any

// panicked is what the latest panic in a goroutine of a plugin said.
var panicked atomic.Value

func main() {
	silenceLogs()
	outlivePanics()
	metrics.Register()
	answers := os.Stdout
	// A line that a plugin prints must not stand between the answers.
	os.Stdout = os.Stderr
	if err := answerAll(os.Stdin, answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// silenceLogs also keeps errors from stderr: a pod that cannot be scheduled is one, and the answer tells it.
func silenceLogs() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(io.Discard)
}

// outlivePanics keeps the program alive when a plugin panics in a goroutine that it is run in.
func outlivePanics() {
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = []func(context.Context, any){
		func(_ context.Context, reason any) { panicked.Store(fmt.Sprint("panic: ", reason)) },
	}
}

func answerAll(questions io.Reader, answers io.Writer) error {
	lines := bufio.NewReaderSize(questions, lineBytes)
	encoder := json.NewEncoder(answers)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(answerLine(line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// answerLine is the answer to one question, whatever comes of it: upstream panics where it is told nonsense.
func answerLine(line []byte) (answer fields) {
	var asked question
	defer func() {
		if reason := recover(); reason != nil {
			answer = fields{"failed": fmt.Sprint("panic: ", reason)}
		}
		answer["id"] = asked.ID
	}()
	if err := json.Unmarshal(line, &asked); err != nil {
		return fields{"failed": err.Error()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	panicked.Store("")
	answer, err := asked.answer(ctx)
	if reason := panicked.Load(); reason != "" {
		return fields{"failed": reason}
	}
	if err != nil {
		return fields{"failed": err.Error()}
	}
	return answer
}

func (asked *question) answer(ctx context.Context) (fields, error) {
	if asked.Expression != "" {
		return answerSelector(ctx, asked)
	}
	hasGroups := asked.Gates[string(features.GenericWorkload)]
	isAlone := asked.Event == nil && len(asked.Pods) == 0
	gates := map[string]bool{
		string(features.GenericWorkload):          hasGroups,
		string(features.SchedulerAsyncPreemption): !isAlone && !hasGroups,
	}
	for _, gate := range gatesOfGroups {
		gates[gate] = asked.Gates[gate]
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return nil, err
	}
	switch {
	case hasGroups:
		return answerGroups(ctx, asked)
	case asked.Event != nil:
		return answerChange(ctx, asked)
	case len(asked.Pods) > 0:
		return answerSequence(ctx, asked)
	default:
		return answerAttempt(ctx, asked)
	}
}
