package cluster

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Without seeds, the walk is always the same. Longer ones on a paused clock are in testing/node_walk.
const (
	walkSeedsVariable = "WALK_SEEDS"
	walkStepsVariable = "WALK_STEPS"
)

// removalGrace is short, so that a device that was removed from the host is soon removed from the
// node.
const removalGrace = 1

// walk is a sequence of random changes of a node.
type walk struct {
	*node
	random *rand.Rand
	// server is the API server of the feature discovery.
	server  *apiServer
	account account
	// unplugged are adapters that the host had before.
	unplugged []map[string]any
	// active is the newest valid configuration.
	active map[string]any
	// isRejected says that the configuration file is not valid.
	isRejected bool
	// pluginRestarts says that the plugin may start again in this step.
	pluginRestarts bool
	// cordons are the devices in the node's annotation.
	cordons  []string
	pods     []walkPod
	deleted  []pod
	podsEver int
	// expected is the state at the last rest.
	expected expectation
	// steps is what was done.
	steps []string
}

// walkPod is a pod that requests one device of a resource.
type walkPod struct {
	pod
	resource string
}

// Whatever happens to a node, in any order: when it is at rest again, the node object, the status and
// the metrics of the plugin, and the labels and conditions of the feature discovery all say what
// `simulate` predicts for the same host, configuration and cordons.
func TestNodeIsConsistentAfterRandomChanges(t *testing.T) {
	t.Parallel()
	for _, seed := range walkSeeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := startWalk(t, seed)
			for range setting(t, walkStepsVariable, 10) {
				w.step()
			}
			w.mustNotPanic()
		})
	}
}

func walkSeeds(t *testing.T) []uint64 {
	t.Helper()
	text := os.Getenv(walkSeedsVariable)
	if text == "" {
		return []uint64{1}
	}
	seeds := []uint64{}
	for word := range strings.SplitSeq(text, ",") {
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q, expected numbers and commas", walkSeedsVariable, text)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// startWalk starts a node at rest.
func startWalk(t *testing.T, seed uint64) *walk {
	t.Helper()
	n := newNode(t, fmt.Sprintf("walk-%d", seed), "")
	n.host.returnGPU(npu(t))
	n.host.returnGPU(adapterOf(t, twoVendorsHost, "AMD Radeon Pro V520 MxGPU"))
	n.host.returnGPU(adapterOf(t, npuHost, "Intel(R) Arc(TM) Graphics"))
	w := &walk{node: n, random: rand.New(rand.NewPCG(seed, 0)), server: startAPIServer(t)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat the walk with %s=%d:\n%s", walkSeedsVariable, seed, strings.Join(w.steps, "\n"))
		}
	})
	w.configureWalk(map[string]any{})
	w.startAll()
	w.account = w.node.account(accountName)
	w.startItsDiscovery()
	w.rest()
	return w
}

func (w *walk) startItsDiscovery() {
	w.t.Helper()
	w.startDiscovery(w.account, strconv.Itoa(w.server.port), w.name, "--listen=127.0.0.1:0")
}

// step makes one change, often while something is disturbed, and waits until the node is at rest.
func (w *walk) step() {
	w.t.Helper()
	w.steps = append(w.steps, "")
	around := w.chooseDisturbances()
	change := w.makeChange
	for _, disturbance := range around {
		inner := change
		change = func() { disturbance.do(w, inner) }
	}
	start := time.Now()
	change()
	made := time.Since(start)
	w.rest()
	w.t.Logf("%s (%.0f s, at rest after %.0f s)", w.steps[len(w.steps)-1], made.Seconds(), (time.Since(start) - made).Seconds())
}

// note adds a text to what the step does.
func (w *walk) note(format string, arguments ...any) {
	step := &w.steps[len(w.steps)-1]
	if *step != "" {
		*step += "; "
	}
	*step += fmt.Sprintf(format, arguments...)
}

// oneOf returns a random one of these.
func oneOf[T any](w *walk, all []T) T { return all[w.random.IntN(len(all))] }

// mustNotPanic fails if one of our programs has panicked.
func (w *walk) mustNotPanic() {
	w.t.Helper()
	for _, p := range []*process{w.plugin, w.discovery} {
		text, err := os.ReadFile(p.log)
		if err != nil {
			w.t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		if at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "panicked") }); at >= 0 {
			w.t.Errorf("%s: %s", p.log, lines[at])
		}
	}
}
