//go:build !windows

package main

import "errors"

func thisPlatform() (platform, error) {
	return platform{}, errors.New("this program runs only on Windows")
}
