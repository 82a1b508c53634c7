{{/* Where secrets are. Services get them as files below /etc/earshot/secrets, never as variables. */}}

{{- define "earshot.ownSecret" -}}
{{ include "earshot.fullname" . }}-secrets
{{- end }}

{{/* Content of the release's Secret, as JSON: inline values, and addresses of the evaluation's servers. */}}
{{- define "earshot.ownSecretData" -}}
{{- $data := dict }}
{{- $fullname := include "earshot.fullname" . }}
{{- if .Values.evaluation.enabled }}
{{- $password := required "evaluation.password is required: there is no default password" .Values.evaluation.password }}
{{- $_ := set $data "database-url" (printf "postgres://earshot:%s@%s-postgresql:5432/earshot?sslmode=disable" $password $fullname) }}
{{- $_ := set $data "bus-url" (printf "amqp://earshot:%s@%s-rabbitmq:5672/earshot" $password $fullname) }}
{{- $_ := set $data "password" $password }}
{{- else }}
{{- with .Values.database.url }}{{ $_ := set $data "database-url" . }}{{ end }}
{{- with .Values.rabbitmq.url }}{{ $_ := set $data "bus-url" . }}{{ end }}
{{- end }}
{{- with .Values.keys.encryptionKeys }}{{ $_ := set $data "encryption-keys" . }}{{ end }}
{{- toJson $data }}
{{- end }}

{{/*
The Secrets of a component, as JSON: a list of (name, secret, key, file). After the one of a server comes that with
the certificates it is known by, where there is one. What `earshot.secretFile` finds elsewhere needs no Secret.
*/}}
{{- define "earshot.secretSources" -}}
{{- $root := .root }}
{{- $own := include "earshot.ownSecretData" $root | fromJson }}
{{- $ownName := include "earshot.ownSecret" $root }}
{{- $sources := list }}
{{- range $kind := .kinds }}
{{- $given := get $root.Values (ternary "keys" $kind (eq $kind "encryption")) }}
{{- $override := dict }}
{{- if and $.component (hasKey $.component $kind) }}{{ $override = get $.component $kind }}{{ end }}
{{- $file := ternary "keys" "url" (eq $kind "encryption") }}
{{- $ownKey := get (dict "database" "database-url" "rabbitmq" "bus-url" "encryption" "encryption-keys") $kind }}
{{- $source := dict "name" $kind "file" $file }}
{{- if $override.existingSecret }}
{{- $_ := set $source "secret" $override.existingSecret }}
{{- $_ := set $source "key" (default $given.key $override.key) }}
{{- else if hasKey $own $ownKey }}
{{- $_ := set $source "secret" $ownName }}
{{- $_ := set $source "key" $ownKey }}
{{- else if not $given.file }}
{{- $value := ternary "keys" $kind (eq $kind "encryption") }}
{{- $_ := set $source "secret" (required (printf "%s.existingSecret is required" $value) $given.existingSecret) }}
{{- $_ := set $source "key" $given.key }}
{{- end }}
{{- if $source.secret }}
{{- $sources = append $sources $source }}
{{- end }}
{{- if include "earshot.hasCA" (dict "root" $root "kind" $kind) }}
{{- $ca := dict "name" (printf "%s-ca" $kind) "secret" $given.existingCASecret "key" $given.caKey "file" "ca.crt" }}
{{- $sources = append $sources $ca }}
{{- end }}
{{- end }}
{{- toJson (dict "items" $sources) }}
{{- end }}

{{/*
The file that a component reads a secret from: that of a mounted Secret, or else the one that the values name in a volume
of theirs. Takes (dict "root" $ "component" … "kind" "database").
*/}}
{{- define "earshot.secretFile" -}}
{{- $file := (get .root.Values (ternary "keys" .kind (eq .kind "encryption"))).file }}
{{- range (include "earshot.secretSources" (dict "root" .root "component" .component "kinds" (list .kind)) | fromJson).items }}
{{- if eq .name $.kind }}{{ $file = printf "/etc/earshot/secrets/%s/%s" .name .file }}{{ end }}
{{- end }}
{{- $file }}
{{- end }}

{{/* Whether a server, "database" or "rabbitmq", is verified by certificates that the values name. Not those of the evaluation. */}}
{{- define "earshot.hasCA" -}}
{{- if and (ne .kind "encryption") (not .root.Values.evaluation.enabled) }}
{{- if (get .root.Values .kind).existingCASecret }}yes{{ end }}
{{- end }}
{{- end }}

{{/* The kinds of secrets that a service needs, as JSON. Only two see the encryption keys. */}}
{{- define "earshot.secretKinds" -}}
{{- $kinds := list "database" "rabbitmq" }}
{{- if has . (list "api-gateway" "webhook-dispatcher") }}{{ $kinds = append $kinds "encryption" }}{{ end }}
{{- toJson (dict "items" $kinds) }}
{{- end }}

{{- define "earshot.secretVolumes" -}}
{{- range (include "earshot.secretSources" . | fromJson).items }}
- name: secret-{{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items:
      - key: {{ .key }}
        path: {{ .file }}
{{- end }}
{{- end }}

{{- define "earshot.secretMounts" -}}
{{- range (include "earshot.secretSources" . | fromJson).items }}
- name: secret-{{ .name }}
  mountPath: /etc/earshot/secrets/{{ .name }}
  readOnly: true
{{- end }}
{{- end }}
