package main

import (
	"context"

	"github.com/karmada-io/karmada/pkg/estimator/pb"
	"github.com/karmada-io/karmada/pkg/estimator/service"
	"google.golang.org/grpc"
)

// otherEra is Karmada's stub without the fields that clients of another era do not send: the bytes up to v1.17, the
// legacy ones from v1.19 on.
type otherEra struct {
	service.EstimatorClient
	isLegacy bool
}

func inEra(connection grpc.ClientConnInterface, era string) service.EstimatorClient {
	stub := service.NewEstimatorClient(connection)
	if era == "" {
		return stub
	}
	return &otherEra{stub, era == "legacy"}
}

func (o *otherEra) MaxAvailableReplicas(
	ctx context.Context, request *pb.MaxAvailableReplicasRequest, options ...grpc.CallOption,
) (*pb.MaxAvailableReplicasResponse, error) {
	if needed := request.ReplicaRequirements; needed != nil {
		if o.isLegacy {
			needed.ResourceRequestBytes = nil
		} else {
			needed.ResourceRequest = nil
		}
		o.strip(needed.NodeClaim)
	}
	return o.EstimatorClient.MaxAvailableReplicas(ctx, request, options...)
}

func (o *otherEra) MaxAvailableComponentSets(
	ctx context.Context, request *pb.MaxAvailableComponentSetsRequest, options ...grpc.CallOption,
) (*pb.MaxAvailableComponentSetsResponse, error) {
	for _, component := range request.Components {
		if needed := component.ReplicaRequirements; needed != nil {
			if o.isLegacy {
				needed.ResourceRequestBytes = nil
			} else {
				needed.ResourceRequest = nil
			}
			o.strip(needed.NodeClaim)
		}
	}
	return o.EstimatorClient.MaxAvailableComponentSets(ctx, request, options...)
}

func (o *otherEra) strip(claim *pb.NodeClaim) {
	switch {
	case claim == nil:
	case o.isLegacy:
		claim.NodeAffinityBytes, claim.TolerationsBytes = nil, nil
	default:
		claim.NodeAffinity, claim.Tolerations = nil, nil
	}
}
