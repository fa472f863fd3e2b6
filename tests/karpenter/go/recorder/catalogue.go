package main

import (
	"context"
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

const reservationID = "karpenter.kwok.sh/reservation-id"

// wellKnown are the labels before any catalogue adds its own: kwok's provider adds them for good.
var wellKnown sets.Set[string]

func init() {
	cloudprovider.ReservationIDLabel = reservationID
	cloudprovider.ReservedCapacityLabels.Insert(reservationID)
	v1.WellKnownLabels = v1.WellKnownLabels.Insert(reservationID)
	wellKnown = v1.WellKnownLabels.Clone()
}

// instanceType is what a catalogue says beside what kwok's provider takes from it.
type instanceType struct {
	Offerings []struct {
		Available        *bool
		CapacityOverride corev1.ResourceList
	} `json:"offerings"`
}

// catalogue is read by kwok's own provider; then offerings become unavailable or get capacities of their own, which kwok
// would drop.
func catalogue(ctx context.Context, text json.RawMessage) ([]*cloudprovider.InstanceType, error) {
	v1.WellKnownLabels = wellKnown.Clone()
	file, err := os.CreateTemp("", "instance-types-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(text); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	types, err := kwok.ConstructInstanceTypes(
		kwokoptions.ToContext(ctx, &kwokoptions.Options{InstanceTypesFilePath: file.Name()}))
	if err != nil {
		return nil, err
	}
	var extras []instanceType
	if err := json.Unmarshal(text, &extras); err != nil {
		return nil, err
	}
	for i, extra := range extras {
		for j, offering := range extra.Offerings {
			if offering.Available != nil {
				types[i].Offerings[j].Available = *offering.Available
			}
			types[i].Offerings[j].CapacityOverride = offering.CapacityOverride
		}
	}
	return types, nil
}
