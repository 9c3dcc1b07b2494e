{{/* Puts the default in place of each value that is missing, and prints the paths of the others that differ from it, one a line.
Helm removes a key with nothing after it together with its default, and `--reuse-values` keeps the values of an older chart.
Templates cannot read values.yaml, so defaults.yaml has its values. Every template begins with this one. */}}
{{- define "directx-device-plugin.withDefaults" -}}
{{- include "directx-device-plugin.removeNulls" .Values -}}
{{- include "directx-device-plugin.fill" (dict "values" .Values "defaults" (.Files.Get "defaults.yaml" | fromYaml) "prefix" "") -}}
{{- end -}}

{{/* Helm itself removes nulls only where there is a default. */}}
{{- define "directx-device-plugin.removeNulls" -}}
{{- if kindIs "map" . -}}
{{- range $key, $value := . -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $ $key -}}
{{- else -}}
{{- include "directx-device-plugin.removeNulls" $value -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" . -}}
{{- range . -}}
{{- include "directx-device-plugin.removeNulls" . -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The arguments are `values`, `defaults`, and the `prefix` of their paths. A key of labels and of resources that was removed
has no default: users remove a limit so. */}}
{{- define "directx-device-plugin.fill" -}}
{{- $values := .values -}}
{{- range $key, $default := .defaults -}}
{{- if not (hasKey $values $key) -}}
{{- $_ := set $values $key $default -}}
{{- end -}}
{{- $value := get $values $key -}}
{{- $path := print $.prefix $key -}}
{{- if and $default (kindIs "map" $default) (not (has $key (list "labels" "requests" "limits"))) -}}
{{- include "directx-device-plugin.fill" (dict "values" $value "defaults" $default "prefix" (print $path ".")) -}}
{{- else if ne (toJson $value) (toJson $default) -}}
{{- println $path -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of the chart in labels. */}}
{{- define "directx-device-plugin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the plugin's DaemonSet without pools. */}}
{{- define "directx-device-plugin.fullname" -}}
{{- $name := include "directx-device-plugin.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of a pool's DaemonSet. The argument has `root`, `pool` and, except for the plugin, `component`; the pool's name is
kept whole. */}}
{{- define "directx-device-plugin.daemonSetName" -}}
{{- $names := dict "directx-feature-discovery" "discoveryName" "directx-visible" "visibleName" "directx-device-plugin-test" "testName" -}}
{{- $fullname := include (printf "directx-device-plugin.%s" (get $names (.component | default "") | default "fullname")) .root -}}
{{- if .pool.name -}}
{{- printf "%s-%s" ($fullname | trunc (int (sub 62 (len .pool.name))) | trimSuffix "-") .pool.name -}}
{{- else -}}
{{- $fullname -}}
{{- end -}}
{{- end -}}

{{- define "directx-device-plugin.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* The argument has `root` and `name`, the name of a published image. A repository without `/` is in the registry of the plugin's
image. */}}
{{- define "directx-device-plugin.image" -}}
{{- $values := .root.Values -}}
{{- $name := .name -}}
{{- if $values.demonstration.enabled -}}
{{- $name = "directx-device-plugin-linux" -}}
{{- end -}}
{{- $image := get (dict "directx-device-plugin" $values.image "directx-device-plugin-linux" $values.demonstration.image "directx-visible" $values.visibility.image) $name -}}
{{- $repository := $image.repository -}}
{{- if not (contains "/" $repository) -}}
{{- $repository = regexReplaceAll "[^/]+$" $values.image.repository $repository -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default (include "directx-device-plugin.publishedTag" (dict "root" .root "name" $name)) $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The tag of an image, in a published chart with its digest. It is no default value, because `helm upgrade --reuse-values` keeps
the default values of the old chart. */}}
{{- define "directx-device-plugin.publishedTag" -}}
{{- $tag := .root.Chart.AppVersion -}}
{{- $name := .name -}}
{{- with .root.Chart.Annotations -}}
{{- range index . "artifacthub.io/images" | fromYamlArray -}}
{{- if and (eq .name $name) (contains "@" .image) -}}
{{- $tag = regexFind "[^:/]+@sha256:[0-9a-f]+$" .image -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $tag -}}
{{- end -}}

{{/* Labels that never change, because the selector of a DaemonSet cannot. */}}
{{- define "directx-device-plugin.selectorLabels" -}}
app.kubernetes.io/name: {{ .component | default (include "directx-device-plugin.name" .root) | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .pool.name }}
directx-device-plugin/pool: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The selector of the plugin's DaemonSet, with the labels of the values in place of those of the chart. */}}
{{- define "directx-device-plugin.pluginSelector" -}}
{{- $labels := include "directx-device-plugin.selectorLabels" . | fromYaml -}}
{{- with and (not .component) .root.Values.selectorLabels -}}
{{- $labels = merge (pick $labels "directx-device-plugin/pool") . -}}
{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* The labels of an object, with `labels` of the values for its kind. Those of the chart take precedence over those of the values. */}}
{{- define "directx-device-plugin.labels" -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := dict "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- if not .root.Values.manifest -}}
{{- $own = merge $own (dict "helm.sh/chart" $chart "app.kubernetes.io/managed-by" .root.Release.Service) -}}
{{- end -}}
{{- merge $own (include "directx-device-plugin.selectorLabels" . | fromYaml) (include "directx-device-plugin.pluginSelector" . | fromYaml) (.labels | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{- define "directx-device-plugin.podLabels" -}}
{{- merge (include "directx-device-plugin.selectorLabels" . | fromYaml) (include "directx-device-plugin.pluginSelector" . | fromYaml) (.root.Values.podLabels | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/* The service account of the feature discovery. */}}
{{- define "directx-device-plugin.accountName" -}}
{{- .Values.serviceAccount.name | default (include "directx-device-plugin.discoveryName" .) -}}
{{- end -}}

{{/* The expression of a policy for the account with this name. Tools that change the rendered objects, such as kustomize, do not
change names in expressions, so the account may be in any namespace. Its name may have a prefix and a suffix if it contains
`directx`; a name such as `gpu` would also match the accounts of other programs. */}}
{{- define "directx-device-plugin.isAccount" -}}
{{- $name := replace "." "[.]" . -}}
{{- if contains "directx" . -}}
{{- $name = printf "[^:]*%s[^:]*" $name -}}
{{- end -}}
request.userInfo.username.matches('^system:serviceaccount:[^:]+:{{ $name }}$')
{{- end -}}

{{- define "directx-device-plugin.visibleName" -}}
{{- printf "%s-visible" (include "directx-device-plugin.fullname" . | trunc 53 | trimSuffix "-") -}}
{{- end -}}

{{/* The rules in the text of a configuration, with keys in lower case, as a list in JSON. The keys are case-insensitive. */}}
{{- define "directx-device-plugin.rules" -}}
{{- $rules := list -}}
{{- range $key, $value := fromYaml . -}}
{{- if eq (lower $key) "resources" -}}
{{- range $rule := $value -}}
{{- $keys := dict -}}
{{- range $key, $value := $rule -}}
{{- $_ := set $keys (lower $key) $value -}}
{{- end -}}
{{- $rules = append $rules $keys -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $rules | toJson -}}
{{- end -}}

{{/* The names of the resources whose containers get directx-visible, as a list in JSON. */}}
{{- define "directx-device-plugin.visibleResources" -}}
{{- $names := .Values.visibility.resources -}}
{{- if not $names -}}
{{- $defaults := dict "wddm" "directx.microsoft.com/display" "mcdm" "directx.microsoft.com/compute" "legacy" "microsoft.com/directx" -}}
{{- range .Values.pools | default (list dict) -}}
{{- range .driverModels | default $.Values.driverModels -}}
{{- $names = append $names (get $defaults .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.env -}}
{{- if hasSuffix "_DEVICE_PLUGIN_RESOURCE_NAME" .name -}}
{{- $names = append $names .value -}}
{{- end -}}
{{- end -}}
{{- range $text := .Values.config.map -}}
{{- range $key, $value := fromYaml $text -}}
{{- if eq (lower $key) "resourcename" -}}
{{- $names = append $names $value -}}
{{- end -}}
{{- end -}}
{{- /* A rule may switch directx-visible off. */}}
{{- range $rule := include "directx-device-plugin.rules" $text | fromJsonArray -}}
{{- if not (has (toString $rule.visibility | lower) (list "false" "off")) -}}
{{- $names = append $names $rule.name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* The names that `renameShared` results in. */}}
{{- range $names -}}
{{- $names = append $names (printf "%s.shared" .) -}}
{{- end -}}
{{- end -}}
{{- $names | uniq | toJson -}}
{{- end -}}

{{/* Fails if Helm renders for an older Kubernetes. Without a cluster, it renders for the one that it was built with. The arguments are
`root`, `value`, the first `version`, and the `alternative` to an update. */}}
{{- define "directx-device-plugin.needKubernetes" -}}
{{- $version := .root.Capabilities.KubeVersion.Version -}}
{{- if semverCompare (printf "<%s.0-0" .version) $version -}}
{{- fail (printf "%s needs Kubernetes %s or newer, and Helm renders the chart for %s: with `helm template`, set --kube-version to the version of your cluster; if the cluster has this version, update it, or %s" .value .version $version .alternative) -}}
{{- end -}}
{{- end -}}

{{/* The system of the nodes. */}}
{{- define "directx-device-plugin.os" -}}
{{- ternary "linux" "windows" .Values.demonstration.enabled -}}
{{- end -}}

{{/* The path of a program in its container. The argument has `root` and `name`. */}}
{{- define "directx-device-plugin.program" -}}
{{- ternary (printf "/%s" .name) (printf "%%CONTAINER_SANDBOX_MOUNT_POINT%%\\%s.exe" .name) .root.Values.demonstration.enabled -}}
{{- end -}}

{{/* The ConfigMap with the made-up devices of a demonstration. */}}
{{- define "directx-device-plugin.inventoryName" -}}
{{- printf "%s-inventory" (include "directx-device-plugin.fullname" . | trunc 53 | trimSuffix "-") -}}
{{- end -}}

{{/* The inventory of a demonstration. The location path and the load of each GPU differ, to tell them apart. */}}
{{- define "directx-device-plugin.inventory" -}}
{{- $known := dict -}}
{{- $names := list -}}
{{- range .Files.Get "gpus.yaml" | fromYamlArray -}}
{{- $_ := set $known (lower .name) . -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- with .Values.demonstration.inventory -}}
{{- . -}}
{{- else -}}
schema: directx-inventory/v1
host: {product: Windows Server 2022, build: 10.0.20348.1547, hcsSchemas: ['2.5']}
adapters:
{{- range $index, $name := .Values.demonstration.gpus }}
{{- $gpu := get $known (lower $name) }}
{{- if not $gpu }}
{{- fail (printf "demonstration.gpus[%d] is %s, which is not known: use one of %s, or demonstration.inventory" $index $name (join ", " $names)) }}
{{- end }}
{{- $number := add 1 $index }}
{{- $percent := mod (mul 30 $number) 100 }}
- luid: {{ $number }}
  driverDescription: {{ $gpu.description }}
  attributes: [d3d11-graphics, d3d12-graphics, d3d12-core-compute]
  hardware: true
  hardwareId: {vendor: {{ $gpu.vendor }}, device: {{ $gpu.device }}}
  dedicatedMemoryMiB: {{ $gpu.memoryMiB }}
  load: {utilizationPercent: {{ $percent }}, usedMemoryMiB: {{ div (mul $gpu.memoryMiB $percent) 100 }}}
  pnp: {id: 'PCI\VEN_{{ trimPrefix "0x" $gpu.vendor }}&DEV_{{ trimPrefix "0x" $gpu.device }}\{{ $number }}', locationPaths: ['PCIROOT({{ $number }})#PCI(0000)'], problemCode: 0}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "directx-device-plugin.testName" -}}
{{- printf "%s-test" (include "directx-device-plugin.fullname" . | trunc 58 | trimSuffix "-") -}}
{{- end -}}

{{- define "directx-device-plugin.cleanupName" -}}
{{- printf "%s-cleanup" (include "directx-device-plugin.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{- define "directx-device-plugin.discoveryName" -}}
{{- printf "%s-discovery" (include "directx-device-plugin.fullname" . | trunc 53 | trimSuffix "-") -}}
{{- end -}}

{{/* The names of the objects that belong to no namespace. */}}
{{- define "directx-device-plugin.clusterName" -}}
{{- printf "%s.%s" (include "directx-device-plugin.discoveryName" .) (include "directx-device-plugin.namespace" .) -}}
{{- end -}}

{{- define "directx-device-plugin.configMapName" -}}
{{- default (include "directx-device-plugin.fullname" .) .Values.config.name -}}
{{- end -}}

{{/* The configuration files that the chart creates. */}}
{{- define "directx-device-plugin.configMap" -}}
{{- $map := .Values.config.map -}}
{{- if gt (int .Values.sharing.replicas) 1 -}}
{{- if or $map .Values.config.name -}}
{{- fail "sharing.replicas and config cannot be combined: write `multitenancy` into the configuration" -}}
{{- end -}}
{{- $map = dict "sharing" (printf "multitenancy: %d\n" (int .Values.sharing.replicas)) -}}
{{- end -}}
{{- toYaml $map -}}
{{- end -}}

{{/* The name of a pool's configuration, or nothing. The argument has `root`, `pool` and `where`. */}}
{{- define "directx-device-plugin.config" -}}
{{- $config := .root.Values.config -}}
{{- $map := include "directx-device-plugin.configMap" .root | fromYaml -}}
{{- $name := default $config.default .pool.config -}}
{{- $known := keys $map | sortAlpha -}}
{{- if and (not $name) (eq (len $known) 1) -}}
{{- $name = first $known -}}
{{- end -}}
{{- if and (not $name) (or $config.name $known) -}}
{{- $own := ternary "" "its config or " (eq .where "config.default") -}}
{{- fail (printf "%s selects no configuration: set %sconfig.default%s" .where $own (ternary "" (printf " to one of: %s" (join ", " $known)) (empty $known))) -}}
{{- end -}}
{{- if and $name (or $known (not $config.name)) (not (hasKey $map $name)) -}}
{{- fail (printf "%s selects the configuration %q, which config.map does not have%s" .where $name (ternary "" (printf "; it has: %s" (join ", " $known)) (empty $known))) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* The environment of the plugin, and `more`. A variable of the values replaces one of the chart. */}}
{{- define "directx-device-plugin.env" -}}
{{- $names := list }}
{{- range .root.Values.env }}
{{- $names = append $names .name }}
{{- end }}
env:
{{- range $name, $field := dict "NODE_NAME" "spec.nodeName" "POD_UID" "metadata.uid" }}
{{- if not (has $name $names) }}
- name: {{ $name }}
  valueFrom:
    fieldRef:
      fieldPath: {{ $field }}
{{- end }}
{{- end }}
{{- if and .root.Values.metrics.enabled (eq .root.Values.metrics.address "$(NODE_IP)") (not (has "NODE_IP" $names)) }}
- name: NODE_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}
{{- range $name, $value := .more }}
{{- if not (has $name $names) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- with .root.Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Whether metrics.address is only for programs on the node. */}}
{{- define "directx-device-plugin.isLoopback" -}}
{{- if regexMatch "^(127[.]|\\[(0*:)*:?0*1\\]$|\\[::ffff:(127[.]|7f))" (lower .Values.metrics.address) -}}
true
{{- end -}}
{{- end -}}

{{/* The annotations of pods that serve metrics at `port`. A Prometheus that finds pods by their annotations and by a monitor would
scrape them twice. The argument has `root` and `port`. */}}
{{- define "directx-device-plugin.podAnnotations" -}}
{{- $values := .root.Values -}}
{{- $annotations := dict -}}
{{- $isMonitored := or $values.podMonitor.enabled $values.serviceMonitor.enabled -}}
{{- if and $values.metrics.enabled (not $isMonitored) (not (include "directx-device-plugin.isLoopback" .root)) -}}
{{- $annotations = dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .port) "prometheus.io/path" "/metrics" -}}
{{- end -}}
{{- merge dict ($values.podAnnotations | default dict) $annotations | toYaml -}}
{{- end -}}

{{/* The value of --listen without the port. An IPv6 address needs brackets. */}}
{{- define "directx-device-plugin.metricsAddress" -}}
{{- $address := .Values.metrics.address -}}
{{- ternary "[$(NODE_IP)]" $address (eq $address "$(NODE_IP)") -}}
{{- end -}}

{{/* The argument of each program that uses the plugin's sockets, if their directory is not the default one. In Linux containers it is,
wherever the kubelet has it. */}}
{{- define "directx-device-plugin.directoryArgument" -}}
{{- if and .root.Values.devicePluginDir (not .root.Values.demonstration.enabled) -}}
{{- printf "--device-plugin-dir=%s" .root.Values.devicePluginDir -}}
{{- end -}}
{{- end -}}

{{/* The labels of the nodes of a pool. */}}
{{- define "directx-device-plugin.nodeSelector" -}}
{{- $selector := dict "kubernetes.io/os" (include "directx-device-plugin.os" .root) "kubernetes.io/arch" "amd64" -}}
{{- if .root.Values.demonstration.enabled -}}
{{- $_ := set $selector "directx.microsoft.com/demonstration" "true" -}}
{{- end -}}
{{- merge $selector (.pool.nodeSelector | default dict) (.root.Values.nodeSelector | default dict) | toYaml -}}
{{- end -}}

{{/* What the affinity of the values says about the nodes of a pool, as a list. */}}
{{- define "directx-device-plugin.nodeTerms" -}}
{{- $affinity := ternary .pool.affinity .root.Values.affinity (hasKey .pool "affinity") | default dict -}}
{{- (($affinity.nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution).nodeSelectorTerms | default list | toYaml -}}
{{- end -}}

{{/* The affinity of the pods of a pool. That of a fallback pool also excludes the nodes of the other pools: a node is outside a
pool if one of the pool's labels differs, so each term becomes one term for each label. */}}
{{- define "directx-device-plugin.affinity" -}}
{{- $affinity := ternary .pool.affinity .root.Values.affinity (hasKey .pool "affinity") | default dict -}}
{{- $terms := (($affinity.nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution).nodeSelectorTerms | default (list dict) -}}
{{- $excludes := false -}}
{{- if .pool.fallback -}}
{{- range $other := .root.Values.pools -}}
{{- if not $other.fallback -}}
{{- $excludes = true -}}
{{- $outside := list -}}
{{- range $term := $terms -}}
{{- range $label, $value := omit $other.nodeSelector "kubernetes.io/os" "kubernetes.io/arch" -}}
{{- $differs := dict "key" $label "operator" "NotIn" "values" (list $value) -}}
{{- $outside = append $outside (merge (dict "matchExpressions" (append ($term.matchExpressions | default list) $differs)) $term) -}}
{{- end -}}
{{- end -}}
{{- $terms = $outside -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* A term without expressions selects no node. */}}
{{- if $excludes -}}
{{- $affinity = merge (dict "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms))) $affinity -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{/* The update strategy of every DaemonSet. */}}
{{- define "directx-device-plugin.updateStrategy" -}}
{{- $strategy := .Values.updateStrategy -}}
{{- if or (ne $strategy.type "RollingUpdate") (not $strategy.rollingUpdate) -}}
{{- $strategy = dict "type" $strategy.type -}}
{{- end -}}
{{- toYaml $strategy -}}
{{- end -}}

{{/* What all pods have in common. */}}
{{- define "directx-device-plugin.pod" -}}
{{- $isLinux := .root.Values.demonstration.enabled -}}
os:
  name: {{ include "directx-device-plugin.os" .root }}
nodeSelector:
  {{- include "directx-device-plugin.nodeSelector" . | nindent 2 }}
{{- with include "directx-device-plugin.affinity" . | fromYaml }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with ternary .pool.tolerations .root.Values.tolerations (hasKey .pool "tolerations") }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not $isLinux }}
hostNetwork: true
securityContext:
  windowsOptions:
    hostProcess: true
    runAsUserName: "NT AUTHORITY\\SYSTEM"
{{- else }}
# metrics.address and the probes of the feature discovery use addresses of the node.
hostNetwork: {{ or .root.Values.metrics.enabled (eq (.component | default "") "directx-feature-discovery") }}
{{- end }}
{{- if or .config $isLinux }}
volumes:
{{- end }}
{{- if $isLinux }}
# Without types, so that the pod starts on every node.
{{- $folder := .root.Values.devicePluginDir | default "/var/lib/kubelet/device-plugins" }}
- name: device-plugins
  hostPath:
    path: {{ $folder }}
{{- if not .component }}
- name: pod-resources
  hostPath:
    path: {{ printf "%s/../pod-resources" $folder | clean }}
- name: inventory
  configMap:
    name: {{ include "directx-device-plugin.inventoryName" .root | quote }}
{{- end }}
{{- end }}
{{- if .config }}
- name: config
  configMap:
    name: {{ include "directx-device-plugin.configMapName" .root | quote }}
    items:
    - key: {{ .config | quote }}
      path: config.yaml
{{- end }}
{{- end -}}

{{/* The rights of a Linux container. */}}
{{- define "directx-device-plugin.withoutRights" -}}
# root, because the kubelet's directory and its sockets belong to root. Their owner needs no capability.
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
  runAsUser: 0
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{/* The volumes of the plugin. That of the configuration as a whole: the kubelet does not update a file that is mounted with
subPath. */}}
{{- define "directx-device-plugin.volumeMounts" -}}
{{- if or .config .root.Values.demonstration.enabled }}
volumeMounts:
{{- end }}
{{- if .root.Values.demonstration.enabled }}
- name: device-plugins
  mountPath: /var/lib/kubelet/device-plugins
  readOnly: false
{{- if not .component }}
- name: pod-resources
  mountPath: /var/lib/kubelet/pod-resources
  readOnly: true
- name: inventory
  mountPath: /etc/directx-inventory
  readOnly: true
{{- end }}
{{- end }}
{{- if .config }}
- name: config
  mountPath: /etc/directx-device-plugins
  readOnly: true
{{- end }}
{{- end -}}
