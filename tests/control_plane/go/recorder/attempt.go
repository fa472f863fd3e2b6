package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// attempt is one scheduling attempt, extension point by extension point.
type attempt struct {
	*world
	pod       *v1.Pod
	state     fwk.CycleState
	diagnosis framework.Diagnosis
	answer    fields
}

func answerAttempt(ctx context.Context, asked *question) (fields, error) {
	inside, pod, err := newWorldOfPod(ctx, asked)
	if err != nil {
		return nil, err
	}
	if countNodes(inside.snapshot) == 0 {
		return fields{"error": scheduler.ErrNoNodesAvailable.Error()}, nil
	}
	state := framework.NewCycleState()
	state.SetRecordPluginMetrics(false)
	tried := &attempt{world: inside, pod: pod, state: state, answer: fields{}}
	tried.diagnosis.NodeToStatus = framework.NewDefaultNodeToStatus()
	held := tried.preEnqueue(ctx)
	answer, err := tried.run(ctx)
	if held != nil && answer != nil {
		answer["preenqueue"] = held
	}
	return answer, err
}

// preEnqueue is why a pod with claims would not be let into the queue, if it would not.
func (tried *attempt) preEnqueue(ctx context.Context) fields {
	if len(tried.pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	for _, plugin := range tried.framework.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, tried.pod); !status.IsSuccess() {
			return fields{"code": status.Code().String(), "plugin": plugin.Name(), "reasons": status.Reasons()}
		}
	}
	return nil
}

func (tried *attempt) run(ctx context.Context) (fields, error) {
	candidates, status, err := tried.preFilter(ctx)
	if err != nil {
		return nil, err
	}
	feasible, failure := tried.filter(ctx, candidates)
	switch {
	case !status.IsSuccess() && !status.IsRejected():
		return fields{"error": status.AsError().Error()}, nil
	case failure != nil:
		return fields{"error": failure.AsError().Error()}, nil
	case len(feasible) > 0:
		if err := tried.allocate(ctx, feasible); err != nil {
			return nil, err
		}
		return tried.score(ctx, feasible), nil
	default:
		return tried.postFilter(ctx), nil
	}
}

// preFilter is the nodes that Filter plugins have to judge.
func (tried *attempt) preFilter(ctx context.Context) ([]fwk.NodeInfo, *fwk.Status, error) {
	narrowed, status, rejectors := tried.framework.RunPreFilterPlugins(ctx, tried.state, tried.pod)
	tried.answer["prefilter"] = statusFields(status)
	tried.diagnosis.UnschedulablePlugins = rejectors
	if !status.IsSuccess() {
		tried.diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		tried.diagnosis.PreFilterMsg = status.Message()
		tried.diagnosis.AddPluginStatus(status)
		return nil, status, nil
	}
	if narrowed.AllNodes() {
		all, err := tried.snapshot.List()
		return all, status, err
	}
	names := slices.Sorted(maps.Keys(narrowed.NodeNames))
	tried.answer["prefilter_nodes"] = names
	reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", slices.Sorted(maps.Keys(rejectors)))
	tried.diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason))
	var candidates []fwk.NodeInfo
	for _, name := range names {
		// PreFilter may name nodes that are not there.
		if info, err := tried.snapshot.Get(name); err == nil {
			candidates = append(candidates, info)
		}
	}
	return candidates, status, nil
}

// filter is the feasible nodes, or the status of the plugin that failed.
func (tried *attempt) filter(ctx context.Context, candidates []fwk.NodeInfo) ([]fwk.NodeInfo, *fwk.Status) {
	var feasible []fwk.NodeInfo
	rejected, names := fields{}, []string{}
	for _, info := range candidates {
		name := info.Node().Name
		status := tried.framework.RunFilterPluginsWithNominatedPods(ctx, tried.state, tried.pod, info)
		if status.Code() == fwk.Error {
			return nil, status
		}
		if status.IsSuccess() {
			feasible, names = append(feasible, info), append(names, name)
			continue
		}
		rejected[name] = statusFields(status)
		tried.diagnosis.NodeToStatus.Set(name, status)
		tried.diagnosis.AddPluginStatus(status)
	}
	slices.Sort(names)
	tried.answer["filter"], tried.answer["feasible"] = rejected, names
	return feasible, nil
}

// allocate reads what Filter has found for the pod's claims: each feasible node is reserved for a moment.
func (tried *attempt) allocate(ctx context.Context, feasible []fwk.NodeInfo) error {
	if len(tried.pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	tracker := tried.framework.SharedDRAManager().ResourceClaims()
	claims, err := tracker.List()
	if err != nil {
		return err
	}
	allocations := fields{}
	for _, info := range feasible {
		name, found := info.Node().Name, fields{}
		if status := tried.framework.RunReservePluginsReserve(ctx, tried.state, tried.pod, name); !status.IsSuccess() {
			return status.AsError()
		}
		for _, claim := range claims {
			if allocation := pendingAllocation(tracker, claim.UID); allocation != nil {
				found[claim.Namespace+"/"+claim.Name] = allocation
			}
		}
		tried.framework.RunReservePluginsUnreserve(ctx, tried.state, tried.pod, name)
		allocations[name] = found
	}
	tried.answer["allocations"] = allocations
	return nil
}

func (tried *attempt) score(ctx context.Context, feasible []fwk.NodeInfo) fields {
	if status := tried.framework.RunPreScorePlugins(ctx, tried.state, tried.pod, feasible); !status.IsSuccess() {
		return fields{"error": status.AsError().Error()}
	}
	scored, status := tried.framework.RunScorePlugins(ctx, tried.state, tried.pod, feasible)
	if !status.IsSuccess() {
		return fields{"error": status.AsError().Error()}
	}
	scores := fields{}
	for _, node := range scored {
		plugins := fields{}
		for _, plugin := range node.Scores {
			plugins[plugin.Name] = plugin.Score
		}
		scores[node.Name] = fields{"total": node.TotalScore, "plugins": plugins}
	}
	tried.answer["scores"] = scores
	return tried.answer
}

func (tried *attempt) postFilter(ctx context.Context) fields {
	failed := &framework.FitError{
		Pod:         tried.pod,
		NumAllNodes: countNodes(tried.snapshot),
		Diagnosis:   tried.diagnosis,
	}
	tried.answer["fit_error"] = failed.Error()
	if tried.framework.HasPostFilterPlugins() {
		result, status := tried.framework.RunPostFilterPlugins(ctx, tried.state, tried.pod, tried.diagnosis.NodeToStatus)
		tried.answer["postfilter"] = statusFields(status)
		failed.Diagnosis.PostFilterMsg = status.Message()
		if result != nil && result.NominatingInfo != nil {
			tried.answer["nominated"] = result.NominatedNodeName
		}
	}
	tried.answer["message"] = failed.Error()
	tried.answer["victims"] = tried.deletions.sorted()
	tried.answer["deallocated"] = tried.deallocations.sorted()
	return tried.answer
}

func statusFields(status *fwk.Status) fields {
	if status.IsSuccess() {
		success := fields{"code": fwk.Success.String()}
		if status != nil && len(status.Reasons()) > 0 {
			success["reasons"] = status.Reasons()
		}
		return success
	}
	return fields{"code": status.Code().String(), "plugin": status.Plugin(), "reasons": status.Reasons()}
}

func countNodes(snapshot *cache.Snapshot) int {
	nodes, err := snapshot.List()
	if err != nil {
		panic(err)
	}
	return len(nodes)
}
