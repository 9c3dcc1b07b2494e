package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustFail(t *testing.T, err error, what string) {
	t.Helper()
	var known *problem
	if !errors.As(err, &known) || known.what != what {
		t.Fatalf("%v, expected %q", err, what)
	}
	if known.hint == "" {
		t.Errorf("%q has no hint", what)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnsuitableHostsAreRefused(t *testing.T) {
	for what, spoil := range map[string]func(*node){
		"not elevated": func(n *node) { n.elevated = false },
		"no image is known for this build of Windows": func(n *node) { n.build = 14393 },
		"Windows has no feature Containers":           func(n *node) { n.set(t, "services", "") },
		"a kubelet is installed":                      func(n *node) { n.set(t, "services", "vmcompute kubelet") },
		"a kubelet runs":                              func(n *node) { n.set(t, "processes", "kubelet.exe") },
		"a kubelet has run here":                      func(n *node) { must(t, os.MkdirAll(n.onDrive("var", "lib", "kubelet"), 0o755)) },
		"a port of the kubelet is in use": func(n *node) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			t.Cleanup(func() { listener.Close() })
			n.ports.readOnly = listener.Addr().(*net.TCPAddr).Port
		},
		"an earlier run was not cleaned up": func(n *node) { n.set(t, "services", "vmcompute "+serviceName) },
		"directx-visible.exe is missing":    func(n *node) { must(t, os.Remove(filepath.Join(n.programs, "directx-visible.exe"))) },
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			spoil(n)
			_, err := n.checkHost(limited(t))
			mustFail(t, err, what)
			if len(n.cleanups) > 0 {
				t.Errorf("a refused host was changed: %v", n.cleanups)
			}
		})
	}
}

func TestAFolderOfAnEarlierRunIsKept(t *testing.T) {
	n := newNode(t)
	must(t, os.Mkdir(n.folder, 0o755))
	_, err := n.checkHost(limited(t))
	mustFail(t, err, "an earlier run was not cleaned up")
	must(t, n.clean(limited(t)))
	if _, err := os.Stat(n.folder); err != nil {
		t.Errorf("the folder was removed: %v", err)
	}
}

// The whole program, with doubles of the programs up to the kubelet, of which there is none.
func TestContainersWithoutTheKubelet(t *testing.T) {
	n := newNode(t)
	n.pluginImage = filepath.Join(n.drive, "image.tar")
	// The kubelet and the plugin would create these.
	folder := n.onDrive("var", "lib", "kubelet", "device-plugins")
	defer func() { must(t, os.RemoveAll(n.onDrive("var"))) }()
	created := step{name: "made", limit: time.Minute, run: func(context.Context) ([]string, error) { return nil, os.MkdirAll(folder, 0o755) }}
	report := filepath.Join(t.TempDir(), "report.md")
	findings, err := n.test(n.logs, report, append(n.steps(), created))
	must(t, err)
	for _, f := range findings {
		wanted := ok
		switch f.step {
		// There is no driver store, and no kubelet.
		case "prediction", "kubelet":
			wanted = failed
		case "classes", "registration", "pod", "launcher", "probe", "equality", "capacity", "plugin-restart", "kubelet-restart", "container-restart",
			"service-install", "service-start", "service-failure", "service-stop", "service-uninstall",
			"image", "image-probes", "image-config", "image-stop", "visible-image":
			wanted = skipped
		}
		if f.status != wanted {
			t.Errorf("%s: %s, expected %s", f.step, f.status, wanted)
		}
	}
	entries, err := os.ReadDir(n.drive)
	must(t, err)
	if len(entries) != 3 {
		t.Errorf("not only doubles, logs and programs are left: %v", entries)
	}
	if services := setting(n.state(), "services"); !slices.Equal(services, []string{"vmcompute"}) {
		t.Errorf("a service is left: %v", services)
	}
	text, err := os.ReadFile(report)
	must(t, err)
	host, err := os.Hostname()
	must(t, err)
	for _, private := range []string{n.drive, "windows-node-containerd", host} {
		if strings.Contains(string(text), private) {
			t.Errorf("the report contains %q:\n%s", private, text)
		}
	}
}

// The steps of the service, with doubles of the plugin and of Windows' service manager.
func TestTheServiceSteps(t *testing.T) {
	// A step that is expected to wait in vain gets a short time, the others as much as they need.
	try := func(n *node, endless string) map[string]string {
		var steps []step
		for _, s := range n.steps() {
			if strings.HasPrefix(s.name, "service-") || s.name == "description" {
				s.needs = slices.DeleteFunc(s.needs, func(need string) bool { return need == "pod" || need == "host" })
				if s.name == endless {
					s.limit = 500 * time.Millisecond
				}
				steps = append(steps, s)
			}
		}
		found := map[string]string{}
		for _, f := range runSteps(limited(t), steps, func(finding) {}) {
			if f.status != ok {
				found[f.step] = f.what
			}
		}
		must(t, n.clean(limited(t)))
		if services := setting(n.state(), "services"); !slices.Equal(services, []string{"vmcompute"}) {
			t.Errorf("a service is left: %v", services)
		}
		return found
	}
	n := newNode(t)
	if found := try(n, ""); len(found) > 0 {
		t.Errorf("%v", found)
	}
	for _, name := range []string{"doctor.md", "inventory.yaml"} {
		_, err := os.Stat(filepath.Join(n.logs, name))
		must(t, err)
	}
	for broken, wanted := range map[string]finding{
		"stop":    {step: "service-stop", what: "the service did not end gracefully"},
		"restart": {step: "service-failure", what: "not done after 500ms: gave up waiting until the service is RUNNING"},
	} {
		n := newNode(t)
		n.set(t, "broken", broken)
		if found := try(n, wanted.step); !maps.Equal(found, map[string]string{wanted.step: wanted.what}) {
			t.Errorf("%s: %v", broken, found)
		}
	}
}

// On Windows with a bind filter, a container ends with the exit code of cmd.exe, and without the
// last lines of its log.
func TestAPluginThatIsKilledFails(t *testing.T) {
	const last = "INFO shutting down signal=shutdown\n"
	for _, test := range []struct {
		code, log string
		removes   bool
		what      string
	}{
		{"0", last, true, ""},
		{"3221225786", "", true, ""},
		{"-1073741510", "", true, ""},
		{"0", "INFO starting\n", true, "the log does not end with `shutting down`"},
		{"3221225786", last, false, "gave up waiting until the plugin has removed its sockets"},
		{"1", last, true, "a HostProcess container did not shut down gracefully"},
		{"-1073741515", last, true, "a HostProcess container did not shut down gracefully"},
	} {
		t.Run(fmt.Sprintf("%s %q %t", test.code, test.log, test.removes), func(t *testing.T) {
			n := newNode(t)
			must(t, os.MkdirAll(n.devicePlugins(), 0o755))
			n.set(t, "exit-code", test.code)
			n.set(t, "log", test.log)
			ctx := limited(t)
			_, err := n.stopPlugin(ctx, "container-1")
			mustFail(t, err, "the plugin has no sockets")

			socket := filepath.Join(n.devicePlugins(), "display-1.sock")
			for _, name := range []string{socket, filepath.Join(n.devicePlugins(), "kubelet.sock")} {
				write(t, name, "")
			}
			if test.removes {
				n.set(t, "sockets", socket)
			} else {
				ctx = forNothing(t)
			}
			_, err = n.stopPlugin(ctx, "container-1")
			if test.what == "" {
				must(t, err)
				return
			}
			mustFail(t, err, test.what)
		})
	}
}

// ignored is what the plugin logs about a configuration of which others may change the folder
// (crates/core/windows_report/src/directory_access.rs).
func ignored(fix string) string {
	const start = "2026-11-27T16:00:00.000000Z  WARN part of the configuration has no effect notice=the configuration file "
	const reason = "`C:\\etc\\directx-device-plugins\\wddm.yaml` is ignored: Authenticated Users (S-1-5-11) may change `C:\\etc\\directx-device-plugins`; "
	return start + reason + fix + ", or name the file with --config\n"
}

const (
	restriction = "run `icacls \"C:\\etc\\directx-device-plugins\" /inheritance:r /grant:r \"*S-1-5-18:(OI)(CI)F\" \"*S-1-5-32-544:(OI)(CI)F\" /remove:g *S-1-5-11`"
	newOwner    = ", then `icacls \"C:\\etc\\directx-device-plugins\" /setowner *S-1-5-32-544`"
	applied     = "2026-11-27T16:00:01.000000Z  INFO configuration applied applied=1\n"
)

func TestTheHintsOfThePluginAreFollowed(t *testing.T) {
	folder := `"C:\\etc\\directx-device-plugins"`
	first := `["icacls" ` + folder + ` "/inheritance:r" "/grant:r" "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F" "/remove:g" "*S-1-5-11"]` + "\n"
	second := `["icacls" ` + folder + ` "/setowner" "*S-1-5-32-544"]` + "\n"
	for name, test := range map[string]struct {
		log, then, executed, what string
	}{
		"trusted":         {log: "INFO starting\n"},
		"applied already": {log: ignored(restriction) + applied},
		// The other driver model has the same folder.
		"one command":     {log: ignored(restriction) + ignored(restriction), then: applied, executed: first},
		"two commands":    {log: ignored(restriction + newOwner), then: applied, executed: first + second},
		"without command": {log: ignored("move the file to a folder that only administrators may change"), what: "the plugin ignores its configuration, and prints no command"},
		"without effect":  {log: ignored(restriction), executed: first, what: "gave up waiting until the plugin has applied its configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.set(t, "log", test.log)
			n.set(t, "then", test.then)
			ctx := limited(t)
			if strings.HasPrefix(test.what, "gave up") {
				ctx = forNothing(t)
			}
			_, err := n.followHints(ctx, "container-1")
			if test.what == "" {
				must(t, err)
			} else {
				mustFail(t, err, test.what)
			}
			if executed, _ := os.ReadFile(filepath.Join(n.state(), "executed.txt")); string(executed) != test.executed {
				t.Errorf("the container was told\n%s\nexpected\n%s", executed, test.executed)
			}
		})
	}
}

// hcsshim keeps the rights of the folder above a mount, and a folder of the host stays as it is.
func TestTheFolderAboveTheConfigurationIsRestricted(t *testing.T) {
	n := newNode(t)
	for _, wanted := range []string{`["` + n.onDrive("etc") + `" "/inheritance:r" "/grant:r" "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F"]`, ""} {
		n.set(t, "icacls", "")
		must(t, n.makeMountPoint(limited(t)))
		if got, _ := os.ReadFile(filepath.Join(n.state(), "icacls.txt")); string(got) != wanted {
			t.Errorf("icacls was called with %s, expected %s", got, wanted)
		}
	}
}

// No pod starts before all its files exist.
func TestAPodWithoutItsFilesIsNotStarted(t *testing.T) {
	const missing = "a file that containers will get is missing"
	n := newNode(t)
	must(t, os.MkdirAll(n.manifests(), 0o755))
	file, other := n.onDrive("driver.dll"), n.onDrive("launcher.exe")
	text := fmt.Sprintf(`{"pods": [{"resource": %q, "admitted": true, "container": {"mounts": [{"hostPath": %q}, {"hostPath": %q}]}}]}`, display, file, other)
	wanted, err := parsePrediction(text)
	must(t, err)
	n.wanted = wanted
	write(t, file, "")
	mustFail(t, n.addDevicePod(limited(t), "device", 1), missing)
	must(t, os.Mkdir(other, 0o755))
	mustFail(t, n.addDevicePod(limited(t), "device", 1), missing)
	if entries, err := os.ReadDir(n.manifests()); err != nil || len(entries) > 0 {
		t.Errorf("the kubelet was given %v, %v", entries, err)
	}
	must(t, os.Remove(other))
	write(t, other, "")
	must(t, n.addDevicePod(limited(t), "device", 1))
}

func TestAContainerWithoutItsDeviceFails(t *testing.T) {
	n := newNode(t)
	n.set(t, "broken", "class")
	findings := runSteps(limited(t), n.steps()[:9], func(finding) {})
	if f := findings[6]; f.status != failed || f.what != "the container does not see what it should" {
		t.Errorf("%+v", f)
	}
	if f := findings[8]; f.step != "file" || f.status != ok {
		t.Errorf("%+v", f)
	}
	must(t, n.clean(limited(t)))
}

// A refused class is a result, and does not fail the run.
func TestEachDeviceClassIsTried(t *testing.T) {
	for refused, wanted := range map[string]status{"": ok, computeArrival + " " + displayArrival: warning} {
		n := newNode(t)
		n.live = true
		n.set(t, "refused-classes", refused)
		f := runSteps(limited(t), n.steps()[:8], func(finding) {})[7]
		if f.step != "classes" || f.status != wanted {
			t.Errorf("%+v", f)
		}
		expected := []string{
			"5B45201D-F2F2-4F3B-85BB-30FF1F953599=accepted,drivers:yes",
			"1024E4C9-47C9-48D3-B4A8-F9DF78523B53=accepted,drivers:no", "1CA05180-A699-450A-9A0C-DE4FBE3DDD89=accepted,drivers:no",
		}
		if refused != "" {
			expected[1], expected[2] = "1024E4C9-47C9-48D3-B4A8-F9DF78523B53=refused", "1CA05180-A699-450A-9A0C-DE4FBE3DDD89=refused"
			if strings.Count(f.detail, "The parameter is incorrect") != 2 {
				t.Errorf("%q", f.detail)
			}
		}
		// The last one is the time.
		if got := f.measured[:len(f.measured)-1]; !slices.Equal(got, expected) {
			t.Errorf("%q", got)
		}
		must(t, n.clean(limited(t)))
	}
}

func TestAMissingImageIsNamed(t *testing.T) {
	n := newNode(t)
	n.image = "mcr.microsoft.com/windows/nanoserver:none"
	n.set(t, "missing-images", n.image)
	_, err := n.pullImages(limited(t))
	mustFail(t, err, "an image cannot be pulled")
}

func TestAMissingNetworkIsNamed(t *testing.T) {
	n := newNode(t)
	n.natInterface = "no such interface"
	_, err := n.network(limited(t))
	mustFail(t, err, "no network of containers exists")
	n.set(t, "services", "docker")
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err = n.network(ctx)
	mustFail(t, err, "gave up waiting until Docker has created the network of containers")
	if len(n.cleanups) != 1 {
		t.Errorf("Docker is stopped %d times", len(n.cleanups))
	}
}

func TestTheNetworkOfTheHostIsThatOfContainers(t *testing.T) {
	address := &net.IPNet{IP: net.IPv4(172, 28, 80, 1).To4(), Mask: net.CIDRMask(20, 32)}
	got := fmt.Sprint(natConfiguration(address)["ipam"])
	if got != "map[routes:[map[GW:172.28.80.1]] subnet:172.28.80.0/20]" {
		t.Error(got)
	}
}

// Whatever fails to be removed does not keep the rest, and is named.
func TestCleaningContinues(t *testing.T) {
	n := newNode(t)
	var order []string
	for _, name := range []string{"first", "second", "third"} {
		n.later(name, func(context.Context) error {
			order = append(order, name)
			if name == "second" {
				return errors.New("in use")
			}
			return nil
		})
	}
	err := n.clean(limited(t))
	mustFail(t, err, "something was left behind")
	if !slices.Equal(order, []string{"third", "second", "first"}) || !strings.Contains(err.Error(), "second: in use") {
		t.Errorf("%v, %v", order, err)
	}
}

func TestDownloadsAreCompared(t *testing.T) {
	const content = "an archive"
	hash := sha256.Sum256([]byte(content))
	sum := hex.EncodeToString(hash[:])
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/a.tgz":
			fmt.Fprint(response, content)
		case "/a.tgz.sha256sum":
			fmt.Fprintln(response, sum+"  a.tgz")
		default:
			http.NotFound(response, request)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "a.tgz")
	try := func(a archive) error { return download(limited(t), a, file) }
	must(t, try(archive{url: server.URL + "/a.tgz", sum: sum}))
	must(t, try(archive{url: server.URL + "/a.tgz", sumFile: ".sha256sum"}))
	if text, err := os.ReadFile(file); err != nil || string(text) != content {
		t.Errorf("%q, %v", text, err)
	}
	mustFail(t, try(archive{url: server.URL + "/a.tgz", sum: strings.Repeat("0", 64)}), "an archive has another checksum")
	mustFail(t, try(archive{url: server.URL + "/a.tgz", sumFile: ".sha512"}), "a download is missing")
	server.Close()
	mustFail(t, try(archive{url: server.URL + "/a.tgz", sum: sum}), "no network")
}

// The checksums here are those that Kubernetes itself publishes and uses.
func TestPinnedChecksums(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	must(t, err)
	source := func(path string) string {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), path))
		must(t, err)
		return string(text)
	}
	release := regexp.QuoteMeta(archives[0].url) + `\) \| .?` + archives[0].sum
	if !regexp.MustCompile(release).MatchString(source("CHANGELOG/CHANGELOG-1.37.md")) {
		t.Error("the checksum of Kubernetes is not that of its CHANGELOG")
	}
	setup := source("cluster/gce/windows/k8s-node-setup.psm1")
	if !strings.Contains(setup, "CRICTL_VERSION = 'v"+crictlVersion+"'") || !strings.Contains(setup, "CRICTL_SHA512 = '"+archives[1].sum+"'") {
		t.Error("version and checksum of crictl are not those that Kubernetes uses")
	}
	for _, a := range archives {
		if (a.sum == "") == (a.sumFile == "") || (a.sum != "" && len(a.sum) != 64 && len(a.sum) != 128) {
			t.Errorf("%+v", a)
		}
	}
}

func TestArchivesAreUnpacked(t *testing.T) {
	n := newNode(t)
	must(t, os.Mkdir(n.folder, 0o755))
	write(t, filepath.Join(n.programs, "crictl.exe"), "a program")
	packed := filepath.Join(t.TempDir(), "a.tgz")
	must(t, exec.Command("tar", "-czf", packed, "-C", n.programs, "crictl.exe").Run())
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(packed))))
	defer server.Close()
	text, err := os.ReadFile(packed)
	must(t, err)
	hash := sha256.Sum256(text)
	a := archive{url: server.URL + "/a.tgz", sum: hex.EncodeToString(hash[:]), programs: map[string]string{"crictl": "crictl.exe"}}
	n.archives = []archive{a}
	_, err = n.tools(limited(t))
	must(t, err)
	if text, err := os.ReadFile(n.paths["crictl"]); err != nil || string(text) != "a program" {
		t.Errorf("%q, %v", text, err)
	}
	n.archives[0].programs = map[string]string{"kubelet": "kubelet.exe"}
	_, err = n.tools(limited(t))
	mustFail(t, err, "an archive does not contain kubelet")
}
