// Package manifests checks what users install in a cluster: the manifests in deploy and the
// Helm chart.
//
// The judges are other people's programs. The API server's own strategies, from the module
// k8s.io/kubernetes, decode every object strictly and validate it as they would on creation.
// The real helm lints the chart and renders it with many values. The plugin itself runs with
// the command, the environment and the files of every container, on recorded hosts. What
// Windows and containerd do with a HostProcess container stays outside: a folder takes the
// place of %CONTAINER_SANDBOX_MOUNT_POINT%.
//
// The tests need helm in PATH.
//
//	cargo build
//	go test -count=1 ./manifests
package manifests
