package main

import (
	"errors"
	"strings"
	"testing"
)

// queried is what `sc queryex` prints in English.
const queried = `
SERVICE_NAME: directx-device-plugin
        TYPE               : 10  WIN32_OWN_PROCESS
        STATE              : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, ACCEPTS_PRESHUTDOWN)
        WIN32_EXIT_CODE    : 1067  (0x42b)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x0
        PID                : 4712
        FLAGS              :
`

func TestTheStateOfAServiceIsReadInEveryLanguage(t *testing.T) {
	translated := strings.NewReplacer("STATE  ", "STATUS ", "RUNNING", "WIRD AUSGEFÜHRT", "PID", "PROZESS", "WIN32_EXIT_CODE", "WIN32_BEENDIGUNGSCODE", "\n", "\r\n")
	for _, text := range []string{queried, translated.Replace(queried)} {
		found, err := parseService(text)
		if expected := (serviceState{state: running, exitCode: 1067, process: 4712}); err != nil || found != expected {
			t.Errorf("%+v, %v in %s", found, err, text)
		}
	}
}

func TestAnAbsentFieldOfAServiceIsAProblem(t *testing.T) {
	before, _, _ := strings.Cut(queried, "        PID")
	for _, text := range []string{before, "", strings.Replace(queried, "4712", "-", 1)} {
		_, err := parseService(text)
		if final := (*problem)(nil); !errors.As(err, &final) || !strings.Contains(err.Error(), "does not print a number as field") {
			t.Errorf("%v for %s", err, text)
		}
	}
}
