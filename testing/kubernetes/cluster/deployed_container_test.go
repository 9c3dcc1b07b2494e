package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// mountPoint is where containerd puts the files of a HostProcess container. It replaces this name in
// commands and variables.
const mountPoint = "%CONTAINER_SANDBOX_MOUNT_POINT%"

// deployed is the container of a DaemonSet as it runs on a node: its program has these arguments
// and variables.
type deployed struct {
	program     string
	arguments   []string
	environment []string
}

// deployed returns the containers of the DaemonSets in a manifest, with the files of their
// ConfigMaps in folders of the node.
func (n *node) deployed(manifest string) []deployed {
	n.t.Helper()
	text, err := os.ReadFile(manifest)
	if err != nil {
		n.t.Fatal(err)
	}
	daemonSets, configMaps := []appsv1.DaemonSet{}, map[string]v1.ConfigMap{}
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var kind metav1.TypeMeta
		var daemonSet appsv1.DaemonSet
		var configMap v1.ConfigMap
		if err == nil {
			err = yaml.Unmarshal(document, &kind)
		}
		if err == nil && kind.Kind == "DaemonSet" {
			err = yaml.UnmarshalStrict(document, &daemonSet)
			daemonSets = append(daemonSets, daemonSet)
		}
		if err == nil && kind.Kind == "ConfigMap" {
			err = yaml.UnmarshalStrict(document, &configMap)
			configMaps[configMap.Name] = configMap
		}
		if err != nil {
			n.t.Fatalf("%s: %v", manifest, err)
		}
	}
	containers := []deployed{}
	for _, daemonSet := range daemonSets {
		containers = append(containers, n.deploy(daemonSet, configMaps))
	}
	return containers
}

func (n *node) deploy(daemonSet appsv1.DaemonSet, configMaps map[string]v1.ConfigMap) deployed {
	n.t.Helper()
	pod := daemonSet.Spec.Template.Spec
	container := pod.Containers[0]
	root := filepath.Join(n.folder, "containers-of-pods", daemonSet.Name)
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Volumes {
			if volume.Name == mount.Name && volume.ConfigMap != nil {
				files := configMaps[volume.ConfigMap.Name].Data
				if items := volume.ConfigMap.Items; len(items) > 0 {
					files = map[string]string{items[0].Path: files[items[0].Key]}
				}
				n.writeFiles(filepath.Join(root, mount.MountPath), files)
			}
		}
	}
	inside := func(text string) string {
		if replaced := strings.ReplaceAll(text, mountPoint, root); replaced != text {
			return strings.ReplaceAll(replaced, `\`, "/")
		}
		return text
	}
	d := deployed{program: strings.TrimSuffix(filepath.Base(inside(container.Command[0])), ".exe")}
	for _, word := range append(container.Command[1:], container.Args...) {
		d.arguments = append(d.arguments, inside(word))
	}
	for _, variable := range container.Env {
		value := inside(variable.Value)
		if variable.ValueFrom != nil {
			value = map[string]string{"metadata.uid": "uid-of-" + daemonSet.Name, "spec.nodeName": n.name}[variable.ValueFrom.FieldRef.FieldPath]
		}
		d.environment = append(d.environment, variable.Name+"="+value)
	}
	return d
}

func (n *node) writeFiles(folder string, files map[string]string) {
	n.t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		n.t.Fatal(err)
	}
	for name, text := range files {
		replaceFile(n.t, filepath.Join(folder, name), []byte(text))
	}
}
