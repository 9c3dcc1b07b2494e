package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// The benchmark runs the test with more nodes, for longer times, and reads the figures.
const (
	fleetNodesVariable   = "FLEET_NODES"
	fleetSecondsVariable = "FLEET_SECONDS"
	fleetFiguresVariable = "FLEET_FIGURES"
)

// startPause is the time between the starts of two programs. The controller of DaemonSets starts
// fewer: with its default settings, 20 pods in a second.
const startPause = 20 * time.Millisecond

// phase is what the API server has received from the programs of all nodes in some time.
type phase struct {
	// Requests is the number of each node.
	Requests []int `json:"requests"`
	// Writes is the number of all nodes.
	Writes int `json:"writes"`
	// Refused is the number of requests of all nodes that were refused, by the status.
	Refused map[int]int `json:"refused"`
	// Seconds is when each node was served: its first watch that was accepted, since the phase began.
	Seconds []float64 `json:"seconds"`
	// Busiest is the largest number of requests in a second.
	Busiest int `json:"busiest"`
}

// figures are the results for the benchmark.
type figures struct {
	Start         phase   `json:"start"`
	Steady        phase   `json:"steady"`
	SteadySeconds float64 `json:"steadySeconds"`
	Restart       phase   `json:"restart"`
	StartPause    float64 `json:"startPauseMilliseconds"`
	Outage        phase   `json:"outage"`
	OutageSeconds float64 `json:"outageSeconds"`
}

// The programs of many nodes write nothing while nothing changes: not when other programs change the
// nodes, not after a restart, and not after an outage of the API server. How many requests they need
// is printed, and judged by the benchmark on an idle machine: a busy API server refuses some.
func TestFleetSendsFewRequests(t *testing.T) {
	t.Parallel()
	nodes, seconds := setting(t, fleetNodesVariable, 20), setting(t, fleetSecondsVariable, 2)
	duration := time.Duration(seconds) * time.Second
	f := newFleet(t, nodes)
	result := figures{StartPause: startPause.Seconds() * 1000, OutageSeconds: duration.Seconds()}

	result.Start = f.during(func() {
		f.start()
		eventually(t, "nodes with labels and conditions", nodes, f.complete)
	})
	start := time.Now()
	result.Steady = f.during(func() {
		for count := 0; count < 3; count++ {
			f.heartbeat(count)
			time.Sleep(duration)
		}
	})
	result.SteadySeconds = time.Since(start).Seconds()

	result.Restart = f.during(f.restart)

	result.Outage = f.during(func() {
		f.server.kill()
		time.Sleep(duration)
		f.server.start()
		eventually(t, "watched nodes after the outage", nodes, f.watched)
	})

	for name, phase := range map[string]phase{
		"the steady state": result.Steady, "the restart": result.Restart,
		"the outage": result.Outage,
	} {
		if phase.Writes != 0 {
			t.Errorf("in %s, there are %d writes, expected none", name, phase.Writes)
		}
	}
	report(t, result)
}

// report writes the figures for the benchmark.
func report(t *testing.T, result figures) {
	t.Helper()
	text, err := json.Marshal(result)
	if path := os.Getenv(fleetFiguresVariable); err == nil && path != "" {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []struct {
		name string
		phase
	}{
		{"start", result.Start}, {"steady", result.Steady}, {"restart", result.Restart},
		{"outage", result.Outage},
	} {
		total := 0
		for _, requests := range phase.Requests {
			total += requests
		}
		fmt.Printf("%-8s %d requests, %d writes, refused %v, at most %d in a second\n",
			phase.name, total, phase.Writes, phase.Refused, phase.Busiest)
	}
}

func setting(t *testing.T, variable string, normal int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return normal
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		t.Fatalf("%s is %q, expected a number", variable, text)
	}
	return number
}
