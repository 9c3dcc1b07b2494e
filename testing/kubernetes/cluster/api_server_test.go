package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"directx-device-plugin/testing/kubernetes/loopback"

	"k8s.io/client-go/kubernetes"
)

// apiServer is one more API server of the cluster, which its test may end.
type apiServer struct {
	t    *testing.T
	port int
	*process
}

// startAPIServer starts an API server, which ends with the test.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	port, err := loopback.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{t: t, port: port}
	s.start()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Log(tail(s.log))
		}
	})
	return s
}

// start starts the API server, and waits until it is ready.
func (s *apiServer) start() {
	s.t.Helper()
	log := filepath.Join(folder, fmt.Sprintf("kube-apiserver-%d.log", s.port))
	var err error
	s.process, err = startProcess(log, controlPlane, "api-server", "--folder", folder, "--port", strconv.Itoa(s.port))
	if err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "an API server is ready", "ok", func() string {
		if err := s.alive(); err != nil {
			s.t.Fatal(err)
		}
		return s.readiness()
	})
}

// readiness returns "ok" if the API server is ready, and otherwise why it is not.
func (s *apiServer) readiness() string {
	config := *administrator
	config.Host = "https://127.0.0.1:" + strconv.Itoa(s.port)
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(&config)
	if err == nil {
		_, err = client.RESTClient().Get().AbsPath("/readyz").DoRaw(context.Background())
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// auditLog is the file with the requests that the API server has received.
func (s *apiServer) auditLog() string {
	return filepath.Join(folder, fmt.Sprintf("audit-%d.log", s.port))
}
