// Package metrics reads what the plugin exposes with the parsers of Prometheus itself: a scrape of
// the real program for a recorded host, and the recorded text of every metric with made-up values.
//
//	cargo build
//	go test -count=1 ./metrics
package metrics
