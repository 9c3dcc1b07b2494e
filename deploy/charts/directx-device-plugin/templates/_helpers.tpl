{{/* The name of the chart in labels. */}}
{{- define "directx-device-plugin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the DaemonSet without pools. */}}
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

{{/* The name of a pool's DaemonSet. The argument has `root` and `pool`; the pool's name is kept whole. */}}
{{- define "directx-device-plugin.daemonSetName" -}}
{{- $fullname := include "directx-device-plugin.fullname" .root -}}
{{- if .pool.name -}}
{{- printf "%s-%s" ($fullname | trunc (int (sub 62 (len .pool.name))) | trimSuffix "-") .pool.name -}}
{{- else -}}
{{- $fullname -}}
{{- end -}}
{{- end -}}

{{- define "directx-device-plugin.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "directx-device-plugin.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change, because the selector of a DaemonSet cannot. */}}
{{- define "directx-device-plugin.selectorLabels" -}}
app.kubernetes.io/name: {{ include "directx-device-plugin.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .pool.name }}
directx-device-plugin/pool: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "directx-device-plugin.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "directx-device-plugin.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end -}}

{{/* The service account of the feature discovery, and its role for Events in the namespace default. */}}
{{- define "directx-device-plugin.accountName" -}}
{{- printf "%s-discovery" (include "directx-device-plugin.fullname" . | trunc 53 | trimSuffix "-") -}}
{{- end -}}

{{/* The names of the objects that belong to no namespace, and of those in the namespace default. */}}
{{- define "directx-device-plugin.clusterName" -}}
{{- printf "%s.%s" (include "directx-device-plugin.accountName" .) (include "directx-device-plugin.namespace" .) -}}
{{- end -}}

{{- define "directx-device-plugin.configMapName" -}}
{{- default (include "directx-device-plugin.fullname" .) .Values.config.name -}}
{{- end -}}

{{/* The name of a pool's configuration, or nothing. The argument has `root`, `pool` and `where`. */}}
{{- define "directx-device-plugin.config" -}}
{{- $config := .root.Values.config -}}
{{- $name := default $config.default .pool.config -}}
{{- $known := keys $config.map | sortAlpha -}}
{{- if and $config.name $config.map -}}
{{- fail "config.name and config.map cannot be combined: set config.name for an existing ConfigMap, or config.map for one of this chart" -}}
{{- end -}}
{{- if and (not $name) (eq (len $known) 1) -}}
{{- $name = first $known -}}
{{- end -}}
{{- if and (not $name) (or $config.name $known $config.byNodeLabel) -}}
{{- fail (printf "%s selects no configuration: set config.default%s" .where (ternary "" (printf " to one of: %s" (join ", " $known)) (empty $known))) -}}
{{- end -}}
{{- if and $name (not $config.name) (not (hasKey $config.map $name)) -}}
{{- fail (printf "%s selects the configuration %q, which config.map does not have%s" .where $name (ternary "" (printf "; it has: %s" (join ", " $known)) (empty $known))) -}}
{{- end -}}
{{- if $config.byNodeLabel -}}
{{- if not .root.Values.featureDiscovery.enabled -}}
{{- fail "config.byNodeLabel needs featureDiscovery.enabled: its container reads the label" -}}
{{- end -}}
{{- range ternary $known (list $name) (empty $config.name) -}}
{{- if or (gt (len .) 63) (not (regexMatch "^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$" .)) -}}
{{- fail (printf "config.byNodeLabel: %q cannot be the value of a label: it must have at most 63 characters, and start and end with a letter or digit" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* The options for a configuration, which both containers of a pod have. The argument has `root` and `config`, the name or
nothing. A selection is a file of the host, so that it outlives the pods: a new pod starts with it, also while the API
server is away. */}}
{{- define "directx-device-plugin.configArguments" -}}
{{- if and .config .root.Values.config.byNodeLabel -}}
- '--config-directory=%CONTAINER_SANDBOX_MOUNT_POINT%\etc\directx-device-plugins'
- '--config-default={{ .config }}'
- '--config-selection=C:\var\lib\directx-device-plugin\config-selection'
{{- else if .config -}}
- '--config=%CONTAINER_SANDBOX_MOUNT_POINT%\etc\directx-device-plugins\config.yaml'
{{- end -}}
{{- end -}}
