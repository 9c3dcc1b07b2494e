package kubelet

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"directx-device-plugin/testing/kubernetes/programs"

	"sigs.k8s.io/yaml"
)

// inventoryFolder contains the inventories for tests.
const inventoryFolder = programs.Repository + "/fixtures/inventories"

// twoGPUs is a host with two equal GPUs.
const twoGPUs = "aws-t4-two.yaml"

// inventoryNames returns the file names of all inventories.
func inventoryNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(inventoryFolder)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, entry := range entries {
		if extension := filepath.Ext(entry.Name()); extension == ".yaml" || extension == ".json" {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		t.Fatalf("no inventories in %s", inventoryFolder)
	}
	return names
}

func inventoryPath(name string) string { return filepath.Join(inventoryFolder, name) }

// host is a copy of an inventory that a test changes while the plugin follows it.
type host struct {
	t        *testing.T
	path     string
	document map[string]any
}

// adapter is one entry of an inventory's `adapters`.
type adapter map[string]any

func copyInventory(t *testing.T, fixture string) *host {
	t.Helper()
	text, err := os.ReadFile(inventoryPath(fixture))
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, path: filepath.Join(t.TempDir(), "inventory.json")}
	h.document = decode[map[string]any](t, text)
	h.write()
	return h
}

// decode keeps 64-bit numbers exact, unlike Go's default of floating-point numbers.
func decode[T any](t *testing.T, text []byte) (value T) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// write replaces the file in one step, so that no reader sees a part of it.
func (h *host) write() {
	h.t.Helper()
	next := h.path + ".next"
	if err := os.WriteFile(next, encode(h.t, h.document), 0o644); err != nil {
		h.t.Fatal(err)
	}
	if err := replace(next, h.path); err != nil {
		h.t.Fatal(err)
	}
}

// replace renames a file to a path that may exist. On Windows that fails while a program
// reads the file at this path.
func replace(from, to string) error {
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || time.Since(start) > waitLimit {
			return err
		}
	}
}

func (h *host) adapters() []any { return h.document["adapters"].([]any) }

func (h *host) adapter(index int) adapter { return h.adapters()[index].(map[string]any) }

// setProblem sets the PnP problem code of an adapter's device; 0 means a working device.
func (h *host) setProblem(index, code int) {
	h.t.Helper()
	h.adapter(index)["pnp"].(map[string]any)["problemCode"] = code
	h.write()
}

// removeAdapter removes an adapter from the host and returns it.
func (h *host) removeAdapter(index int) adapter {
	h.t.Helper()
	removed := h.adapter(index)
	h.document["adapters"] = slices.Delete(slices.Clone(h.adapters()), index, index+1)
	h.write()
	return removed
}

// addAdapter adds an adapter to the host.
func (h *host) addAdapter(a adapter) {
	h.t.Helper()
	h.document["adapters"] = append(h.adapters(), map[string]any(a))
	h.write()
}

// another returns an adapter of the same model at another location in the host.
func (h *host) another(a adapter) adapter {
	h.t.Helper()
	copied := decode[adapter](h.t, encode(h.t, a))
	copied["luid"] = 9000001
	pnp := copied["pnp"].(map[string]any)
	pnp["id"] = strings.TrimSuffix(pnp["id"].(string), "D8") + "F0"
	pnp["locationPaths"] = []string{"PCIROOT(0)#PCI(1E00)"}
	return copied
}

// withLUID returns the adapter as it is after its driver has restarted.
func (a adapter) withLUID(luid int) adapter {
	a["luid"] = luid
	return a
}
