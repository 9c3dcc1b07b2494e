// Package kubelet lets the kubelet's own device manager drive the program
// directx-device-plugin.
//
// The plugin is tested elsewhere against a kubelet double. The double was written
// by the authors of the plugin, so both could share a mistake; here nothing of the
// kubelet is ours. The device manager, its admission and its checkpoint come from
// the module k8s.io/kubernetes, in two versions:
//
//   - the newest one, go.mod;
//   - 1.19.0, oldest.mod with the build tag "oldest": the first one that asks a plugin
//     which devices it prefers, without which it picks them at random and nothing can
//     be predicted. It sends the plugin's socket path as HTTP/2 authority, as all
//     kubelets before 1.26 do, and believes the options in the request to register.
//
// The device manager works on its own directory, /var/lib/kubelet/device-plugins,
// so the tests need the right to create it and a machine without a kubelet.
//
//	export DIRECTX_DEVICE_PLUGIN=/path/to/directx-device-plugin
//	go test -count=1 ./...
//	go test -count=1 -modfile=oldest.mod -tags=oldest ./...
package kubelet
