// Package kubelet lets the kubelet's own device manager drive the program
// directx-device-plugin.
//
// Other tests run the plugin against a kubelet double. The double has the same authors as
// the plugin, so both could contain the same mistake. Here the whole kubelet is the
// original: the device manager, its admission and its checkpoint come from the module
// k8s.io/kubernetes, in two versions:
//
//   - the newest one, go.mod;
//   - 1.19.0, oldest.mod with the build tag "oldest": the first one that calls
//     GetPreferredAllocation. Earlier ones pick devices at random, so nothing can be
//     predicted. It sends the plugin's socket path as HTTP/2 authority, as all kubelets
//     before 1.26 do, and uses the options in the registration request.
//
// The device manager always uses the directory /var/lib/kubelet/device-plugins, on Windows on
// the system drive. The tests need the permission to create it, and a machine without a
// kubelet. On Windows they run with the newest kubelet only, because kubelets before 1.21 have
// no device manager there.
//
//	export DIRECTX_DEVICE_PLUGIN=/path/to/directx-device-plugin
//	go test -count=1 ./...
//	go test -count=1 -modfile=oldest.mod -tags=oldest ./...
package kubelet
