package main

import (
	"os"

	"golang.org/x/sys/windows"
)

func thisPlatform() (platform, error) {
	return platform{
		os:       "windows",
		elevated: windows.GetCurrentProcessToken().IsElevated(),
		build:    int(windows.RtlGetVersion().BuildNumber),
		drive:    os.Getenv("SystemDrive") + `\`,
	}, nil
}
