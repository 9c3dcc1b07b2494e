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

func copyInventory(t *testing.T, fixture, path string) *host {
	t.Helper()
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, path: path}
	if err := yaml.Unmarshal(text, &h.document); err != nil {
		t.Fatal(err)
	}
	h.write()
	return h
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
