package kubelet

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// fixtureFolder holds the recorded inventories.
const fixtureFolder = "../../fixtures/inventories"

// twoCards is a host with two equal GPUs.
const twoCards = "aws-t4-two.yaml"

// fixtures are the names of all recorded inventories.
func fixtures(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(fixtureFolder)
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
		t.Fatalf("no inventories in %s", fixtureFolder)
	}
	return names
}

func fixturePath(name string) string { return filepath.Join(fixtureFolder, name) }

// host is a copy of a recorded inventory that a test changes while the plugin reads it.
type host struct {
	t        *testing.T
	path     string
	document map[string]any
}

// adapter is one entry of an inventory's `adapters`.
type adapter map[string]any

func copyOf(t *testing.T, fixture string) *host {
	t.Helper()
	text, err := os.ReadFile(fixturePath(fixture))
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

// decode keeps 64-bit numbers, which JSON's usual floating point does not.
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

// write replaces the file in one step, so that no reader sees half of it.
func (h *host) write() {
	h.t.Helper()
	next := h.path + ".next"
	if err := os.WriteFile(next, encode(h.t, h.document), 0o644); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(next, h.path); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) adapters() []any { return h.document["adapters"].([]any) }

func (h *host) adapter(index int) adapter { return h.adapters()[index].(map[string]any) }

// setProblem gives an adapter's device a PnP problem code; 0 is a working device.
func (h *host) setProblem(index, code int) {
	h.t.Helper()
	h.adapter(index)["pnp"].(map[string]any)["problemCode"] = code
	h.write()
}

// pull removes an adapter from the host and returns it.
func (h *host) pull(index int) adapter {
	h.t.Helper()
	pulled := h.adapter(index)
	h.document["adapters"] = slices.Delete(slices.Clone(h.adapters()), index, index+1)
	h.write()
	return pulled
}

// plug adds an adapter to the host.
func (h *host) plug(a adapter) {
	h.t.Helper()
	h.document["adapters"] = append(h.adapters(), map[string]any(a))
	h.write()
}

// another is an equal adapter in another slot of the host.
func (h *host) another(a adapter) adapter {
	h.t.Helper()
	copied := decode[adapter](h.t, encode(h.t, a))
	copied["luid"] = 9000001
	pnp := copied["pnp"].(map[string]any)
	pnp["id"] = strings.TrimSuffix(pnp["id"].(string), "D8") + "F0"
	pnp["locationPaths"] = []string{"PCIROOT(0)#PCI(1E00)"}
	return copied
}

// withLUID is the adapter after its driver was started again.
func (a adapter) withLUID(luid int) adapter {
	a["luid"] = luid
	return a
}
