package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fleetZone keeps the nodes apart from the others: the controller manager counts nodes that are
// not ready for each zone.
const fleetZone = "fleet"

// fleetWorkers is how many requests the test sends at the same time.
const fleetWorkers = 16

// fleet is many nodes without kubelets, whose directx-feature-discovery run in one process, and an
// API server of their own, which the test may end.
type fleet struct {
	t        *testing.T
	names    []string
	accounts string
	server   *apiServer
	programs *process
	// since is when the phase has begun.
	since time.Time
}

// newFleet creates the node objects and the accounts, and starts the API server.
func newFleet(t *testing.T, nodes int) *fleet {
	t.Helper()
	f := &fleet{t: t, accounts: filepath.Join(folder, "fleet"), server: startAPIServer(t)}
	for number := range nodes {
		f.names = append(f.names, fmt.Sprintf("fleet-%04d", number))
	}
	t.Cleanup(func() {
		f.each(func(name string) error {
			return api.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	})
	authority, err := os.ReadFile(administrator.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	f.each(func(name string) error { return f.createNode(name, authority) })
	return f
}

// each calls do for every node, for several at the same time.
func (f *fleet) each(do func(name string) error) {
	f.t.Helper()
	names, failures := make(chan string), make(chan error, len(f.names))
	var workers sync.WaitGroup
	for range fleetWorkers {
		workers.Go(func() {
			for name := range names {
				if err := do(name); err != nil {
					failures <- fmt.Errorf("%s: %w", name, err)
				}
			}
		})
	}
	for _, name := range f.names {
		names <- name
	}
	close(names)
	workers.Wait()
	select {
	case err := <-failures:
		f.t.Errorf("%v, and %d more failures", err, len(failures))
	default:
	}
}

// createNode creates a node object, and the account that a pod of the node has. Its token is bound
// to the node: there is no kubelet that would bind it to a pod.
func (f *fleet) createNode(name string, authority []byte) error {
	ctx := context.Background()
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: fleetZone}}}
	node, err := api.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}
	token, err := api.CoreV1().ServiceAccounts(systemNamespace).CreateToken(ctx, accountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	a := account{filepath.Join(f.accounts, name)}
	a.write(f.t, "token", []byte(token.Status.Token))
	a.write(f.t, "ca.crt", authority)
	a.write(f.t, "namespace", []byte(systemNamespace))
	return nil
}

// start starts the programs of all nodes one after another.
func (f *fleet) start() {
	f.t.Helper()
	var err error
	f.programs, err = startProcess(filepath.Join(folder, "fleet.log"), fleetProgram, "--accounts", f.accounts,
		"--port", strconv.Itoa(f.server.port), "--inventory", twoGPUs, "--pause", strconv.Itoa(int(startPause/time.Millisecond)))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		f.programs.kill()
		if f.t.Failed() {
			f.t.Log(tail(f.programs.log))
		}
	})
	f.programs.mustLog(f.t, "started")
}

// restart ends and starts the programs one after another.
func (f *fleet) restart() {
	f.t.Helper()
	if err := f.programs.command.Process.Signal(syscall.SIGHUP); err != nil {
		f.t.Fatal(err)
	}
	f.programs.mustLog(f.t, "restarted")
	eventually(f.t, "watched nodes after the restart", len(f.names), f.watched)
}

// heartbeat changes every node object, as kubelets do.
func (f *fleet) heartbeat(count int) {
	f.t.Helper()
	text := fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/heartbeat": "%d"}}}`, count)
	f.each(func(name string) error {
		_, err := api.CoreV1().Nodes().Patch(context.Background(), name, types.MergePatchType, text, metav1.PatchOptions{})
		return err
	})
}

// pause waits before a look at all nodes, which must not be what the machine is busy with.
func (f *fleet) pause() {
	time.Sleep(time.Duration(len(f.names)) * time.Millisecond)
}

// complete returns the number of nodes with labels and both conditions. Without a kubelet, nothing is
// allocatable.
func (f *fleet) complete() int {
	f.pause()
	selector := v1.LabelTopologyZone + "=" + fleetZone + "," + labelPrefix + "count=2"
	nodes, err := api.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return 0
	}
	count := 0
	for _, node := range nodes.Items {
		if conditionTexts(&node) == "True AllHealthy, False NotAllocatable" {
			count++
		}
	}
	return count
}

// watched returns the number of nodes with a watch that was accepted in this phase.
func (f *fleet) watched() int {
	f.pause()
	count := 0
	for _, seconds := range f.phase().Seconds {
		if seconds >= 0 {
			count++
		}
	}
	return count
}

// during returns what the API server receives while do runs.
func (f *fleet) during(do func()) phase {
	f.t.Helper()
	f.since = time.Now()
	do()
	return f.phase()
}

// phase returns what the API server has received since the phase began. A node that has no watch
// yet has a negative number of seconds.
func (f *fleet) phase() phase {
	f.t.Helper()
	number := map[string]int{}
	for index, name := range f.names {
		number[name] = index
	}
	p := phase{Requests: make([]int, len(f.names)), Refused: map[int]int{}, Seconds: make([]float64, len(f.names))}
	for index := range p.Seconds {
		p.Seconds[index] = -1
	}
	perSecond := map[int]int{}
	for _, r := range auditedRequests(f.t, f.server.auditLog(), accountName) {
		node, known := number[r.Object.Name]
		seconds := r.Received.Sub(f.since).Seconds()
		if !known || seconds < 0 {
			continue
		}
		p.Requests[node]++
		perSecond[int(seconds)]++
		p.Busiest = max(p.Busiest, perSecond[int(seconds)])
		isAccepted := r.Response.Code < 300
		if !isAccepted {
			p.Refused[r.Response.Code]++
		}
		if r.Verb != "watch" {
			// Every five minutes, a program writes its conditions again.
			if r.Object.Subresource != "status" {
				p.Writes++
			}
		} else if isAccepted && p.Seconds[node] < 0 {
			p.Seconds[node] = seconds
		}
	}
	return p
}
