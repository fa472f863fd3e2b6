"""The providers: `plan_only` changes nothing, `sandbox` makes Node objects, `karpenter` writes NodeClaims."""
