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
