package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	chart = "../../../deploy/charts/directx-device-plugin"
	// pushedImage is the value without which the chart of a clone is refused.
	pushedImage = "image.repository=registry.your-company.example/directx-device-plugin"
	// optOut is the label of pods that the chart does not change.
	optOut = "directx.microsoft.com/visibility-inject"
	// required is a resource whose containers run only with the filter.
	required = "example.com/required"
)

// injection has the chart's policies in the cluster, as users without Helm apply them.
var injection = sync.OnceValue(func() error {
	for release, values := range map[string]string{
		"visible":  "visibility.enabled=true",
		"required": "visibility.enabled=true,visibility.require=true,visibility.resources[0]=" + required,
	} {
		text, err := helmCommand("template", release, chart, "--kube-version", "1.37.0",
			"--show-only", "templates/visibility-injection.yaml", "--set", pushedImage+",visibility.inject=true,"+values).Output()
		if err != nil {
			return fmt.Errorf("helm: %w", err)
		}
		path := filepath.Join(folder, release+".yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if err := applyManifest(path); err != nil {
			return err
		}
	}
	return nil
})

// mustInject waits until the API server changes pods.
func mustInject(t *testing.T) {
	t.Helper()
	if err := injection(); err != nil {
		t.Fatal(err)
	}
	for resource, expected := range map[v1.ResourceName]string{
		display: "main: directx-visible -- app", required: "main: directx-visible --require -- app",
	} {
		eventually(t, "the commands", expected, func() string {
			// The namespace also gets its service account only now.
			pod, err := create(windowsPod(using(resource, "main", "app")), metav1.DryRunAll)
			if err != nil {
				return err.Error()
			}
			return commands(pod)
		})
	}
}

// using returns a container that requests a device.
func using(device v1.ResourceName, name string, command ...string) v1.Container {
	limits := v1.ResourceList{device: *resource.NewQuantity(1, resource.DecimalSI)}
	return v1.Container{Name: name, Image: "example.com/image", Command: command, Resources: v1.ResourceRequirements{Limits: limits}}
}

// plain returns a container without devices.
func plain(name string, command ...string) v1.Container {
	return v1.Container{Name: name, Image: "example.com/image", Command: command}
}

func windowsPod(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "visible-"},
		Spec:       v1.PodSpec{NodeSelector: map[string]string{v1.LabelOSStable: "windows"}, Containers: containers},
	}
}

func create(pod *v1.Pod, dryRun ...string) (*v1.Pod, error) {
	return api.CoreV1().Pods(namespace).Create(context.Background(), pod, metav1.CreateOptions{DryRun: dryRun})
}

// admitted returns what the API server would store.
func admitted(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	stored, err := create(pod, metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// commands returns the commands of all containers.
func commands(pod *v1.Pod) string {
	found := []string{}
	for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
		found = append(found, container.Name+": "+strings.Join(container.Command, " "))
	}
	return strings.Join(found, "; ")
}

// The chart's policy starts the commands of containers with a device with directx-visible, and no other ones.
func TestCommandsStartWithDirectxVisible(t *testing.T) {
	t.Parallel()
	mustInject(t)
	for _, example := range []struct {
		name, expected string
		pod            *v1.Pod
		change         func(pod *v1.Pod)
	}{
		{"arguments", `main: directx-visible -- C:\app\server.exe --port 80`,
			windowsPod(using(display, "main", `C:\app\server.exe`, "--port", "80")), nil},
		{"several containers", "init: directx-visible -- fetch; prepare: copy; a: directx-visible -- app; b: log; c: directx-visible -- render",
			windowsPod(using(display, "a", "app"), plain("b", "log"), using("directx.microsoft.com/compute", "c", "render")),
			func(pod *v1.Pod) {
				pod.Spec.InitContainers = []v1.Container{using(display, "init", "fetch"), plain("prepare", "copy")}
			}},
		{"a resource with another name", "main: directx-visible -- app", windowsPod(using(display+".shared", "main", "app")), nil},
		{"the operating system of the pod", "main: directx-visible -- app", windowsPod(using(display, "main", "app")),
			func(pod *v1.Pod) { pod.Spec.NodeSelector, pod.Spec.OS = nil, &v1.PodOS{Name: v1.Windows} }},
		{"a prefix", "main: directx-visible -- app", windowsPod(using(display, "main", "directx-visible", "--", "app")), nil},
		{"a prefix with path", `main: C:\tools\DirectX-Visible.exe --require -- app`,
			windowsPod(using(display, "main", `C:\tools\DirectX-Visible.exe`, "--require", "--", "app")), nil},
		{"a program with a similar name", "main: directx-visible -- not-directx-visible.exe",
			windowsPod(using(display, "main", "not-directx-visible.exe")), nil},
		{"a program of a webhook in front of the prefix", "main: wrapper -- directx-visible -- app",
			windowsPod(using(display, "main", "wrapper", "--", "directx-visible", "--", "app")), nil},
		{"a program of a webhook with the prefix as arguments", "main: wrapper", windowsPod(using(display, "main", "wrapper")),
			func(pod *v1.Pod) { pod.Spec.Containers[0].Args = []string{"directx-visible", "--", "app"} }},
		{"no command", "main: ", windowsPod(using(display, "main")), nil},
		{"no device", "main: app", windowsPod(plain("main", "app")), nil},
		{"a limit of zero", "main: app", windowsPod(using(display, "main", "app")),
			func(pod *v1.Pod) { pod.Spec.Containers[0].Resources.Limits[display] = resource.MustParse("0") }},
		{"another resource", "main: app", windowsPod(using("example.com/other", "main", "app")), nil},
		{"the label", "main: app", windowsPod(using(display, "main", "app")),
			func(pod *v1.Pod) { pod.Labels = map[string]string{optOut: "disabled"} }},
		{"a Linux pod", "main: app", windowsPod(using(display, "main", "app")),
			func(pod *v1.Pod) { pod.Spec.NodeSelector[v1.LabelOSStable] = "linux" }},
		{"no operating system", "main: app", windowsPod(using(display, "main", "app")),
			func(pod *v1.Pod) { pod.Spec.NodeSelector = nil }},
		{"a HostProcess pod", "main: app", windowsPod(using(display, "main", "app")), func(pod *v1.Pod) {
			yes, user := true, `NT AUTHORITY\SYSTEM`
			pod.Spec.HostNetwork = true
			pod.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{HostProcess: &yes, RunAsUserName: &user}}
		}},
	} {
		if example.change != nil {
			example.change(example.pod)
		}
		if found := commands(admitted(t, example.pod)); found != example.expected {
			t.Errorf("%s: the commands are %q, expected %q", example.name, found, example.expected)
		}
	}
}

// Probes and hooks run as the pod says.
func TestProbesAndHooksAreNotChanged(t *testing.T) {
	t.Parallel()
	mustInject(t)
	container := using(display, "main", "app")
	check := &v1.ExecAction{Command: []string{"check"}}
	container.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: check}}
	container.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: check}}
	pod := admitted(t, windowsPod(container))
	changed := pod.Spec.Containers[0]
	if commands(pod) != "main: directx-visible -- app" || changed.LivenessProbe.Exec.Command[0] != "check" || changed.Lifecycle.PreStop.Exec.Command[0] != "check" {
		t.Errorf("the container is %+v", changed)
	}
}

// Commands of pods are immutable. Updates of their metadata succeed, also those that repeat the command without the prefix, as
// `kubectl apply` does.
func TestPodsWithDirectxVisibleCanBeUpdated(t *testing.T) {
	t.Parallel()
	mustInject(t)
	ctx := context.Background()
	pods := api.CoreV1().Pods(namespace)
	stored := func(pod *v1.Pod) *v1.Pod {
		stored, err := create(pod)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pods.Delete(ctx, stored.Name, *metav1.NewDeleteOptions(0)) })
		return stored
	}
	update := func(pod *v1.Pod, label string, command ...string) (string, error) {
		pod.Labels = map[string]string{"example.com/step": label}
		pod.Spec.Containers[0].Command = command
		pod.ResourceVersion = ""
		stored, err := pods.Update(ctx, pod, metav1.UpdateOptions{})
		if err != nil {
			return "", err
		}
		return stored.Labels["example.com/step"] + " " + commands(stored), nil
	}
	changed := stored(windowsPod(using(display, "main", "app")))
	for step, command := range map[string][]string{"with": {"directx-visible", "--", "app"}, "without": {"app"}} {
		if found, err := update(changed, step, command...); err != nil || found != step+" main: directx-visible -- app" {
			t.Errorf("after an update %s prefix, the pod is %q: %v", step, found, err)
		}
	}
	// Pods from before visibility.require was switched on or off.
	for name, pod := range map[string]*v1.Pod{
		"main: directx-visible --require -- app": windowsPod(using(display, "main", "directx-visible", "--require", "--", "app")),
		"main: directx-visible -- app":           windowsPod(using(required, "main", "directx-visible", "--", "app")),
	} {
		if found, err := update(stored(pod), "switched", "app"); err != nil || found != "switched "+name {
			t.Errorf("after a switch, the pod is %q: %v", found, err)
		}
	}
	if found, err := update(changed, "other", "other"); !errors.IsInvalid(err) {
		t.Errorf("another command is not refused: %q %v", found, err)
	}

	// A pod from before the policy.
	earlier := windowsPod(using(display, "main", "app"))
	earlier.Labels = map[string]string{optOut: "disabled"}
	if found, err := update(stored(earlier), "earlier", "app"); err != nil || found != "earlier main: app" {
		t.Errorf("an earlier pod is %q: %v", found, err)
	}
}

// The pods of controllers are changed; what the controllers read is not.
func TestControllersCreatePodsWithDirectxVisible(t *testing.T) {
	t.Parallel()
	mustInject(t)
	ctx := context.Background()
	name := map[string]string{"app": "visible-controllers"}
	template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: name}, Spec: windowsPod(using(display, "main", "app")).Spec}
	object := metav1.ObjectMeta{Name: "visible-controllers"}
	deployment, err := api.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: object,
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: name}, Template: template}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template.Labels = map[string]string{"app": "visible-job"}
	template.Spec.RestartPolicy = v1.RestartPolicyNever
	if _, err := api.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: object,
		Spec: batchv1.JobSpec{Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	background := metav1.DeletePropagationBackground
	t.Cleanup(func() {
		_ = api.AppsV1().Deployments(namespace).Delete(ctx, object.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		_ = api.BatchV1().Jobs(namespace).Delete(ctx, object.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	})
	for _, app := range []string{"visible-controllers", "visible-job"} {
		eventually(t, "the pod of "+app, "main: directx-visible -- app", func() string {
			pods, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
			if err != nil || len(pods.Items) != 1 {
				return "none"
			}
			return commands(&pods.Items[0])
		})
	}
	if command := deployment.Spec.Template.Spec.Containers[0].Command; len(command) != 1 {
		t.Errorf("the Deployment has the command %q", command)
	}
}

// warnings are those of the API server to one client.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// Who creates a pod, or an object with the template of one, reads which containers have no command.
func TestContainersWithoutCommandAreReported(t *testing.T) {
	t.Parallel()
	mustInject(t)
	ctx := context.Background()
	config := rest.CopyConfig(administrator)
	received := &warnings{}
	config.WarningHandler = received
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	object := metav1.ObjectMeta{Name: "visible-warnings"}
	name := map[string]string{"app": object.Name}
	kinds := map[string]func(pod *v1.Pod) error{
		"pod": func(pod *v1.Pod) error {
			_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, dryRun)
			return err
		},
		"deployment": func(pod *v1.Pod) error {
			metadata := metav1.ObjectMeta{Labels: map[string]string{"app": object.Name, optOut: pod.Labels[optOut]}}
			_, err := client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: object, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: name}, Template: v1.PodTemplateSpec{ObjectMeta: metadata, Spec: pod.Spec}}}, dryRun)
			return err
		},
		"cron job": func(pod *v1.Pod) error {
			template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
			template.Spec.RestartPolicy = v1.RestartPolicyNever
			_, err := client.BatchV1().CronJobs(namespace).Create(ctx, &batchv1.CronJob{ObjectMeta: object, Spec: batchv1.CronJobSpec{
				Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}}, dryRun)
			return err
		},
	}
	const text = "directx-visible does not start these containers, so they can see all GPUs of the node: b, c. " +
		"Add the command and args that `crane config --platform windows/amd64 IMAGE | directx-visible command` prints for the image, " +
		"or set the label " + optOut + "=disabled of the pod"
	report := func(kind string, pod *v1.Pod) string {
		received.texts = nil
		if err := kinds[kind](pod); err != nil {
			t.Fatal(err)
		}
		return strings.Join(received.texts, "; ")
	}
	silent := windowsPod(using(display, "b"))
	silent.Labels = map[string]string{optOut: "disabled"}
	linux := windowsPod(using(display, "b"))
	linux.Spec.NodeSelector[v1.LabelOSStable] = "linux"
	without := func(affinity string, containers ...v1.Container) *v1.Pod {
		pod := windowsPod(containers...)
		pod.Spec.NodeSelector = nil
		if affinity != "" {
			terms := []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelOSStable, Operator: v1.NodeSelectorOpIn, Values: []string{affinity}}}}}
			pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}}
		}
		return pod
	}
	const unknown = "directx-visible does not start these containers, because the pod does not name its operating system: a. " +
		"Add the node selector kubernetes.io/os=windows, or kubernetes.io/os=linux for Linux nodes, or set the label " + optOut + "=disabled of the pod"
	exempt := without("", using(display, "a", "app"))
	exempt.Labels = silent.Labels
	for kind := range kinds {
		pod := windowsPod(using(display, "a", "app"), using(display, "b"), plain("d"))
		pod.Spec.InitContainers = []v1.Container{using(display, "c")}
		eventually(t, "the warning of a "+kind, true, func() bool { return strings.HasSuffix(report(kind, pod), text) })
		for name, pod := range map[string]*v1.Pod{"with commands": windowsPod(using(display, "a", "app")), "with the label": silent, "for Linux": linux,
			"for Linux by an affinity": without("linux", using(display, "a", "app")), "without system and with the label": exempt,
			"without system and devices": without("", plain("a", "app")), "without system and with a prefix": without("", using(display, "a", "directx-visible", "--", "app"))} {
			if found := report(kind, pod); found != "" {
				t.Errorf("a %s %s is reported: %s", kind, name, found)
			}
		}
		for name, pod := range map[string]*v1.Pod{"that names Windows by an affinity": without("windows", using(display, "a", "app"), plain("d")),
			"without system": without("", using(display, "a", "app"), plain("d"))} {
			if found := report(kind, pod); !strings.HasSuffix(found, unknown) {
				t.Errorf("a %s %s is reported as %q", kind, name, found)
			}
		}
	}
}

// The API server knows the types of everything that the policies read.
func TestPoliciesAreTyped(t *testing.T) {
	t.Parallel()
	mustInject(t)
	eventually(t, "the checked policy", "[]", func() string {
		policy, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(context.Background(), "visible-directx-device-plugin-visible.default", metav1.GetOptions{})
		if err != nil || policy.Status.TypeChecking == nil {
			return text(err)
		}
		return fmt.Sprint(policy.Status.TypeChecking.ExpressionWarnings)
	})
}
