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

// journalLimit is how much of the journal a failed test shows, in bytes.
const journalLimit = 64 << 10

// journal holds what the kubelet and the plugin logged during the test that runs,
// in the order it was written. A test that fails shows its end.
var journal recorder

type recorder struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// start forgets what earlier tests recorded and shows the journal if t fails.
func (r *recorder) start(t *testing.T) {
	r.mutex.Lock()
	r.text.Reset()
	r.mutex.Unlock()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the kubelet and the plugin logged:\n%s", r.end())
		}
	})
}

// count is how often the kubelet or the plugin logged text.
func (r *recorder) count(text string) int {
	klog.Flush()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return strings.Count(r.text.String(), text)
}

func (r *recorder) end() string {
	klog.Flush()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	text := r.text.String()
	if skipped := len(text) - journalLimit; skipped > 0 {
		return fmt.Sprintf("(%d bytes before)\n%s", skipped, text[skipped:])
	}
	return text
}

// source is a writer whose lines enter the journal with a name and the time.
func (r *recorder) source(name string) io.Writer { return &source{journal: r, name: name} }

type source struct {
	journal *recorder
	name    string
	// partial is a line whose end has not been written yet.
	partial string
}

func (s *source) Write(text []byte) (int, error) {
	s.journal.mutex.Lock()
	defer s.journal.mutex.Unlock()
	lines := strings.Split(s.partial+string(text), "\n")
	s.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		fmt.Fprintf(&s.journal.text, "%s %s: %s\n", time.Now().Format("05.000"), s.name, line)
	}
	return len(text), nil
}

// recordKubelet sends the kubelet's log to the journal.
func recordKubelet() {
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
	// What is graver than INFO is written there as well.
	klog.SetOutputBySeverity("INFO", journal.source("kubelet"))
	for _, severity := range []string{"WARNING", "ERROR", "FATAL"} {
		klog.SetOutputBySeverity(severity, io.Discard)
	}
}
