package cluster

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// request is a line of an API server's audit log.
type request struct {
	ID   string `json:"auditID"`
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// name is what the request asks for, such as `patch nodes/status`.
func (r request) name() string {
	return strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")
}

// auditedRequests returns the requests that a service account of the manifest's namespace has sent
// to the API server with this audit log.
func auditedRequests(t *testing.T, log, serviceAccount string) []request {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found, known := []request{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.User.Username != "system:serviceaccount:"+systemNamespace+":"+serviceAccount {
			continue
		}
		// A watch has a line when it begins and one when it ends, also one that was refused.
		if !known[r.ID] {
			found, known[r.ID] = append(found, r), true
		}
	}
	return found
}

// requests returns the requests for this node object that the account has sent.
func (n *node) requests(serviceAccount string) []string {
	n.t.Helper()
	names := []string{}
	for _, r := range auditedRequests(n.t, filepath.Join(folder, "audit.log"), serviceAccount) {
		if r.Object.Name == n.name {
			names = append(names, r.name())
		}
	}
	return names
}
