// Package cluster runs the programs directx-device-plugin and directx-feature-discovery in a
// Kubernetes cluster: etcd, the API server, the scheduler, the controller manager and kubelets of
// the newest release.
//
// The folder control_plane contains the cluster as one program. The kubelets are complete, except
// that they manage devices only, as on Windows, and use Kubernetes' own fake runtime: it runs
// nothing, and records what it was asked to run. So these tests show that a node's devices reach
// the API server, the scheduler and the runtime; not that Windows honors what the runtime gets.
//
// Each test has nodes of its own, so tests run in parallel. TestNodeIsConsistentAfterRandomChanges
// prints the seed of each walk; WALK_SEEDS repeats walks, and WALK_STEPS makes them longer.
//
//	cargo build --package plugin --package feature_discovery --package fleet
//	go test -count=1 ./cluster
//	WALK_SEEDS=1,2,3 WALK_STEPS=40 go test -count=1 -v -run RandomChanges ./cluster
package cluster
