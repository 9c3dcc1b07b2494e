package cluster

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var metricsAddress = regexp.MustCompile(`serving /metrics.* address=(\S+)`)

// scrape returns the metrics of the node's plugin.
func (n *node) scrape() string {
	n.t.Helper()
	return n.plugin.page(n.t, "/metrics")
}

// page returns what the program with this log serves at the path.
func (p *process) page(t *testing.T, path string) string {
	t.Helper()
	text, err := p.get(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// get returns what the program with this log serves at the path, or why it does not.
func (p *process) get(path string) (string, error) {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return "", err
	}
	found := metricsAddress.FindAllSubmatch(log, -1)
	if found == nil {
		return "", fmt.Errorf("the log has no address of metrics:\n%s", log)
	}
	response, err := http.Get(fmt.Sprintf("http://%s%s", found[len(found)-1][1], path))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer to %s is %s: %s", path, response.Status, text)
	}
	return string(text), err
}

// podUID returns the UID of a pod that holds a device, according to the metrics of the plugin.
func (n *node) podUID(p pod) string {
	n.t.Helper()
	label := regexp.MustCompile(`^directx_pod_info\{namespace="[^"]*",pod="` + p.name + `",pod_uid="([^"]*)"\} 1\.0\n`)
	for line := range strings.Lines(n.scrape()) {
		if found := label.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}

var podLabel = regexp.MustCompile(`[{,]pod="([^"]*)"`)

// holders returns the pods that hold devices, sorted, according to the metrics of the plugin.
func (n *node) holders() string {
	n.t.Helper()
	var pods []string
	for line := range strings.Lines(n.scrape()) {
		if found := podLabel.FindStringSubmatch(line); strings.HasPrefix(line, "directx_device_allocated_replicas{") && found != nil {
			pods = append(pods, found[1])
		}
	}
	slices.Sort(pods)
	return strings.Join(pods, " ")
}

// The metrics have the names and the UIDs of the pods that hold devices.
func TestMetricsHavePodNames(t *testing.T) {
	t.Parallel()
	n := startNode(t, "metrics", "")
	first, second := n.create("first", 1).mustRun(), n.create("second", 1).mustRun()
	eventually(t, "holders", first.name+" "+second.name, n.holders)
	for _, holder := range []pod{first, second} {
		eventually(t, "the UID of "+holder.name, string(holder.object().UID), func() string { return n.podUID(holder) })
	}
	first.delete()
	eventually(t, "holders", second.name, n.holders)
}
