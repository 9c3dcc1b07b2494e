package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// everyImage are values with which the chart uses each of its images.
var everyImage = []string{
	"visibility: {enabled: true}\nfeatureDiscovery: {enabled: true, cleanup: true}\n",
	"demonstration: {enabled: true}\nfeatureDiscovery: {enabled: true, cleanup: true}\n",
}

// publishedChart returns the folder of a chart as `cargo xtask release` writes it: with another version, registry and digests.
func publishedChart(t *testing.T, version, digit string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "directx-device-plugin")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(repository, chart))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Chart.yaml", "values.yaml", "defaults.yaml"} {
		text := strings.ReplaceAll(read(t, chart+"/"+name), placeholder, "ghcr.io/owner")
		for _, image := range []string{"directx-device-plugin", "directx-visible", "directx-device-plugin-linux"} {
			text = strings.ReplaceAll(text, image+":"+appVersion(t), image+":"+version+"@sha256:"+strings.Repeat(digit, 64))
		}
		text = strings.ReplaceAll(text, "ersion: "+appVersion(t), "ersion: "+version)
		text = strings.ReplaceAll(text, `"`+appVersion(t)+`"`, `"`+version+`"`)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// imagesOf returns the images of a chart with each of these values, and with more arguments.
func imagesOf(t *testing.T, folder string, values []string, more ...string) []string {
	t.Helper()
	found := []string{}
	for _, values := range values {
		manifest, messages, err := runHelm(t, append(append([]string{"template", release, folder}, more...), "--values", valuesFile(t, values))...)
		if err != nil {
			t.Fatalf("helm template: %v\n%s", err, messages)
		}
		for line := range strings.Lines(manifest) {
			if _, image, ok := strings.Cut(line, " image: "); ok {
				found = append(found, strings.Trim(image, "\"\n"))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestPublishedImages checks the images of a published chart, also with the default values of an older one, which
// `helm upgrade --reuse-values` keeps.
func TestPublishedImages(t *testing.T) {
	older, newer := publishedChart(t, "0.9.0", "1"), publishedChart(t, "1.0.0-rc.1", "2")
	digest := "@sha256:" + strings.Repeat("2", 64)
	of := func(tag string, prefix string) string {
		return strings.Join([]string{prefix + "directx-device-plugin-linux:" + tag, prefix + "directx-device-plugin:" + tag, prefix + "directx-visible:" + tag}, " ")
	}
	tagged := []string{}
	for i, image := range []string{"image: {tag: test}\n", ""} {
		tagged = append(tagged, image+strings.Replace(everyImage[i], "enabled: true", "enabled: true, image: {tag: test}", 1))
	}
	for _, example := range []struct {
		name, expected string
		values         []string
		more           []string
	}{
		{"no values", of("1.0.0-rc.1"+digest, "ghcr.io/owner/"), everyImage, nil},
		{"the values of the older chart", of("1.0.0-rc.1"+digest, "ghcr.io/owner/"), everyImage, []string{"--values", filepath.Join(older, "values.yaml")}},
		{"a mirror", of("1.0.0-rc.1"+digest, "mirror.example/gpu/"), everyImage, []string{"--set", "image.repository=mirror.example/gpu/directx-device-plugin"}},
		{"no repository", of("1.0.0-rc.1"+digest, "ghcr.io/owner/"), everyImage, []string{"--set", "image=null"}},
		{"other tags", of("test", "ghcr.io/owner/"), tagged, nil},
	} {
		mustEqual(t, example.name, strings.Join(imagesOf(t, newer, example.values, example.more...), " "), example.expected)
	}
}
