package manifests

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
)

// strict decodes as the API server does with fieldValidation=Strict: unknown and duplicate
// fields are errors.
var strict = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// objects are the objects of a manifest, after the API server has set their defaults.
type objects struct {
	daemonSets []*appsv1.DaemonSet
	configMaps []*corev1.ConfigMap
	// pods are those of Jobs and Deployments.
	pods       []corev1.PodSpec
	jobs       []*batchv1.Job
	services   []*corev1.Service
	namespaces []*corev1.Namespace
	// tests are the pods of `helm test`.
	tests   []*corev1.Pod
	account access
	// mutations are the policies that change pods.
	mutations []*admissionv1.MutatingAdmissionPolicy
	// custom are objects whose kinds an operator adds.
	custom []unstructured.Unstructured
}

// access is what describes the rights of a service account.
type access struct {
	accounts     []*corev1.ServiceAccount
	clusterRoles []*rbacv1.ClusterRole
	roles        []*rbacv1.Role
	subjects     []rbacv1.Subject
	policies     []*admissionv1.ValidatingAdmissionPolicy
	bindings     []*admissionv1.ValidatingAdmissionPolicyBinding
}

// admit decodes a manifest and passes each object to the API server's own creation strategy.
// Warnings are errors.
func admit(manifest string) (objects, error) {
	var found objects
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		if isEmpty(document) {
			continue
		}
		if bytes.Contains(document, []byte("apiVersion: monitoring.coreos.com/v1")) {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				return found, err
			}
			found.custom = append(found.custom, object)
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			return found, err
		}
		legacyscheme.Scheme.Default(object)
		switch object := object.(type) {
		case *appsv1.DaemonSet:
			found.daemonSets = append(found.daemonSets, object)
			err = create(daemonset.Strategy, object)
		case *corev1.ConfigMap:
			found.configMaps = append(found.configMaps, object)
			err = create(configmap.Strategy, object)
		case *batchv1.Job:
			found.pods = append(found.pods, object.Spec.Template.Spec)
			found.jobs = append(found.jobs, object)
			err = create(job.Strategy, object)
		case *corev1.Service:
			found.services = append(found.services, object)
			// The API server sets it before the validation.
			object.Spec.ClusterIPs = []string{object.Spec.ClusterIP}
			err = create(service.Strategy, object)
		case *corev1.Namespace:
			found.namespaces = append(found.namespaces, object)
			err = create(namespace.Strategy, object)
		case *corev1.Pod:
			found.tests = append(found.tests, object)
			err = create(pod.Strategy, object)
		case *appsv1.Deployment:
			found.pods = append(found.pods, object.Spec.Template.Spec)
			err = create(deployment.Strategy, object)
		case *admissionv1.MutatingAdmissionPolicy:
			found.mutations = append(found.mutations, object)
			err = create(mutatingadmissionpolicy.NewStrategy(nil, nil), object)
		case *admissionv1.MutatingAdmissionPolicyBinding:
			err = create(mutatingadmissionpolicybinding.NewStrategy(nil, nil, nil), object)
		default:
			err = found.account.admit(object)
		}
		if err != nil {
			return found, err
		}
	}
}

// admit validates one object.
func (a *access) admit(object runtime.Object) error {
	switch object := object.(type) {
	case *corev1.ServiceAccount:
		a.accounts = append(a.accounts, object)
		return create(serviceaccount.Strategy, object)
	case *rbacv1.ClusterRole:
		a.clusterRoles = append(a.clusterRoles, object)
		return create(clusterrole.Strategy, object)
	case *rbacv1.ClusterRoleBinding:
		a.subjects = append(a.subjects, object.Subjects...)
		return create(clusterrolebinding.Strategy, object)
	case *rbacv1.Role:
		a.roles = append(a.roles, object)
		return create(role.Strategy, object)
	case *rbacv1.RoleBinding:
		a.subjects = append(a.subjects, object.Subjects...)
		return create(rolebinding.Strategy, object)
	case *admissionv1.ValidatingAdmissionPolicy:
		a.policies = append(a.policies, object)
		return create(validatingadmissionpolicy.NewStrategy(nil, nil), object)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		a.bindings = append(a.bindings, object)
		return create(validatingadmissionpolicybinding.NewStrategy(nil, nil, nil), object)
	default:
		return fmt.Errorf("unexpected object %T", object)
	}
}

// isEmpty reports whether a document has only comments.
func isEmpty(document []byte) bool {
	for _, line := range bytes.Split(document, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// create does what the API server does before it stores a new object.
func create(strategy rest.RESTCreateStrategy, object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if strategy.NamespaceScoped() != (accessor.GetNamespace() != "") {
		if !strategy.NamespaceScoped() {
			return fmt.Errorf("%T %s has a namespace", object, accessor.GetName())
		}
		return fmt.Errorf("%T %s has no namespace", object, accessor.GetName())
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	system, err := meta.Accessor(internal)
	if err != nil {
		return err
	}
	rest.FillObjectMetaSystemFields(system)
	kind := object.GetObjectKind().GroupVersionKind()
	ctx := request.WithNamespace(context.Background(), accessor.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version})
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		return err
	}
	if warnings := strategy.WarningsOnCreate(ctx, internal); len(warnings) > 0 {
		return fmt.Errorf("%s: the API server warns: %s", accessor.GetName(), strings.Join(warnings, "; "))
	}
	return nil
}
