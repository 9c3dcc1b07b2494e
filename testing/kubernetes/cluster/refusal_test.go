package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/keyutil"
)

// When the token expires while the program runs, changes are refused, which is reported, until the
// kubelet has replaced the token. The daemon serves devices meanwhile.
func TestDiscoverySurvivesAnExpiredToken(t *testing.T) {
	t.Parallel()
	n := startNode(t, "expired", "")
	a := n.account(accountName)
	valid := a.token(t)
	p := n.startDiscovery(a, apiServerPort(), n.name)
	n.mustHaveLabels()

	a.write(t, "token", expired(t, valid))
	// The program reads it again every minute.
	time.Sleep(time.Minute)
	n.configure("multitenancy: 2")
	n.mustHave(4, 4)
	p.mustLog(t, "with 401")
	p.mustLog(t, "expired or is unknown")
	eventually(t, "the API server's reason in its log", true, func() bool {
		server, _ := os.ReadFile(filepath.Join(folder, "kube-apiserver.log"))
		return strings.Contains(string(server), "token has expired")
	})
	a.write(t, "token", valid)
	n.mustHaveLabels()
	p.mustLog(t, "the API server accepts changes of the node again")
}

// expired returns the token as the API server would have issued it some hours ago.
func expired(t *testing.T, token []byte) []byte {
	t.Helper()
	parts := strings.Split(string(token), ".")
	claims := map[string]any{}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claims["exp"] = now.Add(-time.Hour).Unix()
	claims["iat"], claims["nbf"] = now.Add(-2*time.Hour).Unix(), now.Add(-2*time.Hour).Unix()
	if text, err = json.Marshal(claims); err != nil {
		t.Fatal(err)
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(text)
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(folder, "pki/ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return []byte(signed + "." + base64.RawURLEncoding.EncodeToString(signature))
}

// Taints are one value without keys, so the startup taint is removed by its position. If it has moved
// meanwhile, the refusal is reported, and the program tries again.
func TestDiscoveryRepeatsChangesAfterConflicts(t *testing.T) {
	t.Parallel()
	n := startNode(t, "conflict", "")
	a, d := n.account(accountName), newDoor(t)
	// The program sees the node object some changes late. A removal that succeeds is undone.
	taints := func(others int) string {
		list := `{"key": "` + startupTaint + `", "effect": "NoSchedule"}`
		for other := range others {
			list = fmt.Sprintf(`{"key": "example.com/%d", "effect": "PreferNoSchedule"}, %s`, other, list)
		}
		return `{"spec": {"taints": [` + list + `]}}`
	}
	n.patch(taints(0))
	d.open.Store(true)
	d.delay.Store(int64(300 * time.Millisecond))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for count := 0; ctx.Err() == nil; count++ {
			text := []byte(taints(count % 4))
			_, _ = api.CoreV1().Nodes().Patch(ctx, n.name, types.MergePatchType, text, metav1.PatchOptions{})
			time.Sleep(50 * time.Millisecond)
		}
	}()
	p := n.startDiscovery(a, d.port(), n.name, "--startup-taint", startupTaint)
	p.mustLog(t, "with 422")
	stop()
	<-stopped
	n.patch(taints(0))
	eventually(t, "taints", "", n.taints)
	n.mustHaveLabels()
}

// The labels and the conditions belong to the program: another field manager gets a conflict, and
// one that forces its values does not win.
func TestDiscoveryKeepsItsFields(t *testing.T) {
	t.Parallel()
	n := startNode(t, "fields", "")
	n.startDiscovery(n.account(accountName), apiServerPort(), n.name)
	n.mustHaveLabels()
	n.mustHaveConditions(usable)
	for _, other := range []struct{ subresource, fields string }{
		{"", `"metadata": {"name": "` + n.name + `", "labels": {"` + labelPrefix + `count": "7"}}`},
		{"status", otherCondition(n.name, healthyCondition)},
		{"status", otherCondition(n.name, readyCondition)},
	} {
		for _, force := range []bool{false, true} {
			text := []byte(`{"apiVersion": "v1", "kind": "Node", ` + other.fields + `}`)
			options := metav1.PatchOptions{FieldManager: "other", Force: &force}
			_, err := api.CoreV1().Nodes().Patch(context.Background(), n.name, types.ApplyPatchType, text, options, subresources(other.subresource)...)
			if force && err != nil || !force && !errors.IsConflict(err) {
				t.Errorf("%s, forced: %v: %v", text, force, err)
			}
		}
	}
	n.mustHaveLabels()
	n.mustHaveConditions(usable)
}

// otherCondition returns the fields of a node with a condition that is wrong.
func otherCondition(node string, kind v1.NodeConditionType) string {
	return fmt.Sprintf(`"metadata": {"name": %q}, "status": {"conditions": [{"type": %q, "status": "False", "reason": "Other"}]}`, node, kind)
}
