package manifests

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/registry/batch/job"
)

// admitJob passes a Job to the API server's own creation strategy.
func admitJob(t *testing.T, manifest string) (*batchv1.Job, error) {
	t.Helper()
	object, _, err := strict.Decode([]byte(manifest), nil, nil)
	if err != nil {
		return nil, err
	}
	found, ok := object.(*batchv1.Job)
	if !ok {
		t.Fatalf("%T is not a Job", object)
	}
	legacyscheme.Scheme.Default(found)
	return found, create(job.Strategy, found)
}

// TestDriverInstallation checks the Job that installs a driver: it must run on one cordoned Windows
// node, once, with the rights to install a driver.
func TestDriverInstallation(t *testing.T) {
	manifest := read(t, "deploy/drivers/install-driver.yml")
	found, err := admitJob(t, manifest)
	if err != nil {
		t.Fatal(err)
	}
	pod := found.Spec.Template.Spec
	if *found.Spec.BackoffLimit != 0 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("the driver may be installed more than once")
	}
	if pod.NodeSelector[corev1.LabelHostname] == "" || pod.NodeSelector[corev1.LabelOSStable] != "windows" {
		t.Errorf("the Job runs on any of the nodes %v", pod.NodeSelector)
	}
	if len(pod.Tolerations) != 1 || pod.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
		t.Error("the Job does not run on a cordoned node")
	}
	if windows := pod.SecurityContext.WindowsOptions; !*windows.HostProcess || *windows.RunAsUserName != `NT AUTHORITY\SYSTEM` {
		t.Error("the Job cannot install a driver")
	}
	copies, installs := pod.InitContainers[0].Command, pod.Containers[0].Command
	if !strings.Contains(copies[4], "if ($folder.Attributes -band [IO.FileAttributes]::ReparsePoint) { throw ") {
		t.Errorf("%q follows a link", copies)
	}
	// xcopy.exe copies nothing without standard input, which containers do not have. The copy must fail if the file
	// is missing.
	if copies[0] != "powershell.exe" || !strings.HasSuffix(copies[4], "; Get-Item "+installs[2]) {
		t.Errorf("%q does not install what %q copies", installs, copies)
	}
	for _, change := range []struct{ from, to, message string }{
		{"restartPolicy: Never", "restartPolicy: Always", "restartPolicy"},
		{"hostNetwork: true", "hostNetwork: false", "hostNetwork must be true"},
	} {
		_, err := admitJob(t, strings.Replace(manifest, change.from, change.to, 1))
		if err == nil || !strings.Contains(err.Error(), change.message) {
			t.Errorf("got %v, expected an error with %q", err, change.message)
		}
	}
}

// TestNVIDIADriverInstallation checks the DaemonSet of the cloud guides that installs a driver. Only
// Windows can run its script, so the test reads the order of its steps.
func TestNVIDIADriverInstallation(t *testing.T) {
	found, err := admit(read(t, "cloud/install-nvidia-driver.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.daemonSets) != 1 || len(found.configMaps) != 1 {
		t.Fatalf("%d DaemonSets, %d ConfigMaps", len(found.daemonSets), len(found.configMaps))
	}
	pod := found.daemonSets[0].Spec.Template.Spec
	for _, fault := range windowsFaults(pod) {
		t.Error(fault)
	}
	// Where Windows has no bind filter, as on Windows Server 2019, volumes are only below the folder of
	// the image.
	install := pod.InitContainers[0]
	const key = "install-driver.ps1"
	script := `$env:CONTAINER_SANDBOX_MOUNT_POINT` + strings.ReplaceAll(install.VolumeMounts[0].MountPath, "/", `\`) + `\` + key
	if got := install.Command[len(install.Command)-1]; got != script {
		t.Errorf("the script is run as %s, expected %s", got, script)
	}
	mustContainInOrder(t, found.configMaps[0].Data[key],
		// A folder of users, or a link, is refused.
		"function New-PrivateFolder(", "'D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)'", "CreateDirectory($path, $security)",
		"::ReparsePoint) {", "throw ", "$access.GetOwner(", "-notin 'S-1-5-18', 'S-1-5-32-544'", "throw ", "\n}\n",
		// Any driver of NVIDIA counts, also that of a compute accelerator, and none is replaced.
		"$_.DeviceClass -in 'DISPLAY', 'COMPUTEACCELERATOR'", "is already installed", "exit 0", "if ($drivers.Count -gt 0) {", "throw ",
		// Everything is written to folders of administrators.
		"$folder = Join-Path $env:SystemRoot ", "New-PrivateFolder $folder", "New-PrivateFolder (Join-Path $env:SystemDrive 'NVIDIA')",
		"$env:TEMP = $folder", "$env:TMP = $folder", "$file = Join-Path $folder ", "& curl.exe ", "--output $file ", "Get-FileHash ", "Start-Process -FilePath $file ",
	)
}

// mustContainInOrder fails unless a text contains all parts, each after the one before it.
func mustContainInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			t.Fatalf("%q is missing, or not after what comes before it", part)
		}
		text = after
	}
}
