package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// accountManifest has the account of the program directx-feature-discovery, and its permissions.
const accountManifest = "../../../deploy/feature-discovery.yml"

// applyManifest creates the objects of a manifest, except DaemonSets: their pods are Windows pods.
func applyManifest(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return apply(text)
}

// apply does the same for the text of a manifest.
func apply(text []byte) error {
	groups, err := restmapper.GetAPIGroupResources(api.Discovery())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(administrator)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(document, &object.Object)
		}
		if err != nil {
			return err
		}
		if object.Object == nil || object.GetKind() == "DaemonSet" {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		resource := client.Resource(mapping.Resource)
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			_, err = resource.Namespace(object.GetNamespace()).Create(context.Background(), object, options)
		} else {
			_, err = resource.Create(context.Background(), object, options)
		}
		if err != nil {
			return err
		}
	}
}
