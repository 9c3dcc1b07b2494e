package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	internalapi "k8s.io/cri-api/pkg/apis"
	remote "k8s.io/cri-client/pkg"
	"k8s.io/klog/v2"
	kubeletoptions "k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisor "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	"k8s.io/kubernetes/pkg/kubemark"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"

	"golang.org/x/sys/unix"
)

const (
	// libraries is the folder in which the kubelet's fixed folder lies.
	libraries = "/var/lib"
	// fixedFolder is where the device manager listens for plugins.
	fixedFolder = libraries + "/kubelet/device-plugins"
	// statusPeriod is how often the kubelet looks for changes of its node. Its default, 10 s,
	// would make tests wait.
	statusPeriod = time.Second
	// leaseSeconds is how long a node counts as running after a sign of life, which the kubelet
	// gives four times as often.
	leaseSeconds = 8
)

// runKubelet runs the kubelet of a node. Its folder device-plugins takes the place of the
// kubelet's fixed one, so that one machine has several nodes. A standalone kubelet has no API
// server, and serves as its configuration says.
func runKubelet(ctx context.Context, o options) error {
	folder := nodeFolder(o)
	if err := provideFixedFolder(filepath.Join(folder, "device-plugins")); err != nil {
		return err
	}
	runtime, images, err := connectRuntime(ctx, "unix://"+runtimeSocket(o))
	if err != nil {
		return err
	}
	manager, err := newContainerManager(klog.FromContext(ctx), o.affinity)
	if err != nil {
		return err
	}
	machine := &cadvisor.Fake{NodeName: o.node}
	if o.standalone != "" {
		flags := nodeFlags(o, folder)
		config, err := loadConfiguration(ctx, o.standalone)
		if err != nil {
			return err
		}
		kubelet := kubemark.NewHollowKubelet(flags, config, nil, nil, machine, images, runtime, manager)
		// A client that is nil is a client for the kubelet.
		kubelet.KubeletDeps.KubeClient, kubelet.KubeletDeps.HeartbeatClient = nil, nil
		go kubelet.Run(ctx)
		<-ctx.Done()
		return nil
	}
	client, err := nodeClient(o)
	if err != nil {
		return err
	}
	flags, config, err := configuration(o, folder)
	if err != nil {
		return err
	}
	heartbeats, err := kubernetes.NewForConfig(rest.CopyConfig(client))
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(client)
	if err != nil {
		return err
	}
	go kubemark.NewHollowKubelet(flags, config, api, heartbeats, machine, images, runtime, manager).Run(ctx)
	// A kubelet that receives a shutdown signal leaves its pods as they are.
	<-ctx.Done()
	return nil
}

// connectRuntime waits until the container runtime of the node answers.
func connectRuntime(ctx context.Context, endpoint string) (internalapi.RuntimeService, internalapi.ImageManagerService, error) {
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		runtime, err := remote.NewRemoteRuntimeServiceBuilder().
			WithEndpoint(endpoint).WithConnectionTimeout(startLimit).Build(ctx)
		if err == nil {
			images, err := remote.NewRemoteImageServiceBuilder().
				WithEndpoint(endpoint).WithConnectionTimeout(startLimit).Build(ctx)
			return runtime, images, err
		}
		if ctx.Err() != nil || time.Since(start) > startLimit {
			return nil, nil, err
		}
	}
}

// provideFixedFolder makes folder appear where the device manager looks. The process has its own
// mount namespace, so nothing outside changes.
func provideFixedFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", libraries, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("tmpfs at %s: %w", libraries, err)
	}
	if err := os.MkdirAll(fixedFolder, 0o755); err != nil {
		return err
	}
	return bind(folder, fixedFolder)
}

// nodeClient returns the API server's client of a node, with a new certificate.
func nodeClient(o options) (*rest.Config, error) {
	pki := filepath.Join(o.folder, "pki")
	administrator, err := clientcmd.BuildConfigFromFlags("", filepath.Join(pki, "administrator.kubeconfig"))
	if err != nil {
		return nil, err
	}
	authority, err := openAuthority(pki)
	if err != nil {
		return nil, err
	}
	user := "system:node:" + o.node
	if err := authority.client(user, user, []string{"system:nodes"}, administrator.Host); err != nil {
		return nil, err
	}
	return clientcmd.BuildConfigFromFlags("", authority.file(user+".kubeconfig"))
}

func nodeFlags(o options, folder string) *kubeletoptions.KubeletFlags {
	flags := kubeletoptions.NewKubeletFlags()
	flags.RootDirectory = filepath.Join(folder, "root")
	flags.HostnameOverride = o.node
	flags.MinimumGCAge = metav1.Duration{Duration: time.Minute}
	flags.MaxContainerCount = 100
	flags.MaxPerPodContainerCount = 2
	return flags
}

// loadConfiguration loads a file as the kubelet does.
func loadConfiguration(ctx context.Context, path string) (*kubeletconfig.KubeletConfiguration, error) {
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, path)
	if err != nil {
		return nil, err
	}
	return loader.Load(ctx)
}

func configuration(o options, folder string) (*kubeletoptions.KubeletFlags, *kubeletconfig.KubeletConfiguration, error) {
	flags := nodeFlags(o, folder)
	config, err := kubeletoptions.NewKubeletConfiguration()
	if err != nil {
		return nil, nil, err
	}
	config.EnableServer = false
	config.ReadOnlyPort = 0
	config.RegisterNode = true
	config.NodeStatusUpdateFrequency.Duration = statusPeriod
	config.NodeLeaseDurationSeconds = leaseSeconds
	config.SyncFrequency.Duration = 10 * time.Second
	config.CgroupsPerQOS = false
	config.EnforceNodeAllocatable = nil
	config.EnableControllerAttachDetach = false
	config.LocalStorageCapacityIsolation = true
	config.ResolverConfig = ""
	config.PodLogsDir = filepath.Join(folder, "logs")
	return flags, config, nil
}
