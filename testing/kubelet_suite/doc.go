// Package kubelet lets the kubelet's own device manager drive the program
// directx-device-plugin.
//
// Other tests run the plugin against a kubelet double. The double has the same authors as
// the plugin, so both could contain the same mistake. Here the whole kubelet is the
// original: the device manager, its admission and its checkpoint come from the module
// k8s.io/kubernetes, in three versions:
//
//   - the newest one, go.mod;
//   - 1.34, v1_34.mod with the build tag "v1_34". As all kubelets from 1.26 to 1.36, it keeps one
//     connection for each resource: the end of any plugin ends the registration of the one that
//     registered last, whichever that is;
//   - 1.19.0, oldest.mod with the build tag "oldest": the first one that calls
//     GetPreferredAllocation. Earlier ones pick devices at random, so nothing can be
//     predicted. It sends the plugin's socket path as HTTP/2 authority, as all kubelets
//     before 1.26 do, and uses the options in the registration request.
//
// The device manager always uses the directory /var/lib/kubelet/device-plugins, on Windows on
// the system drive. The tests need the permission to create it, and a machine without a
// kubelet. On Windows they do not run with 1.19, because kubelets before 1.21 have no device
// manager there.
//
//	export DIRECTX_DEVICE_PLUGIN=/path/to/directx-device-plugin
//	go test -count=1 ./...
//	go test -count=1 -modfile=v1_34.mod -tags=v1_34 ./...
//	go test -count=1 -modfile=oldest.mod -tags=oldest ./...
package kubelet
