package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"directx-device-plugin/testing/kubernetes/loopback"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// startLimit bounds the start of a component. It takes seconds on an idle machine.
const startLimit = 2 * time.Minute

// etcdFile has the address of etcd.
const etcdFile = "etcd.address"

const auditPolicyFile = "audit-policy.yaml"

// auditPolicy logs each request once, and a watch when it begins and when it ends.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// up runs a cluster without nodes until it receives a shutdown signal or a component ends.
func up(ctx context.Context, o options) error {
	signalled := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pki := filepath.Join(o.folder, "pki")
	if err := os.MkdirAll(pki, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.folder, auditPolicyFile), []byte(auditPolicy), 0o644); err != nil {
		return err
	}
	etcd, err := startEtcd(ctx, filepath.Join(o.folder, "etcd"))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.folder, etcdFile), []byte(etcd), 0o644); err != nil {
		return err
	}
	port, err := loopback.FreePort()
	if err != nil {
		return err
	}
	server := fmt.Sprintf("https://127.0.0.1:%d", port)
	if err := issueAll(pki, server); err != nil {
		return err
	}
	c := components{ctx, cancel, o.folder}
	if err := c.start("kube-apiserver", apiServerArguments(o.folder, etcd, "audit.log", port)...); err != nil {
		return err
	}
	if err := awaitReady(ctx, filepath.Join(pki, "administrator.kubeconfig")); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if err := c.start("kube-controller-manager", controllerArguments(pki)...); err != nil {
		return err
	}
	if err := c.start("kube-scheduler", schedulerArguments(pki)...); err != nil {
		return err
	}
	// The file that users read appears when the cluster can be used.
	if err := os.Symlink("pki/administrator.kubeconfig", filepath.Join(o.folder, "kubeconfig")); err != nil {
		return err
	}
	<-ctx.Done()
	if signalled.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// issueAll writes the certificates and kubeconfig files of all components.
func issueAll(pki, server string) error {
	authority, err := newAuthority(pki)
	if err != nil {
		return err
	}
	if err := authority.server("server"); err != nil {
		return err
	}
	for _, client := range []struct{ name, user, group string }{
		{"administrator", "administrator", "system:masters"},
		{"kube-scheduler", "system:kube-scheduler", ""},
		{"kube-controller-manager", "system:kube-controller-manager", ""},
	} {
		var groups []string
		if client.group != "" {
			groups = []string{client.group}
		}
		if err := authority.client(client.name, client.user, groups, server); err != nil {
			return err
		}
	}
	return nil
}

// runAPIServer runs one more API server of the cluster in folder.
func runAPIServer(_ context.Context, o options) error {
	etcd, err := os.ReadFile(filepath.Join(o.folder, etcdFile))
	if err != nil {
		return err
	}
	audit := fmt.Sprintf("audit-%d.log", o.port)
	os.Args = append([]string{"kube-apiserver"}, apiServerArguments(o.folder, string(etcd), audit, o.port)...)
	if code := cli.Run(apiserver.NewAPIServerCommand()); code != 0 {
		return fmt.Errorf("kube-apiserver: exit status %d", code)
	}
	return nil
}

func apiServerArguments(folder, etcd, audit string, port int) []string {
	pki := filepath.Join(folder, "pki")
	in := func(name string) string { return filepath.Join(pki, name) }
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=127.0.0.1",
		// Endpoints must not have loopback addresses.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + etcd,
		"--cert-dir=" + pki,
		"--client-ca-file=" + in("ca.crt"),
		"--tls-cert-file=" + in("server.crt"),
		"--tls-private-key-file=" + in("server.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + in("ca.key"),
		"--service-account-signing-key-file=" + in("ca.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		// One line for each request, with its user: tests count them.
		"--audit-policy-file=" + filepath.Join(folder, auditPolicyFile),
		"--audit-log-path=" + filepath.Join(folder, audit),
		"--audit-log-mode=blocking",
	}
}

func controllerArguments(pki string) []string {
	in := func(name string) string { return filepath.Join(pki, name) }
	return []string{
		"--kubeconfig=" + in("kube-controller-manager.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
		// The roles of the controllers belong to their service accounts.
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + in("ca.key"),
		"--root-ca-file=" + in("ca.crt"),
		// A node that no longer reports is found soon, but not one on a busy machine: it reports
		// every two seconds.
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=20s",
	}
}

func schedulerArguments(pki string) []string {
	return []string{
		"--kubeconfig=" + filepath.Join(pki, "kube-scheduler.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
	}
}

// components runs components of Kubernetes as processes. If one ends, ctx ends.
type components struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	folder string
}

// start starts a component, with its log in NAME.log.
func (c components) start(name string, arguments ...string) error {
	log, err := os.Create(filepath.Join(c.folder, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.CommandContext(c.ctx, "/proc/self/exe", append([]string{name}, arguments...)...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The signal is sent when the thread that has started the process ends.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			c.cancel(fmt.Errorf("%s has ended: %w; see %s", name, command.Wait(), log.Name()))
		}
	}()
	return <-started
}

// awaitReady waits until the API server is ready.
func awaitReady(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Since(start) > startLimit:
			return fmt.Errorf("not ready after %v: %w", startLimit, err)
		}
	}
}

// startEtcd runs etcd in this process and returns its address. It writes nothing to disk durably:
// a crash of the machine ends the test anyway.
func startEtcd(ctx context.Context, folder string) (string, error) {
	config := embed.NewConfig()
	config.Dir = folder
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	clients, err := freeAddress()
	if err != nil {
		return "", err
	}
	peers, err := freeAddress()
	if err != nil {
		return "", err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, server.Close)
	select {
	case <-server.Server.ReadyNotify():
		return clients.String(), nil
	case <-time.After(startLimit):
		return "", fmt.Errorf("not ready after %v", startLimit)
	}
}

func freeAddress() (url.URL, error) {
	port, err := loopback.FreePort()
	return url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}, err
}
