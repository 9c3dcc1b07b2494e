package cluster

import (
	"context"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPublishedChart installs a chart from a registry, as users do. Its DaemonSets name the images that were pushed, by digest.
func TestPublishedChart(t *testing.T) {
	chart, images := os.Getenv("PUBLISHED_CHART"), os.Getenv("PUBLISHED_IMAGES")
	if chart == "" {
		t.Skip("the step `release` of `cargo xtask test` pushes a chart and runs this test")
	}
	install := func(name, values string) {
		runHelm(t, "install", name, chart, "--devel", "--create-namespace", "--ca-file", os.Getenv("PUBLISHED_CERTIFICATE"), "--set", values)
	}
	install("gpus", "psa.enabled=true,visibility.enabled=true,featureDiscovery.enabled=true")
	install("trial", "demonstration.enabled=true")
	sets, err := api.AppsV1().DaemonSets(chartNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, set := range sets.Items {
		pod := set.Spec.Template.Spec
		for _, container := range append(pod.InitContainers, pod.Containers...) {
			if !strings.Contains(container.Image, "@sha256:") || !strings.Contains(images, container.Image) {
				t.Errorf("%s has the image %s, expected one of\n%s", set.Name, container.Image, images)
			}
			found[container.Image] = true
		}
	}
	if expected := strings.Count(images, "@sha256:"); len(found) != expected {
		t.Errorf("the DaemonSets have %d images, expected %d", len(found), expected)
	}
	runHelm(t, "uninstall", "gpus")
	runHelm(t, "uninstall", "trial")
}
