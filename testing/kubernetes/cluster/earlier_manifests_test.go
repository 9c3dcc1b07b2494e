package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"directx-device-plugin/testing/kubernetes/programs"
)

// earlierJob has what differs between the examples of TensorWorks' project (examples/*/*.yml of its commit 5862bd7). Each is a Job whose
// only container has the name of the Job.
type earlierJob struct {
	name     string
	resource v1.ResourceName
	image    string
	command  []string
	args     []string
}

func ffmpeg(encoder string) []string {
	return []string{"-i", `C:\sample-video.mp4`, "-c:v", encoder, "-preset", "default", `C:\output.mp4`}
}

var earlierJobs = []earlierJob{
	{"example-cuda-devicequery-mcdm", compute, "example-cuda-devicequery", nil, nil},
	{"example-cuda-devicequery-wddm", display, "example-cuda-devicequery", nil, nil},
	{"example-cuda-montecarlo-mcdm", compute, "example-cuda-montecarlo", nil, nil},
	{"example-cuda-montecarlo-wddm", display, "example-cuda-montecarlo", nil, nil},
	{"example-device-discovery-mcdm", compute, "example-device-discovery", nil, nil},
	{"example-device-discovery-wddm", display, "example-device-discovery", nil, nil},
	{"example-directml-mcdm", compute, "example-directml", nil, nil},
	{"example-directml-wddm", display, "example-directml", nil, nil},
	{"example-ffmpeg-amf", display, "example-ffmpeg", nil, ffmpeg("h264_amf")},
	{"example-ffmpeg-autodetect", display, "example-ffmpeg", []string{"powershell"}, []string{"-ExecutionPolicy", "Bypass", "-File", `C:\autodetect-encoder.ps1`}},
	{"example-ffmpeg-nvenc", display, "example-ffmpeg", nil, ffmpeg("h264_nvenc")},
	{"example-ffmpeg-quicksync", display, "example-ffmpeg", nil, ffmpeg("h264_qsv")},
	// Two files have one name.
	{"example-nvidia-smi", compute, "servercore", []string{"nvidia-smi.exe"}, nil},
	{"example-nvidia-smi", display, "servercore", []string{"nvidia-smi.exe"}, nil},
	{"example-opencl-enum-mcdm", compute, "example-opencl-enum", nil, nil},
	{"example-opencl-enum-wddm", display, "example-opencl-enum", nil, nil},
	{"example-vulkaninfo", display, "server", []string{"vulkaninfo.exe"}, nil},
}

func (j earlierJob) object() *batchv1.Job {
	never := int32(0)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: j.name}, Spec: batchv1.JobSpec{BackoffLimit: &never}}
	job.Spec.Template.Spec = v1.PodSpec{
		Containers: []v1.Container{{
			Name: j.name, Image: "registry.example.com/" + j.image, Command: j.command, Args: j.args,
			Resources: v1.ResourceRequirements{Limits: v1.ResourceList{j.resource: resource.MustParse("1")}},
		}},
		NodeSelector:  map[string]string{v1.LabelOSStable: "windows"},
		RestartPolicy: v1.RestartPolicyNever,
	}
	return job
}

// earlierHost adds two compute-only GPUs of NVIDIA to the two GPUs of a node.
func earlierHost(t *testing.T, n *node) {
	t.Helper()
	const compute = "../../../fixtures/inventories/made-up-h100-mcdm.yaml"
	for _, adapter := range readInventory(t, compute)["adapters"].([]any)[:2] {
		n.host.returnGPU(adapter)
	}
}

// The API server accepts each example of TensorWorks' project with nothing but its image replaced, and its container gets what
// `simulate` predicts. The pods run with another node selector, because the kubelets are those of Linux.
func TestEarlierExamples(t *testing.T) {
	t.Parallel()
	n := newNode(t, "earlier-examples", "")
	earlierHost(t, n)
	n.startAll()
	plain := n.create("plain", 0).mustRun()
	predicted := map[string]bool{}
	for _, pod := range n.simulate().Pods {
		if pod.Admitted {
			predicted[pod.Container.text()] = true
		}
	}
	if len(predicted) != 4 {
		t.Fatalf("simulate predicts %d containers", len(predicted))
	}
	for _, job := range earlierJobs {
		object := job.object()
		if _, err := api.BatchV1().Jobs(namespace).Create(context.Background(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("%s: %v", job.name, err)
			continue
		}
		spec := object.Spec.Template.Spec
		// What the pod without devices has as well.
		no, grace := false, int64(1)
		spec.AutomountServiceAccountToken, spec.TerminationGracePeriodSeconds = &no, &grace
		spec.NodeSelector = map[string]string{v1.LabelHostname: n.name}
		spec.Containers[0].Name = mainContainer
		_, model, _ := strings.Cut(string(job.resource), "/")
		p := n.createSpec(job.name+"-"+model, spec).mustRun()
		got := n.container(p, plain)
		if !predicted[got.text()] {
			t.Errorf("the runtime received for %s\n%s", job.name, got.text())
		}
		names := []string{}
		for _, mount := range got.Mounts {
			names = append(names, mount.ContainerPath[strings.LastIndex(mount.ContainerPath, `\`)+1:])
		}
		if len(job.command) > 0 && job.command[0] == "nvidia-smi.exe" && !slices.Contains(names, "nvidia-smi.exe") {
			t.Errorf("%s does not get its program: %q", job.name, names)
		}
		t.Logf("| %s | %s | %s | %d |", job.name, job.resource, got.Devices[0].HostPath, len(names))
		p.delete()
		eventually(t, "pod "+p.name+" is gone", "", func() string { return p.object().Name })
	}
}

// The two programs of the DaemonSets of TensorWorks' project, which have no arguments, serve one driver model each with the variables of
// its three manifests (deployments/*.yml of its commit 5862bd7).
func TestEarlierDaemonSets(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, "earlier-daemonsets")
	config := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "device-plugin-config"}, Data: map[string]string{"multitenancy": "4"}}
	if _, err := api.CoreV1().ConfigMaps(i.namespace).Create(context.Background(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reference := &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: config.Name}, Key: "multitenancy",
	}}
	for name, manifest := range map[string]struct {
		variable v1.EnvVar
		replicas int64
	}{
		"default-daemonsets":     {v1.EnvVar{}, 1},
		"multitenancy-inline":    {v1.EnvVar{Value: "4"}, 4},
		"multitenancy-configmap": {v1.EnvVar{ValueFrom: reference}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "earlier-"+name, "")
			earlierHost(t, n)
			n.startRuntime()
			n.startKubelet()
			for _, model := range []string{"mcdm", "wddm"} {
				set := earlierDaemonSet("device-plugin-" + model)
				variables := []string{}
				if variable := manifest.variable; variable != (v1.EnvVar{}) {
					variable.Name = strings.ToUpper(model) + "_DEVICE_PLUGIN_MULTITENANCY"
					set.Spec.Template.Spec.Containers[0].Env = []v1.EnvVar{variable}
					variables = append(variables, variable.Name+"="+config.Data["multitenancy"])
				}
				if _, err := api.AppsV1().DaemonSets(i.namespace).Create(context.Background(), set, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
					t.Fatal(err)
				}
				program, err := programs.Find(set.Name)
				if err != nil {
					t.Fatal(err)
				}
				words := append(variables, program, "--device-plugin-dir", n.devicePlugins(), "--inventory", n.host.path)
				n.daemons = append(n.daemons, n.start(set.Name+".log", "env", words...))
			}
			for _, name := range []v1.ResourceName{display, compute} {
				expected := count{2 * manifest.replicas, 2 * manifest.replicas}
				eventually(t, string(name), expected, func() count { return n.count(name) })
			}
			n.create("both", 1).mustRun()
			n.createSpec("compute", n.podSpecOf(compute, 1)).mustRun()
		})
	}
}

func earlierDaemonSet(name string) *appsv1.DaemonSet {
	labels := map[string]string{"app": name}
	host, user := true, `NT AUTHORITY\SYSTEM`
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	set.Spec.Template = v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: v1.PodSpec{
			NodeSelector: map[string]string{
				v1.LabelOSStable: "windows", v1.LabelArchStable: "amd64", v1.LabelWindowsBuild: "10.0.20348",
			},
			SecurityContext: &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{HostProcess: &host, RunAsUserName: &user}},
			HostNetwork:     true,
			Containers: []v1.Container{{
				Name: name, Image: "registry.example.com/" + name + ":0.0.1", ImagePullPolicy: v1.PullAlways,
			}},
		},
	}
	return set
}
