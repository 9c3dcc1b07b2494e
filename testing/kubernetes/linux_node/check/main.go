// Program check is all that the containers of the tests contain. Without arguments, it does nothing
// until it is stopped. With `check`, it first prints what it can do with the device of Windows.
package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

const device = "/dev/dxg"

// folders are those with the libraries of Windows, and a file in each.
var folders = map[string]string{"/usr/lib/wsl/lib": "libdxcore.so", "/usr/lib/wsl/drivers": "driver"}

// Findings is what a container prints.
type Findings struct {
	// Open is how opening the device for reading and writing ended.
	Open string
	// OpenOwn is the same for a device file with the number of the device that the container has made.
	OpenOwn string
	// Content is what the folders' files contain, and Write is how changing them ended.
	Content, Write map[string]string
	Environment    []string
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "check" {
		number, err := strconv.ParseUint(os.Args[2], 10, 64)
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(check(number))
		}
		if err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
}

func check(number uint64) Findings {
	found := Findings{
		Open: open(device), OpenOwn: "not made",
		Content: map[string]string{}, Write: map[string]string{}, Environment: os.Environ(),
	}
	if err := syscall.Mknod("/own", syscall.S_IFCHR|0o600, int(number)); err == nil {
		found.OpenOwn = open("/own")
	}
	for folder, name := range folders {
		content, err := os.ReadFile(folder + "/" + name)
		found.Content[folder] = strings.TrimSpace(string(content)) + outcome(err)
		found.Write[folder] = outcome(os.WriteFile(folder+"/new", nil, 0o600))
	}
	return found
}

func open(path string) string {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		file.Close()
	}
	return outcome(err)
}

// outcome is the name of an error of the system, or nothing.
func outcome(err error) string {
	if number := syscall.Errno(0); errors.As(err, &number) {
		return number.Error()
	}
	return ""
}
