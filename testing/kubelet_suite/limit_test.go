package kubelet

import (
	"fmt"
	"os/exec"
	"sort"
	"strconv"
	"testing"
)

const (
	// largestMessage is what grpc-go accepts unless told otherwise, in bytes; the
	// kubelet does not tell it otherwise.
	largestMessage = 4 << 20
	// replicasBound is more replicas than a list has room for.
	replicasBound = 1 << 20
	// refusedConfiguration is the program's exit code for a configuration that
	// cannot be served.
	refusedConfiguration = 2
)

// The longest list that a kubelet can take is offered and reaches it; a configuration
// with one replica more is refused.
func TestLongestListReachesTheKubelet(t *testing.T) {
	journal.start(t)
	offering := func(replicas int) arguments {
		return arguments{
			inventory:    fixturePath(twoCards),
			config:       writeConfig(t, fmt.Sprintf("multitenancy: %d", replicas)),
			driverModels: []string{"wddm"},
		}
	}
	ids := simulate(t, offering(1), nil).resource(t, display).healthyIDs()
	most := sort.Search(replicasBound, func(replicas int) bool { return listSize(ids, replicas+1) > largestMessage })

	command := exec.Command(program, append([]string{"simulate"}, offering(most+1).list()...)...)
	command.Stderr = journal.source("simulate")
	if err := command.Run(); command.ProcessState == nil || command.ProcessState.ExitCode() != refusedConfiguration {
		t.Errorf("%d replicas of a card need %d bytes; the program says: %v", most+1, listSize(ids, most+1), err)
	}

	predicted := simulate(t, offering(most), []request{{"pod", display, 2}})
	n := startNode(t)
	p := startPlugin(t, offering(most))
	mustOffer(t, n, p, predicted.Resources)
	all := int64(most * len(ids))
	eventually(t, p, display, devices(all, all), displays(n))
	compare(t, n, request{"pod", display, 2}, predicted.Pods[0])
}

// listSize is the size in bytes of a ListAndWatchResponse with healthy replicas of
// the cards that have these ids as their first replica's.
func listSize(ids []string, replicas int) int {
	size := 0
	for _, id := range ids {
		for replica := range replicas {
			device := field(len(card(id)+`\`)+len(strconv.Itoa(replica))) + field(len("Healthy"))
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
