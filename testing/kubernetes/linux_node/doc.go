// Package linux_node runs the device plugin on a Linux node with a real container runtime: the
// kubelet without API server, containerd and runc.
//
// The plugin runs the demonstration of the chart, with made-up devices. Containers that request one run,
// with the variables that `simulate` predicts.
//
// The node has a root of its own, in which it may change everything: an overlay over the root of
// this machine that vanishes with the last process. It also has its own processes, network and
// control groups. The tests need root, and a kernel that allows all of that. Where it does not, they
// are skipped with the reason.
//
//	cargo xtask test linux-node
package linux_node
