package main

import (
	"context"
	"encoding/json"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// answerSelector is whether an expression selects a device, or why it is no selector or could not be evaluated.
func answerSelector(ctx context.Context, asked *question) (fields, error) {
	var device resourceapi.Device
	if err := json.Unmarshal(asked.Device, &device); err != nil {
		return nil, err
	}
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	selector := compiler.CompileCELExpression(asked.Expression, cel.Options{DisableCostEstimation: true})
	if selector.Error != nil {
		return fields{"error": "CEL compile error: " + selector.Error.Error()}, nil
	}
	matches, _, err := selector.DeviceMatches(ctx, cel.Device{
		Driver:                   asked.Driver,
		AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes:               device.Attributes,
		Capacity:                 device.Capacity,
	})
	if err != nil {
		return fields{"error": "CEL runtime error: " + err.Error()}, nil
	}
	return fields{"matches": matches}, nil
}
