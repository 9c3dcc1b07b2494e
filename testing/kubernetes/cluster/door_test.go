package cluster

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// door is an address that leads to the API server while it is open.
type door struct {
	listener net.Listener
	open     atomic.Bool
	// delay is in nanoseconds, for each piece of data in either direction.
	delay atomic.Int64
}

func newDoor(t *testing.T) *door {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener: listener}
	go d.serve()
	t.Cleanup(func() { listener.Close() })
	return d
}

func (d *door) port() string {
	_, port, _ := net.SplitHostPort(d.listener.Addr().String())
	return port
}

func (d *door) serve() {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", apiServerAddress())
		if err != nil || !d.open.Load() {
			client.Close()
			continue
		}
		go d.copy(server, client)
		go d.copy(client, server)
	}
}

// copy passes data on until either end closes or the door does.
func (d *door) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	data := make([]byte, 64<<10)
	for {
		_ = from.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		count, err := from.Read(data)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			err = nil
		}
		time.Sleep(time.Duration(d.delay.Load()) * time.Duration(min(count, 1)))
		if !d.open.Load() || err != nil {
			return
		}
		if _, err := to.Write(data[:count]); err != nil {
			return
		}
	}
}
