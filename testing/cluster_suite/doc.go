// Package cluster runs the programs directx-device-plugin and directx-feature-discovery in a
// Kubernetes cluster: etcd, the API server, the scheduler, the controller manager and kubelets of
// the newest release.
//
// The folder control_plane contains the cluster as one program. The kubelets are complete, except
// that they manage devices only, as on Windows, and use Kubernetes' own fake runtime: it runs
// nothing, and records what it was asked to run. So these tests show that a node's devices reach
// the API server, the scheduler and the runtime; not that Windows honours what the runtime gets.
//
// Each test has nodes of its own, so tests run in parallel.
//
//	go build -o /path/to/control-plane ./control_plane
//	export CONTROL_PLANE=/path/to/control-plane
//	export DIRECTX_DEVICE_PLUGIN=/path/to/directx-device-plugin
//	export DIRECTX_FEATURE_DISCOVERY=/path/to/directx-feature-discovery
//	go test -count=1 .
package cluster
