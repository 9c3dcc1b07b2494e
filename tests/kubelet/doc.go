// Package kubelet lets the kubelet's own device manager drive the program
// directx-device-plugin.
//
// The plugin is tested elsewhere against a kubelet double. The double was written
// by the authors of the plugin, so both could share a mistake; here nothing of the
// kubelet is ours. The device manager, its admission and its checkpoint come from
// the module k8s.io/kubernetes, in two versions:
//
//   - the newest one, go.mod;
//   - the oldest one that the plugin can talk to, oldest.mod with the build tag
//     "oldest". Kubelets before 1.26 send the plugin's socket path as HTTP/2
//     authority, which is no authority, so HTTP/2 servers may refuse the request.
//
// The device manager works on its own directory, /var/lib/kubelet/device-plugins,
// so the tests need the right to create it and a machine without a kubelet.
//
//	export DIRECTX_DEVICE_PLUGIN=/path/to/directx-device-plugin
//	go test -count=1 ./...
//	go test -count=1 -modfile=oldest.mod -tags=oldest ./...
package kubelet
