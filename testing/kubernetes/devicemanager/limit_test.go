package kubelet

import (
	"fmt"
	"os/exec"
	"sort"
	"strconv"
	"testing"
)

const (
	// largestMessage is the largest message that grpc-go accepts by default, in bytes. The
	// kubelet keeps the default.
	largestMessage = 4 << 20
	// replicasBound is the most replicas that a configuration may have.
	replicasBound = 1024
	// manyGPUs have longer lists with replicasBound replicas than fit into a message.
	manyGPUs = 128
	// exitInvalidConfiguration is the program's exit code for an invalid configuration.
	exitInvalidConfiguration = 2
)

// The longest list that a kubelet accepts is advertised and reaches it. A configuration with
// one more replica is rejected.
func TestLongestListReachesTheKubelet(t *testing.T) {
	nodeLog.start(t)
	host := copyInventory(t, twoGPUs)
	for index := 2; index < manyGPUs; index++ {
		gpu := decode[adapter](t, encode(t, host.adapter(0)))
		gpu["luid"] = index
		pnp := gpu["pnp"].(map[string]any)
		pnp["id"] = fmt.Sprintf(`PCI\VEN_10DE&DEV_1EB8&SUBSYS_12A210DE&REV_A1\%d`, index)
		pnp["locationPaths"] = []string{fmt.Sprintf("PCIROOT(0)#PCI(%04X)", index)}
		host.addAdapter(gpu)
	}
	withReplicas := func(replicas int) arguments {
		return arguments{
			inventory:    host.path,
			config:       writeConfig(t, fmt.Sprintf("multitenancy: %d", replicas)),
			driverModels: []string{"wddm"},
		}
	}
	ids := simulate(t, withReplicas(1), nil).resource(t, display).healthyIDs()
	most := sort.Search(replicasBound, func(replicas int) bool { return listSize(ids, replicas+1) > largestMessage })

	command := exec.Command(program, append([]string{"simulate"}, withReplicas(most+1).list()...)...)
	command.Stderr = nodeLog.source("simulate")
	if err := command.Run(); command.ProcessState == nil || command.ProcessState.ExitCode() != exitInvalidConfiguration {
		t.Errorf("%d replicas of a GPU need a list of %d bytes, but the program exits with: %v", most+1, listSize(ids, most+1), err)
	}

	predicted := simulate(t, withReplicas(most), []request{{"pod", display, 2}})
	n := startNode(t)
	p := startPlugin(t, withReplicas(most))
	mustAdvertise(t, n, p, predicted.Resources)
	all := int64(most * len(ids))
	eventually(t, p, display, devices(all, all), displayCount(n))
	mustMatchPrediction(t, n, request{"pod", display, 2}, predicted.Pods[0])
}

// listSize is the size in bytes of a ListAndWatchResponse with healthy replicas of the GPUs
// whose first replicas have these ids.
func listSize(ids []string, replicas int) int {
	size := 0
	for _, id := range ids {
		for replica := range replicas {
			device := field(len(physicalDevice(id)+`\`)+len(strconv.Itoa(replica))) + field(len("Healthy"))
			size += field(device)
		}
	}
	return size
}

// field is the size in bytes of a protobuf field with a number below 16 and a value
// of variable length.
func field(length int) int {
	size := 1 + length
	for rest := length; ; rest >>= 7 {
		size++
		if rest < 0x80 {
			return size
		}
	}
}
