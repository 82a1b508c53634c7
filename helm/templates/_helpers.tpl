{{/* Names, labels, images. */}}

{{- define "earshot.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/*
The release and the chart, 38 characters at most, so that the longest suffix still fits into a label. What is cut
is distinguished by a hash.
*/}}
{{- define "earshot.fullname" -}}
{{- $name := include "earshot.name" . }}
{{- $full := .Values.fullnameOverride }}
{{- if not $full }}
{{- $full = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- end }}
{{- if gt (len $full) 38 }}
{{- $full = printf "%s-%s" ($full | trunc 31 | trimSuffix "-") (sha256sum $full | trunc 6) }}
{{- end }}
{{- $full }}
{{- end }}

{{- define "earshot.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* What selects pods; never changes. Takes (dict "root" $ "component" "scanner"). */}}
{{- define "earshot.selector" -}}
app.kubernetes.io/name: {{ include "earshot.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "earshot.labels" -}}
{{ include "earshot.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: earshot
helm.sh/chart: {{ include "earshot.chart" .root }}
{{- end }}

{{- define "earshot.image" -}}
{{- $image := .Values.image }}
{{- $name := $image.repository }}
{{- with .Values.global.imageRegistry }}
{{- $name = printf "%s/%s" (trimSuffix "/" .) $name }}
{{- end }}
{{- if $image.digest }}
{{- printf "%s@%s" $name $image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{- define "earshot.pullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.image.pullSecrets | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "earshot.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- with .Values.podIds }}
  {{- range $name := list "runAsUser" "runAsGroup" "fsGroup" }}
  {{- with index $.Values.podIds $name }}
  {{ $name }}: {{ int64 . }}
  {{- end }}
  {{- end }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "earshot.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Writes .over into .base, map by map; what is no map replaces. Renders nothing. */}}
{{- define "earshot.overlay" -}}
{{- range $key, $value := .over }}
{{- if and (kindIs "map" $value) (kindIs "map" (get $.base $key)) }}
{{- include "earshot.overlay" (dict "base" (get $.base $key) "over" $value) }}
{{- else }}
{{- $_ := set $.base $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* The components that are on, each with `defaults` below its own values, as JSON. */}}
{{- define "earshot.components" -}}
{{- $all := dict }}
{{- range $name, $own := .Values.components }}
{{- $component := deepCopy $.Values.defaults }}
{{- include "earshot.overlay" (dict "base" $component "over" (default dict $own)) }}
{{- if $component.enabled }}
{{- $_ := set $all $name $component }}
{{- end }}
{{- end }}
{{- toJson $all }}
{{- end }}

{{- define "earshot.serviceAccount" -}}
{{- if .component.serviceAccount.create -}}
{{ include "earshot.fullname" .root }}-{{ .name }}
{{- else -}}
{{ required (printf "components.%s.serviceAccount.name is required where none is created" .name) .component.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The number of pods to begin with. */}}
{{- define "earshot.minReplicas" -}}
{{- if eq .autoscaling.type "none" }}{{ int .replicas }}{{ else }}{{ int .autoscaling.minReplicas }}{{ end }}
{{- end }}
