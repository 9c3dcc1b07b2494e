package cluster

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// host is a copy of an inventory that a test changes while the plugin follows it.
type host struct {
	t        *testing.T
	path     string
	document map[string]any
}

// Hosts with other adapters.
const (
	npuHost        = "../../../fixtures/inventories/made-up-npu-beside-gpu.yaml"
	twoVendorsHost = "../../../fixtures/inventories/made-up-two-vendors.yaml"
)

func copyInventory(t *testing.T, fixture, path string) *host {
	t.Helper()
	h := &host{t, path, readInventory(t, fixture)}
	h.write()
	return h
}

func readInventory(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return document
}

// adapterOf returns the adapter with this name of another host.
func adapterOf(t *testing.T, inventory, name string) any {
	t.Helper()
	for _, adapter := range readInventory(t, inventory)["adapters"].([]any) {
		if adapter.(map[string]any)["driverDescription"] == name {
			return adapter
		}
	}
	t.Fatalf("%s has no adapter %s", inventory, name)
	return nil
}

// npu returns an adapter that is a neural processor.
func npu(t *testing.T) any {
	t.Helper()
	return adapterOf(t, npuHost, "Intel(R) AI Boost")
}

func (h *host) write() {
	h.t.Helper()
	text, err := json.Marshal(h.document)
	if err != nil {
		h.t.Fatal(err)
	}
	replaceFile(h.t, h.path, text)
}

// removeGPU removes an adapter from the host and returns it.
func (h *host) removeGPU(index int) any {
	h.t.Helper()
	adapters := h.document["adapters"].([]any)
	removed := adapters[index]
	h.document["adapters"] = slices.Delete(slices.Clone(adapters), index, index+1)
	h.write()
	return removed
}

func (h *host) adapter(index int) map[string]any {
	return h.document["adapters"].([]any)[index].(map[string]any)
}

// set changes a key of an adapter.
func (h *host) set(index int, key string, value any) {
	h.t.Helper()
	h.adapter(index)[key] = value
	h.write()
}

// setProblem sets the PnP problem code of an adapter's device; 0 means a working device.
func (h *host) setProblem(index, code int) {
	h.t.Helper()
	h.adapter(index)["pnp"].(map[string]any)["problemCode"] = code
	h.write()
}

// returnGPU adds a removed adapter.
func (h *host) returnGPU(adapter any) {
	h.t.Helper()
	h.document["adapters"] = append(h.document["adapters"].([]any), adapter)
	h.write()
}

// replaceFile writes a file that readers see complete or not at all.
func replaceFile(t *testing.T, path string, text []byte) {
	t.Helper()
	err := os.WriteFile(path+".next", text, 0o644)
	if err == nil {
		err = os.Rename(path+".next", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
