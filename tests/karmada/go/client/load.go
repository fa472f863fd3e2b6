package main

import (
	"slices"
	"sync"
	"time"
)

// outcome is how the questions went. Latencies are in milliseconds.
type outcome struct {
	Answered int     `json:"answered"`
	Failed   int     `json:"failed"`
	Seconds  float64 `json:"seconds"`
	P50Ms    float64 `json:"p50_ms"`
	P99Ms    float64 `json:"p99_ms"`
	MaxMs    float64 `json:"max_ms"`
}

// record keeps latencies of all goroutines.
type record struct {
	sync.Mutex
	latencies []time.Duration
	failed    int
}

// load asks for some time: at the rate, whether or not there are answers, or else as fast as the callers get them.
func (a *asker) load(questions []question, period time.Duration, rate float64, callers int) outcome {
	var done record
	var under sync.WaitGroup
	started := time.Now()
	if rate > 0 {
		for number := 0; ; number++ {
			due := started.Add(time.Duration(float64(number) / rate * float64(time.Second)))
			if due.Sub(started) >= period {
				break
			}
			time.Sleep(time.Until(due))
			under.Go(func() { a.timed(questions[number%len(questions)], &done, due) })
		}
	} else {
		for caller := range callers {
			under.Go(func() {
				for number := caller; time.Since(started) < period; number += callers {
					a.timed(questions[number%len(questions)], &done, time.Now())
				}
			})
		}
	}
	under.Wait()
	return done.outcome(time.Since(started))
}

// timed asks and counts the time from when the question was due.
func (a *asker) timed(asked question, done *record, due time.Time) {
	_, _, err := a.ask(asked)
	took := time.Since(due)
	done.Lock()
	defer done.Unlock()
	if err != nil {
		done.failed++
		return
	}
	done.latencies = append(done.latencies, took)
}

func (r *record) outcome(period time.Duration) outcome {
	slices.Sort(r.latencies)
	return outcome{
		Answered: len(r.latencies),
		Failed:   r.failed,
		Seconds:  period.Seconds(),
		P50Ms:    r.quantileMs(0.5),
		P99Ms:    r.quantileMs(0.99),
		MaxMs:    r.quantileMs(1),
	}
}

func (r *record) quantileMs(share float64) float64 {
	if len(r.latencies) == 0 {
		return 0
	}
	at := min(int(share*float64(len(r.latencies))), len(r.latencies)-1)
	return float64(r.latencies[at]) / float64(time.Millisecond)
}
