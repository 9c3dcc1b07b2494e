package programs

import (
	"regexp"
	"testing"
)

// A POSIX shell can set the variable of every program.
func TestVariables(t *testing.T) {
	valid := regexp.MustCompile("^[A-Z_]+$")
	for _, name := range []string{"directx-device-plugin", "examples/minimal"} {
		if found := variable(name); !valid.MatchString(found) {
			t.Errorf("the variable of %s is %q", name, found)
		}
	}
}
