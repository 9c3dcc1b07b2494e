package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The label of a node selects one of several configurations, for the devices and for the labels.
// Changes of the label and of the configuration have an effect without a restart. A name without
// a configuration changes nothing, and is reported.
func TestLabelSelectsTheConfiguration(t *testing.T) {
	t.Parallel()
	n := newNode(t, "selection", "")
	configurations := filepath.Join(n.folder, "configurations")
	if err := os.Mkdir(configurations, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string, replicas int) {
		replaceFile(t, filepath.Join(configurations, name), fmt.Appendf(nil, "multitenancy: %d\n", replicas))
	}
	write("default", 1)
	write("shared", 3)
	n.named = []string{"--config-directory", configurations, "--config-selection", filepath.Join(n.folder, "selection")}
	n.startAll()
	n.mustHave(2, 2)
	n.startDiscovery(n.account(accountName), apiServerPort(), n.name, "--select-config")
	n.mustHaveReplicas("1")

	n.selectConfiguration(`"shared"`)
	n.mustHave(6, 6)
	n.mustHaveReplicas("3")
	write("shared", 4)
	n.mustHave(8, 8)
	n.mustHaveReplicas("4")

	n.selectConfiguration(`"unknown"`)
	eventually(t, "Events", "DirectXConfigurationRejected", n.events)
	if now := n.count(display); now != (count{8, 8}) {
		t.Errorf("with an unknown configuration, the node has %v", now)
	}
	n.selectConfiguration("null")
	n.mustHave(2, 2)
	n.mustHaveReplicas("1")
}

// selectConfiguration sets the label that selects a configuration, to a value in JSON.
func (n *node) selectConfiguration(name string) {
	n.t.Helper()
	n.patch(`{"metadata": {"labels": {"` + labelPrefix + `device-plugin.config": ` + name + `}}}`)
}

func (n *node) mustHaveReplicas(number string) {
	n.t.Helper()
	eventually(n.t, "the label of replicas", number, func() string { return n.object().Labels[labelPrefix+"replicas"] })
}
