package manifests

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// TestPolicyFollowsTheAccount checks that the policy restricts the account in whichever namespace and with whichever
// prefix and suffix kustomize puts it, as Flux and Argo CD do, too. The policy has the name of the account in an
// expression, where kustomize does not change it.
func TestPolicyFollowsTheAccount(t *testing.T) {
	rendered := func(values string) string {
		manifest, messages, err := render(t, values, "--no-hooks")
		if err != nil {
			t.Fatalf("helm template: %v\n%s", err, messages)
		}
		return manifest
	}
	const chart = "featureDiscovery: {enabled: true}\n"
	for name, manifest := range map[string]string{
		"manifest":           read(t, "deploy/feature-discovery.yml"),
		"chart":              rendered(chart),
		"long release":       rendered(chart + "nameOverride: windows-gpu-nodes-of-the-second-cluster-directx"),
		"account with a dot": rendered(chart + "serviceAccount: {name: directx.labels}"),
	} {
		const namespace, prefix, suffix = "namespace: windows-gpu\n", "namePrefix: team-\n", "nameSuffix: -b\n"
		for change, fields := range map[string]string{
			"nothing": "", "namespace": namespace, "prefix": prefix, "suffix": suffix, "everything": namespace + prefix + suffix,
		} {
			t.Run(name+"/"+change, func(t *testing.T) {
				mustFollow(t, customize(t, manifest, fields))
			})
		}
	}
	// The name of the account is too short for a prefix.
	for name, values := range map[string]string{
		"fullnameOverride": chart + "fullnameOverride: gpu", "serviceAccount.name": chart + "serviceAccount: {name: gpu}",
	} {
		t.Run(name, func(t *testing.T) {
			mustFollow(t, customize(t, rendered(values), "namespace: windows-gpu"))
		})
	}
}

// TestPolicyRestrictsNoOther checks that the policy is not for accounts of other programs.
func TestPolicyRestrictsNoOther(t *testing.T) {
	const chart = "featureDiscovery: {enabled: true}\n"
	for name, found := range map[string]objects{
		"manifest": variantObjects(t, "feature-discovery.yml", ""), "chart": mustRender(t, chart),
		"fullnameOverride":    mustRender(t, chart+"fullnameOverride: gpu"),
		"serviceAccount.name": mustRender(t, chart+"serviceAccount: {name: gpu}"),
		"dot":                 mustRender(t, chart+"serviceAccount: {name: gpu.labels}"),
	} {
		for _, username := range []string{
			"system:node:node-1", "system:admin", "directx-feature-discovery",
			"system:serviceaccount:kube-system:node-controller", "system:serviceaccount:node-feature-discovery:node-feature-discovery-master",
			"system:serviceaccount:gpu-operator:gpu-operator", "system:serviceaccount:gpu-operator:nvidia-gpu-feature-discovery",
			"system:serviceaccount:directx-feature-discovery:default", "system:serviceaccount:kube-system:gpu-labels",
		} {
			if isFor(t, found.account.policies[0], username) {
				t.Errorf("%s: the policy restricts %s", name, username)
			}
		}
	}
}

// customize returns a manifest as a kustomization with these fields renders it.
func customize(t *testing.T, manifest, fields string) string {
	t.Helper()
	files := filesys.MakeFsInMemory()
	for name, text := range map[string]string{"manifest.yaml": manifest, "kustomization.yaml": "resources: [manifest.yaml]\n" + fields} {
		if err := files.WriteFile("/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/")
	if err != nil {
		t.Fatal(err)
	}
	text, err := found.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mustFollow fails unless the account of the feature discovery's pods is the one that gets the rights, and the one that
// the policy restricts.
func mustFollow(t *testing.T, manifest string) {
	t.Helper()
	var daemonSet *appsv1.DaemonSet
	var subjects []rbacv1.Subject
	var policy *admissionv1.ValidatingAdmissionPolicy
	var binding *admissionv1.ValidatingAdmissionPolicyBinding
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if isEmpty(document) {
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch object := object.(type) {
		case *appsv1.DaemonSet:
			if isDiscovery(object) {
				daemonSet = object
			}
		case *rbacv1.ClusterRoleBinding:
			subjects = append(subjects, object.Subjects...)
		case *admissionv1.ValidatingAdmissionPolicy:
			policy = object
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			binding = object
		}
	}
	name := daemonSet.Spec.Template.Spec.ServiceAccountName
	if len(subjects) != 1 || subjects[0] != (rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: daemonSet.Namespace}) {
		t.Errorf("the rights are those of %v, and the pods have the account %s in %s", subjects, name, daemonSet.Namespace)
	}
	mustEqual(t, "bound policy", binding.Spec.PolicyName, policy.Name)
	if username := "system:serviceaccount:" + daemonSet.Namespace + ":" + name; !isFor(t, policy, username) {
		t.Errorf("the policy does not restrict %s:\n%s", username, policy.Spec.MatchConditions[0].Expression)
	}
}

// isFor reports whether the API server applies a policy to changes of nodes by this user.
func isFor(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, username string) bool {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	conditions := []cel.ExpressionAccessor{}
	for _, condition := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&condition))
	}
	evaluator := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	matcher := matchconditions.NewMatcher(evaluator, policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	kind, resource := corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithResource("nodes")
	attributes := admission.NewAttributesRecord(node, node, kind, "", node.Name, resource, "", admission.Update,
		&metav1.PatchOptions{}, false, &user.DefaultInfo{Name: username})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind,
		VersionedObject: admission.NewLazyObject(node), VersionedOldObject: admission.NewLazyObject(node)}
	result := matcher.Match(t.Context(), versioned, nil, nil)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	return result.Matches
}
