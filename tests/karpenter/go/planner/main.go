// Command planner asks Karpenter's own packages which nodes to buy, and says what that took.
//
// It reads a file as `podium plan --cases` reads it: a line that defines a catalogue in kwok's format, and a line with
// a question. It answers with one line of JSON. The clock and the CPU time count from when everything is read: topology,
// templates, the loop over the pods, and the cut to the cheapest types. The peak of the memory is that of the process.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpenter "sigs.k8s.io/karpenter/pkg/scheduling"
)

// answer is what was planned. Prices are dollars per hour.
type answer struct {
	Claims       int     `json:"claims"`
	Price        float64 `json:"price"`
	OnClaims     int     `json:"on_claims"`
	OnNodes      int     `json:"on_nodes"`
	Errors       int     `json:"errors"`
	WallS        float64 `json:"wall_s"`
	CPUS         float64 `json:"cpu_s"`
	PeakRSSBytes int     `json:"peak_rss_bytes"`
}

func main() {
	log.SetLogger(logging.NopLogger)
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: planner FILE"))
	}
	told, err := answerFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func answerFile(path string) (*answer, error) {
	// As Karpenter is started without any flag.
	settings := &options.Options{}
	flags := &options.FlagSet{FlagSet: newFlags()}
	settings.AddFlags(flags)
	if err := settings.Parse(flags); err != nil {
		return nil, err
	}
	ctx := options.ToContext(context.Background(), settings)
	asked, err := readFile(ctx, path)
	if err != nil {
		return nil, err
	}
	beganCPU, began := cpuTime(), time.Now()
	results, err := asked.solve(ctx)
	if err != nil {
		return nil, err
	}
	told := &answer{WallS: time.Since(began).Seconds(), CPUS: (cpuTime() - beganCPU).Seconds()}
	told.count(results)
	told.PeakRSSBytes, err = peakRSSBytes()
	return told, err
}

func (a *answer) count(results scheduling.Results) {
	a.Claims, a.Errors = len(results.NewNodeClaims), len(results.PodErrors)
	for _, claim := range results.NewNodeClaims {
		a.OnClaims += len(claim.Pods)
		a.Price += cheapest(claim.InstanceTypeOptions, claim.Requirements)
	}
	for _, node := range results.ExistingNodes {
		a.OnNodes += len(node.Pods)
	}
}

// cheapest is the price of the offering that would be launched were the cheapest one taken.
func cheapest(types cloudprovider.InstanceTypes, wanted karpenter.Requirements) float64 {
	lowest := -1.0
	for _, each := range types {
		for _, offering := range each.Offerings {
			fits := offering.Launchable() &&
				wanted.IsCompatible(offering.Requirements, karpenter.AllowUndefinedWellKnownLabels)
			if fits && (lowest < 0 || offering.Price < lowest) {
				lowest = offering.Price
			}
		}
	}
	return max(lowest, 0)
}

// cpuTime is that of all threads, the garbage collector's too.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		fail(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// peakRSSBytes is read where the kernel counts it anew for each program: rusage remembers who started this one.
func peakRSSBytes() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("/proc/self/status names no VmHWM")
	}
	kib, err := strconv.Atoi(string(found[1]))
	return kib << 10, err
}

// lines are those of a file, however long.
func lines(path string, take func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<30)
	for scanner.Scan() {
		if err := take(scanner.Bytes()); err != nil {
			return err
		}
	}
	return scanner.Err()
}
