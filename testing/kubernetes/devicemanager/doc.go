// Package kubelet lets the kubelet's own device manager drive the program
// directx-device-plugin.
//
// Other tests run the plugin against a kubelet double. The double has the same authors as
// the plugin, so both could contain the same mistake. Here the whole kubelet is the
// original: the device manager, its admission and its checkpoint come from the module
// k8s.io/kubernetes, in three versions:
//
//   - the newest one, go.mod;
//   - 1.34 and 1.26, v1_34.mod and v1_26.mod with the build tag "older". As all kubelets from
//     1.26 to 1.36, they keep one connection for each resource: the end of any plugin ends the
//     registration of the one that registered last, whichever that is. 1.34 shows this in each
//     run, and 1.26 only every night and for releases.
//
// The device manager always uses the directory /var/lib/kubelet/device-plugins, on Windows on
// the system drive. The tests need the permission to create it, and a machine without a
// kubelet.
//
//	cargo build
//	cargo build --workspace --examples
//	go test -count=1 ./devicemanager
//	go test -count=1 -modfile=v1_34.mod -tags=older ./devicemanager
//	go test -count=1 -modfile=v1_26.mod -tags=older ./devicemanager
//
// To take another version of an older kubelet, change the versions in its module file and run
// `go test` with `-mod=mod`: `go mod tidy` would add what other packages need.
package kubelet
