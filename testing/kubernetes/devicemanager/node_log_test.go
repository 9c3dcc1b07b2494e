package kubelet

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

// nodeLogLimit is how much of the log a failed test shows, in bytes.
const nodeLogLimit = 64 << 10

// nodeLog contains what the kubelet and the plugin have logged during the current test, in
// the order it was written. A failed test shows its end.
var nodeLog logBuffer

type logBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// start removes what earlier tests logged, and shows the log if t fails.
func (r *logBuffer) start(t *testing.T) {
	r.mutex.Lock()
	r.text.Reset()
	r.mutex.Unlock()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the kubelet and the plugin logged:\n%s", r.end())
		}
	})
}

// count returns how often the kubelet or the plugin logged text.
func (r *logBuffer) count(text string) int {
	klog.Flush()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return strings.Count(r.text.String(), text)
}

// value returns a field of the last line that contains text, or nothing.
func (r *logBuffer) value(field, text string) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := ""
	for line := range strings.Lines(r.text.String()) {
		if !strings.Contains(line, text) {
			continue
		}
		for _, word := range strings.Fields(line) {
			if value, ok := strings.CutPrefix(word, field+"="); ok {
				found = value
			}
		}
	}
	return found
}

func (r *logBuffer) end() string {
	klog.Flush()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	text := r.text.String()
	if skipped := len(text) - nodeLogLimit; skipped > 0 {
		return fmt.Sprintf("(%d earlier bytes left out)\n%s", skipped, text[skipped:])
	}
	return text
}

// source returns a writer that adds lines to the log, with a name and the time.
func (r *logBuffer) source(name string) io.Writer { return &source{log: r, name: name} }

type source struct {
	log  *logBuffer
	name string
	// partial is the last line while its end has not been written.
	partial string
}

func (s *source) Write(text []byte) (int, error) {
	s.log.mutex.Lock()
	defer s.log.mutex.Unlock()
	lines := strings.Split(s.partial+string(text), "\n")
	s.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		fmt.Fprintf(&s.log.text, "%s %s: %s\n", time.Now().Format("05.000"), s.name, line)
	}
	return len(text), nil
}

// captureKubeletLog sends the kubelet's log to nodeLog.
func captureKubeletLog() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{
		"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL",
		"skip_headers": "true", "v": "4",
	} {
		if err := flags.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	// klog writes messages of higher severity to the INFO output as well.
	klog.SetOutputBySeverity("INFO", nodeLog.source("kubelet"))
	for _, severity := range []string{"WARNING", "ERROR", "FATAL"} {
		klog.SetOutputBySeverity(severity, io.Discard)
	}
}
