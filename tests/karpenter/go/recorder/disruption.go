package main

import (
	"context"
	"math"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/utils/pod"
)

type disruptionAnswer struct {
	Conditions map[string]condition      `json:"conditions,omitempty"`
	Budgets    map[string]map[string]int `json:"budgets,omitempty"`
	Blocked    map[string]string         `json:"blocked,omitempty"`
	Unfit      map[string]string         `json:"unfit,omitempty"`
	Candidates []candidate               `json:"candidates,omitempty"`
	Nodes      map[string]nodeAnswer     `json:"nodes,omitempty"`
	Methods    map[string]methodAnswer   `json:"methods"`
}

type condition struct {
	Consolidatable bool   `json:"consolidatable,omitempty"`
	Drifted        string `json:"drifted,omitempty"`
}

type candidate struct {
	Node  string  `json:"node"`
	Price float64 `json:"price"`
	Cost  float64 `json:"cost"`
}

type nodeAnswer struct {
	Decision      string            `json:"decision"`
	Reason        string            `json:"reason,omitempty"`
	Unschedulable map[string]string `json:"unschedulable,omitempty"`
	Replacements  []claim           `json:"replacements,omitempty"`
	Savings       *float64          `json:"savings,omitempty"`
}

type methodAnswer struct {
	Decision     string              `json:"decision"`
	Nodes        []string            `json:"nodes,omitempty"`
	Replacements []claim             `json:"replacements,omitempty"`
	Savings      *float64            `json:"savings,omitempty"`
	Existing     map[string][]string `json:"existing,omitempty"`
	Errors       map[string]string   `json:"errors,omitempty"`
	Validation   string              `json:"validation,omitempty"`
	Valid        []string            `json:"valid,omitempty"`
}

// approval lets a command through that Karpenter would look at again first.
type approval struct{}

func (approval) Validate(_ context.Context, command disruption.Command, _ time.Duration) (disruption.Command, error) {
	return command, nil
}

// disruption is what each method would do if it were its turn, and why nodes stay.
func (w *world) disruption() (*disruptionAnswer, error) {
	answer := &disruptionAnswer{Budgets: map[string]map[string]int{}}
	var err error
	if answer.Conditions, err = w.conditions(); err != nil {
		return nil, err
	}
	for _, reason := range []v1.DisruptionReason{
		v1.DisruptionReasonEmpty, v1.DisruptionReasonDrifted, v1.DisruptionReasonUnderutilized,
	} {
		budgets, err := w.budgets(reason)
		if err != nil {
			return nil, err
		}
		for pool, allowed := range budgets {
			if answer.Budgets[pool] == nil {
				answer.Budgets[pool] = map[string]int{}
			}
			answer.Budgets[pool][string(reason)] = allowed
		}
	}
	if err := w.explain(answer); err != nil {
		return nil, err
	}
	if err := w.alone(answer); err != nil {
		return nil, err
	}
	answer.Methods, err = w.methods()
	return answer, err
}

func (w *world) conditions() (map[string]condition, error) {
	claims := &v1.NodeClaimList{}
	if err := w.client.List(w.ctx, claims); err != nil {
		return nil, err
	}
	conditions := map[string]condition{}
	for i := range claims.Items {
		item := &claims.Items[i]
		state := condition{Consolidatable: item.StatusConditions().Get(v1.ConditionTypeConsolidatable).IsTrue()}
		if drifted := item.StatusConditions().Get(v1.ConditionTypeDrifted); drifted.IsTrue() {
			state.Drifted = drifted.Reason
		}
		if state != (condition{}) {
			conditions[item.Name] = state
		}
	}
	return conditions, nil
}

func (w *world) budgets(reason v1.DisruptionReason) (map[string]int, error) {
	return disruption.BuildDisruptionBudgetMapping(w.ctx, w.cluster, w.clock, w.client, w.provider, w.recorder, reason)
}

func (w *world) queue() *disruption.Queue {
	return disruption.NewQueue(w.client, w.recorder, w.cluster, w.clock, w.provisioner)
}

func (w *world) candidates(
	method disruption.Method,
) ([]*disruption.Candidate, map[string]disruption.NodePoolTotals, error) {
	return disruption.GetCandidatesWithTotals(w.ctx, w.cluster, w.client, w.recorder, w.clock, w.provider,
		method.ShouldDisrupt, method.Class(), w.queue(), w.costs)
}

// messages are those of one kind of event, by the name of the node, or of the NodeClaim that has none.
func (w *world) messages(reason string) map[string]string {
	texts, hasNode := map[string]string{}, map[string]bool{}
	for _, node := range w.cluster.DeepCopyNodes() {
		if node.NodeClaim != nil {
			hasNode[node.NodeClaim.Name] = node.Node != nil
		}
	}
	for _, event := range w.recorder.events {
		if event.Reason != reason {
			continue
		}
		switch object := event.InvolvedObject.(type) {
		case *corev1.Node:
			if object != nil {
				texts[object.Name] = event.Message
			}
		case *v1.NodeClaim:
			if object != nil && !hasNode[object.Name] {
				texts[object.Name] = event.Message
			}
		}
	}
	return texts
}

// explain says why nodes are no candidates, and lists those that are.
func (w *world) explain(answer *disruptionAnswer) error {
	w.recorder.events = nil
	single := w.single(nil)
	candidates, _, err := w.candidates(single)
	if err != nil {
		return err
	}
	answer.Blocked, answer.Unfit = w.messages(events.DisruptionBlocked), w.messages(events.Unconsolidatable)
	for _, item := range candidates {
		answer.Candidates = append(answer.Candidates,
			candidate{item.Name(), item.Price, item.RescheduleDisruptionCost})
	}
	sort.Slice(answer.Candidates, func(i, j int) bool { return answer.Candidates[i].Node < answer.Candidates[j].Node })
	return nil
}

func (w *world) single(validator disruption.Validator) *disruption.SingleNodeConsolidation {
	parts := disruption.MakeConsolidation(
		w.clock, w.cluster, w.client, w.provisioner, w.provider, w.recorder, w.queue())
	if validator == nil {
		return disruption.NewSingleNodeConsolidation(parts)
	}
	return disruption.NewSingleNodeConsolidation(parts, disruption.WithValidator(validator))
}

// alone asks what becomes of each candidate by itself, budgets aside.
func (w *world) alone(answer *disruptionAnswer) error {
	answer.Nodes = map[string]nodeAnswer{}
	for _, item := range answer.Candidates {
		single := w.single(approval{})
		candidates, totals, err := w.candidates(single)
		if err != nil {
			return err
		}
		single.SetNodePoolTotals(totals)
		for _, chosen := range candidates {
			if chosen.Name() != item.Node {
				continue
			}
			w.recorder.events = nil
			commands, err := single.ComputeCommands(w.ctx, map[string]int{chosen.NodePool.Name: math.MaxInt32}, chosen)
			if err != nil {
				return err
			}
			if answer.Nodes[item.Node], err = w.node(chosen, commands); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) node(chosen *disruption.Candidate, commands []disruption.Command) (nodeAnswer, error) {
	if len(commands) > 0 {
		command := commands[0]
		savings := command.EstimatedSavings()
		return nodeAnswer{Decision: string(command.Decision()), Replacements: replacements(command),
			Savings: &savings}, nil
	}
	result := nodeAnswer{Decision: string(disruption.NoOpDecision)}
	result.Reason = w.messages(events.Unconsolidatable)[chosen.Name()]
	results, err := disruption.SimulateScheduling(w.ctx, w.client, w.cluster, w.provisioner, w.clock, w.recorder,
		[]scheduling.Options{scheduling.IsConsolidationSimulation}, disruption.SimulationOptions{}, chosen)
	if err != nil {
		return result, err
	}
	if result.Reason != "" && !results.AllNonPendingPodsScheduled() {
		// The event names five pods at most; all of them are listed beside it.
		result.Reason = "Not all pods would schedule"
		result.Unschedulable = map[string]string{}
		for stranded, err := range results.PodErrors {
			if !pod.IsProvisionable(stranded) {
				result.Unschedulable[key(stranded)] = err.Error()
			}
		}
	}
	return result, nil
}

func replacements(command disruption.Command) []claim {
	var claims []claim
	for _, replacement := range command.Replacements {
		claims = append(claims, claimOf(replacement.NodeClaim))
	}
	sortClaims(claims)
	return claims
}

// methods asks every method from the state that is given.
func (w *world) methods() (map[string]methodAnswer, error) {
	parts := disruption.MakeConsolidation(
		w.clock, w.cluster, w.client, w.provisioner, w.provider, w.recorder, w.queue())
	asked := map[string]struct {
		method    disruption.Method
		validator disruption.Validator
	}{
		"emptiness": {disruption.NewEmptiness(parts, disruption.WithValidator(approval{})),
			disruption.NewEmptinessValidator(parts)},
		"drift": {disruption.NewDrift(w.client, w.cluster, w.provisioner, w.recorder, w.clock), nil},
		"multi": {disruption.NewMultiNodeConsolidation(parts, disruption.WithValidator(approval{})),
			disruption.NewMultiConsolidationValidator(parts)},
		"single": {disruption.NewSingleNodeConsolidation(parts, disruption.WithValidator(approval{})),
			disruption.NewSingleConsolidationValidator(parts)},
	}
	answers := map[string]methodAnswer{}
	for name, part := range asked {
		began := w.clock.Now()
		answer, err := w.method(part.method, part.validator)
		if err != nil {
			return nil, err
		}
		answers[name] = answer
		w.clock.SetTime(began)
	}
	return answers, nil
}

func (w *world) method(method disruption.Method, validator disruption.Validator) (methodAnswer, error) {
	answer := methodAnswer{Decision: string(disruption.NoOpDecision)}
	candidates, totals, err := w.candidates(method)
	if err != nil || len(candidates) == 0 {
		return answer, err
	}
	if setter, ok := method.(disruption.NodePoolTotalsSetter); ok {
		setter.SetNodePoolTotals(totals)
	}
	budgets, err := w.budgets(method.Reason())
	if err != nil {
		return answer, err
	}
	commands, err := method.ComputeCommands(w.ctx, budgets, candidates...)
	if err != nil || len(commands) == 0 || commands[0].Decision() == disruption.NoOpDecision {
		return answer, err
	}
	command := commands[0]
	savings := command.EstimatedSavings()
	answer = methodAnswer{Decision: string(command.Decision()), Nodes: nodeNames(command),
		Replacements: replacements(command), Savings: &savings,
		Existing: existing(command.Results), Errors: failures(command.Results)}
	if validator == nil {
		return answer, nil
	}
	valid, err := validator.Validate(w.ctx, command, 15*time.Second)
	if err != nil {
		answer.Validation = err.Error()
	} else if len(valid.Candidates) < len(command.Candidates) {
		answer.Valid = nodeNames(valid)
	}
	return answer, nil
}

func nodeNames(command disruption.Command) []string {
	nodes := command.SourceNodeNames()
	sort.Strings(nodes)
	return nodes
}
