package metrics

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"directx-device-plugin/testing/kubernetes/programs"
)

const (
	// waitLimit bounds every wait for something that takes milliseconds on an idle machine.
	waitLimit = 2 * time.Minute
	// inventory is a host with two GPUs.
	inventory = "../../../fixtures/inventories/aws-t4-two.yaml"
)

var listening = regexp.MustCompile(`serving /metrics.* address=(\S+)`)

// startDaemon starts `serve` for a recorded host and returns the address of its metrics. It is killed
// when the test ends.
func startDaemon(t *testing.T, options ...string) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "k")
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := programs.Find("directx-device-plugin")
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"serve", "--driver-model", "wddm",
		"--inventory", inventory, "--device-plugin-dir", directory, "--listen", "127.0.0.1:0"}
	daemon := exec.Command(program, append(arguments, options...)...)
	log, err := daemon.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatalf("cannot run %s: %v", program, err)
	}
	addresses := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if match := listening.FindStringSubmatch(lines.Text()); match != nil {
				addresses <- match[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		<-ended
		_ = daemon.Wait()
	})
	select {
	case address := <-addresses:
		return address
	case <-ended:
		t.Fatal("the daemon ended")
	case <-time.After(waitLimit):
		t.Fatal("the daemon does not serve metrics")
	}
	return ""
}

// get returns the metrics that Prometheus gets.
func get(t *testing.T, address string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: waitLimit}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != contentType {
		t.Fatalf("the scrape failed: %s, %q, %v", response.Status, response.Header.Get("Content-Type"), err)
	}
	return body
}
