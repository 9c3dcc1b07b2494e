package manifests

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestOldestHelm renders the chart with the oldest version of helm that its README names. The result is that of the newest one, and
// what that refuses is refused.
func TestOldestHelm(t *testing.T) {
	oldest := os.Getenv("OLDEST_HELM")
	if oldest == "" {
		t.Skip("the step `manifests` of `cargo xtask test` names the oldest helm in OLDEST_HELM")
	}
	version, err := exec.Command(oldest, "version", "--template={{.Version}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	numbers := strings.Split(strings.TrimPrefix(string(version), "v"), ".")
	if sentence := "Helm " + numbers[0] + "." + numbers[1] + " or newer"; !strings.Contains(read(t, chart+"/README.md"), sentence) {
		t.Errorf("the README of the chart does not contain %q", sentence)
	}
	for _, variant := range variants {
		if variant.file != "" {
			continue
		}
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			arguments := append(template(t, variant.values), "--kube-version=1.37.0")
			found, messages, err := runVersion(t, oldest, arguments...)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, messages)
			}
			expected, messages, err := runHelm(t, arguments...)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, messages)
			}
			mustEqual(t, "objects", documents(found), documents(expected))
		})
	}
	for _, invalid := range refused(t) {
		t.Run(invalid.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := runVersion(t, oldest, append(template(t, invalid.values), "--kube-version=1.37.0")...); err == nil {
				t.Error("helm renders the chart")
			}
		})
	}
	mustReadNullsAsDefaults(t, oldest)
}

// documents returns the documents of a manifest in an order that does not depend on the version of helm.
func documents(manifest string) string {
	found := strings.Split(manifest, "\n---\n")
	for i := range found {
		found[i] = strings.TrimSpace(strings.TrimPrefix(found[i], "---\n"))
	}
	slices.Sort(found)
	return strings.Join(found, "\n---\n")
}
