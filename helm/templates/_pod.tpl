{{/* Parts that Deployments, the migrations Job and test pods share. */}}

{{- define "earshot.telemetryEnv" -}}
{{- with .Values.telemetry }}
{{- if .otlpEndpoint }}
- name: KUBE_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: KUBE_POD
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: KUBE_NODE
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .otlpEndpoint | quote }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name=$(KUBE_NAMESPACE),k8s.pod.name=$(KUBE_POD),k8s.node.name=$(KUBE_NODE)
{{- with .sampler }}
- name: OTEL_TRACES_SAMPLER
  value: {{ . | quote }}
{{- end }}
{{- with .samplerArg }}
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What a component reads: its file and its secrets. Takes (dict "root" $ "name" … "component" …). */}}
{{- define "earshot.inputMounts" -}}
- name: config
  mountPath: /etc/earshot/config
  readOnly: true
{{- include "earshot.secretMounts" (dict "root" .root "component" .component "kinds" (include "earshot.secretKinds" .name | fromJson).items) }}
{{- range $name, $secret := .component.secretFiles }}
{{- if $secret }}
- name: files-{{ $name }}
  mountPath: /etc/earshot/secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}
{{- with .component.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "earshot.inputVolumes" -}}
- name: config
  configMap:
    name: {{ include "earshot.fullname" .root }}-{{ .name }}
{{- include "earshot.secretVolumes" (dict "root" .root "component" .component "kinds" (include "earshot.secretKinds" .name | fromJson).items) }}
{{- range $name, $secret := .component.secretFiles }}
{{- if $secret }}
- name: files-{{ $name }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- with .component.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "earshot.env" -}}
{{- include "earshot.telemetryEnv" .root }}
{{- with .component.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "earshot.spread" -}}
{{- $selector := dict "matchLabels" (include "earshot.selector" (dict "root" .root "component" .name) | fromYaml) }}
{{- $given := .component.topologySpreadConstraints }}
{{- if not $given }}
{{- $given = list }}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
{{- $given = append $given (dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway") }}
{{- end }}
{{- end }}
topologySpreadConstraints:
{{- range $given }}
  - {{- toYaml (merge (dict) . (dict "labelSelector" $selector)) | nindent 4 }}
{{- end }}
{{- end }}
