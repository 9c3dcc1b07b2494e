package main

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The versions of what is downloaded.
const (
	kubeletVersion    = "1.37.0"
	crictlVersion     = "1.36.0"
	containerdVersion = "2.3.4"
	cniVersion        = "0.3.1"
)

// archive is a release of another project.
type archive struct {
	url string
	// sum is the SHA-256 or SHA-512 of the archive. If it is not known here, the project publishes
	// it in a file that ends with sumFile: that detects damage, not an exchanged release.
	sum, sumFile string
	// programs are the paths of programs in the archive.
	programs map[string]string
}

// archives are what a node needs besides the plugin.
var archives = []archive{
	{
		url: "https://dl.k8s.io/v" + kubeletVersion + "/kubernetes-node-windows-amd64.tar.gz",
		// CHANGELOG/CHANGELOG-1.37.md of Kubernetes.
		sum: "50ce08d0cac9fe0c772cc87a8097f0bdc1866ddbf25cc2842d91e929f079b984" +
			"836b0a2bb427b0b34e33eec44502afacbfde74d06acbc421ebe85287ae7df1b4",
		programs: map[string]string{"kubelet": "kubernetes/node/bin/kubelet.exe"},
	},
	{
		url: "https://github.com/kubernetes-sigs/cri-tools/releases/download/v" + crictlVersion +
			"/crictl-v" + crictlVersion + "-windows-amd64.tar.gz",
		// cluster/gce/windows/k8s-node-setup.psm1 of Kubernetes.
		sum: "f8cd455d249a20db6350a597ba9043684aa011a38e416f9ca1317ee1b4803c59" +
			"52ae97cd4f597cf9ca068ba218e28e82cd224fd4b38bb13705ccbce60c8d2d25",
		programs: map[string]string{"crictl": "crictl.exe"},
	},
	{
		url: "https://github.com/containerd/containerd/releases/download/v" + containerdVersion +
			"/containerd-" + containerdVersion + "-windows-amd64.tar.gz",
		sumFile:  ".sha256sum",
		programs: map[string]string{"containerd": "bin/containerd.exe", "ctr": "bin/ctr.exe"},
	},
	{
		url: "https://github.com/microsoft/windows-container-networking/releases/download/v" + cniVersion +
			"/windows-container-networking-cni-amd64-v" + cniVersion + ".zip",
		// Its publisher lists none; two independent projects that install it pin this one.
		sum:      "4f36ee6905ada238ca2a9e1bfb8a1fb2912c2d88c4b6e5af4c41a42db70d7d68",
		programs: map[string]string{natPlugin: natPlugin + ".exe"},
	},
}

// natPlugin is the CNI plugin for the network of Windows hosts.
const natPlugin = "nat"

// tools downloads and unpacks the archives.
func (n *node) tools(ctx context.Context) ([]string, error) {
	for _, a := range n.archives {
		file := filepath.Join(n.folder, path.Base(a.url))
		folder := filepath.Join(n.folder, "tools", path.Base(a.url))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		if err := download(ctx, a, file); err != nil {
			return nil, err
		}
		if _, err := n.run(ctx, "tar", "-xf", file, "-C", folder); err != nil {
			return nil, err
		}
		for name, path := range a.programs {
			n.paths[name] = filepath.Join(folder, filepath.FromSlash(path))
			if _, err := os.Stat(n.paths[name]); err != nil {
				return nil, &problem{"an archive does not contain " + name, "correct the path in tools.go", err}
			}
		}
		if err := os.Remove(file); err != nil {
			return nil, err
		}
	}
	return []string{fmt.Sprintf("archives=%d", len(n.archives))}, nil
}

// download writes an archive to a file, and compares its checksum.
func download(ctx context.Context, a archive, file string) error {
	name := path.Base(a.url)
	wanted := a.sum
	if wanted == "" {
		var text strings.Builder
		if err := get(ctx, a.url+a.sumFile, &text); err != nil {
			return err
		}
		// SUM  NAME
		wanted, _, _ = strings.Cut(strings.TrimSpace(text.String()), " ")
	}
	output, err := os.Create(file)
	if err != nil {
		return err
	}
	defer output.Close()
	hash := sha512.New()
	if len(wanted) == hex.EncodedLen(sha256.Size) {
		hash = sha256.New()
	}
	if err := get(ctx, a.url, io.MultiWriter(output, hash)); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != wanted {
		cause := fmt.Errorf("%s has the checksum %s, expected %q", name, got, wanted)
		return &problem{"an archive has another checksum", "try again; if it stays, do not use the archive", cause}
	}
	return output.Close()
}

func get(ctx context.Context, url string, output io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return &problem{"no network", "let this host reach " + request.URL.Host, err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return &problem{"a download is missing", "correct the version in tools.go", errors.New(url + ": " + response.Status)}
	}
	if _, err := io.Copy(output, response.Body); err != nil {
		return &problem{"a download was interrupted", "try again", err}
	}
	return nil
}
