// Package loopback finds ports for servers that must know theirs before they listen.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The system takes ports for connections, and for listeners that ask for any port, from a range
// that begins with 32768 on Linux.
const firstPort, endPort = 10000, 32768

// FreePort returns a port on 127.0.0.1 that nobody listens on. The system gives it to nobody else.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(endPort-firstPort)
		var listener net.Listener
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, err
}
