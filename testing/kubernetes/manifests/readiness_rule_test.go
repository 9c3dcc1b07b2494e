package manifests

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestReadinessRule checks the rule for the Node Readiness Controller, whose definition of the
// resource is not part of the tests: the rule names a condition that the program may set, and the
// fields are those of the definition.
func TestReadinessRule(t *testing.T) {
	const page = "docs/autoscaling.md"
	_, text, found := strings.Cut(read(t, page), "```yaml\napiVersion: readiness.node.x-k8s.io/v1alpha1\n")
	text, _, _ = strings.Cut(text, "```")
	var rule struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Conditions      []struct{ Type, RequiredStatus string }
			Taint           struct{ Key, Effect string }
			EnforcementMode string
			NodeSelector    struct{ MatchLabels map[string]string }
		}
	}
	if err := yaml.UnmarshalStrict([]byte(text), &rule); err != nil || !found || rule.Kind != "NodeReadinessRule" {
		t.Fatalf("%s has no rule: %v\n%s", page, err, text)
	}
	condition := rule.Spec.Conditions[0]
	mustEqual(t, "status", condition.RequiredStatus, "True")
	policy := read(t, "deploy/feature-discovery.yml")
	if !strings.Contains(policy, "c.type in ['DirectXDevicesHealthy', '"+condition.Type+"']") {
		t.Errorf("the policy does not permit the condition %s", condition.Type)
	}
	// The controller refuses other prefixes, and a rule for every node. The page describes this mode.
	if !strings.HasPrefix(rule.Spec.Taint.Key, "readiness.k8s.io/") || rule.Spec.EnforcementMode != "bootstrap-only" || len(rule.Spec.NodeSelector.MatchLabels) == 0 {
		t.Errorf("the rule is %+v", rule.Spec)
	}
}
