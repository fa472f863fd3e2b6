// Command client asks an estimator server recorded questions through Karmada's own client.
//
// It reads a question a line. Without -seconds it answers each with a line {"id", "replicas" | "sets" |
// "unschedulable" | "error"}; with it, it asks the questions in turn for that long and tells how it went.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/estimator/client"
	"github.com/karmada-io/karmada/pkg/util/grpcconnection"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const (
	dialTimeout   = 3 * time.Second
	answerTimeout = 30 * time.Second
)

type question struct {
	// ID is the name of the cluster, too.
	ID           string                            `json:"id"`
	Requirements *workv1alpha2.ReplicaRequirements `json:"requirements"`
	Components   []workv1alpha2.Component          `json:"components"`
	Workload     *workv1alpha2.ObjectReference     `json:"workload"`
	ThresholdS   float64                           `json:"threshold_s"`
}

func main() {
	target := flag.String("target", "", "host:port of the server")
	config := grpcconnection.ClientConfig{}
	flag.StringVar(&config.ServerAuthCAFile, "ca", "", "CA of the server; without it, plain text")
	flag.StringVar(&config.CertFile, "cert", "", "certificate of the client")
	flag.StringVar(&config.KeyFile, "key", "", "its key")
	isOld := flag.Bool("tls12", false, "speak no newer TLS than 1.2")
	era := flag.String("era", "", "send legacy fields only, or bytes only; by default both, as this client does")
	seconds := flag.Float64("seconds", 0, "ask for that long")
	rate := flag.Float64("rate", 0, "questions per second; by default as many as -callers get answered")
	callers := flag.Int("callers", 4, "how many ask at once where there is no rate")
	flag.Parse()

	connection, err := dial(&config, *target, *isOld)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	questions, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	asker := newAsker(connection, questions, *era)
	out := json.NewEncoder(os.Stdout)
	if *seconds > 0 {
		must(out.Encode(asker.load(questions, time.Duration(*seconds*float64(time.Second)), *rate, *callers)))
		return
	}
	for _, asked := range questions {
		must(out.Encode(asker.answer(asked)))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func dial(config *grpcconnection.ClientConfig, target string, isOld bool) (*grpc.ClientConn, error) {
	if !isOld {
		return config.DialWithTimeOut([]string{target}, dialTimeout)
	}
	authority, err := os.ReadFile(config.ServerAuthCAFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	old := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS12}
	return grpc.NewClient(target, grpc.WithTransportCredentials(credentials.NewTLS(old)))
}

func read(from *os.File) ([]question, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	var questions []question
	for lines.Scan() {
		var each question
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			return nil, err
		}
		questions = append(questions, each)
	}
	return questions, lines.Err()
}

type asker struct {
	estimator *client.SchedulerEstimator
}

func newAsker(connection *grpc.ClientConn, questions []question, era string) *asker {
	cache := client.NewSchedulerEstimatorCache()
	for _, each := range questions {
		// Adding one again closes its connection.
		if cache.IsEstimatorExist(each.ID) {
			continue
		}
		cache.AddCluster(each.ID, connection, inEra(connection, era))
	}
	return &asker{client.NewSchedulerEstimator(cache, answerTimeout)}
}

func (a *asker) answer(asked question) map[string]any {
	kind, count, err := a.ask(asked)
	if err != nil {
		return map[string]any{"id": asked.ID, "error": err.Error()}
	}
	return map[string]any{"id": asked.ID, kind: count}
}

func (a *asker) ask(asked question) (kind string, count int32, err error) {
	ctx := context.Background()
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Name = asked.ID
	clusters := []*clusterv1alpha1.Cluster{cluster}
	switch {
	case asked.Workload != nil:
		threshold := time.Duration(asked.ThresholdS * float64(time.Second))
		found, err := a.estimator.GetUnschedulableReplicas(ctx, []string{asked.ID}, asked.Workload, threshold)
		if err != nil {
			return "", 0, err
		}
		return "unschedulable", found[0].Replicas, nil
	case asked.Components != nil:
		request := client.ComponentSetEstimationRequest{
			Clusters: clusters, Components: asked.Components, Namespace: "default",
		}
		found, err := a.estimator.MaxAvailableComponentSets(ctx, request)
		if err != nil {
			return "", 0, err
		}
		return "sets", found[0].Sets, nil
	default:
		request := client.ReplicaEstimationRequest{Clusters: clusters, ReplicaRequirements: asked.Requirements}
		found, err := a.estimator.MaxAvailableReplicas(ctx, request)
		if err != nil {
			return "", 0, err
		}
		return "replicas", found[0].Replicas, nil
	}
}
