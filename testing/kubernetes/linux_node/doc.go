// Package linux_node runs the device plugin on a Linux node with a real container runtime: the
// kubelet without API server, containerd and runc.
//
// An ordinary device of this machine takes the place of /dev/dxg. That suffices to show what the
// kubelet, containerd and runc make of the plugin's answers: which containers can open the device,
// what they find in /usr/lib/wsl, and their variables. It shows nothing about Windows or its GPUs.
//
// The node has a root of its own, in which it may change everything: an overlay over the root of
// this machine that vanishes with the last process. It also has its own processes, network and
// control groups. The tests need root, and a kernel that allows all of that. Where it does not, they
// are skipped with the reason.
//
//	cargo xtask test linux-node
package linux_node
