{{/* The TOML file of a component, made of its `config`. */}}

{{/* A map as TOML: values first, then tables, then lists of tables. Takes (dict "path" "" "map" …). */}}
{{- define "earshot.toml" -}}
{{- range $key, $value := .map }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value) (include "earshot.isTables" $value)) }}
{{ include "earshot.tomlKey" $key }} = {{ toRawJson $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .map }}
{{- $path := include "earshot.tomlKey" $key }}
{{- if $.path }}{{ $path = printf "%s.%s" $.path $path }}{{ end }}
{{- if kindIs "map" $value }}

[{{ $path }}]
{{- include "earshot.toml" (dict "path" $path "map" $value) }}
{{- else if include "earshot.isTables" $value }}
{{- range $value }}

[[{{ $path }}]]
{{- include "earshot.toml" (dict "path" $path "map" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "earshot.isTables" -}}
{{- if kindIs "slice" . }}{{ if . }}{{ if kindIs "map" (first .) }}yes{{ end }}{{ end }}{{ end }}
{{- end }}

{{- define "earshot.tomlKey" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toRawJson . }}{{ end }}
{{- end }}

{{/* Fails if the configuration contains a secret, which ends in a ConfigMap. Renders nothing. */}}
{{- define "earshot.refuseSecrets" -}}
{{- range $key, $value := .map }}
{{- $path := printf "%s.%s" $.path $key }}
{{- if kindIs "map" $value }}
{{- include "earshot.refuseSecrets" (dict "path" $path "map" $value) }}
{{- else if include "earshot.isTables" $value }}
{{- range $value }}{{ include "earshot.refuseSecrets" (dict "path" $path "map" .) }}{{ end }}
{{- else if regexMatch "(^|_)(password|secret|token|api_key|private_key|encryption_keys|session)$" $key }}
{{- fail (printf "%s is a secret and would be readable in a ConfigMap: give it as %s_file, with the file from secretFiles" $path $key) }}
{{- else if regexMatch "^[a-z][a-z0-9+.-]*://[^/@:]*:[^/@]+@" (toString $value) }}
{{- fail (printf "%s holds a password and would be readable in a ConfigMap" $path) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Takes (dict "root" $ "name" "scanner" "component" …). */}}
{{- define "earshot.config" -}}
{{- $name := .name }}
{{- $component := .component }}
{{- include "earshot.refuseSecrets" (dict "path" (printf "components.%s.config" $name) "map" $component.config) }}
{{- $grace := sub (int $component.terminationGracePeriodSeconds) (add (int $component.preStopSleepSeconds) 5) }}
{{- if lt (int $grace) 1 }}
{{- fail (printf "components.%s.terminationGracePeriodSeconds must exceed preStopSleepSeconds by 6 at least" $name) }}
{{- end }}
{{- $config := dict
    "ops" (dict "listen" (printf "%s:9090" .root.Values.listenAddress) "grace_period" (printf "%ds" (int $grace)))
    "database" (dict "url_file" (include "earshot.secretFile" (dict "root" .root "component" .component "kind" "database")))
    "bus" (dict "url_file" (include "earshot.secretFile" (dict "root" .root "component" .component "kind" "rabbitmq"))) }}
{{- range $kind, $section := dict "database" "database" "rabbitmq" "bus" }}
{{- if include "earshot.hasCA" (dict "root" $.root "kind" $kind) }}
{{- $_ := set (get $config $section) "ca_certificates_file" (printf "/etc/earshot/secrets/%s-ca/ca.crt" $kind) }}
{{- end }}
{{- end }}
{{- if has "encryption" (include "earshot.secretKinds" $name | fromJson).items }}
{{- $_ := set $config "secrets" (dict "encryption_keys_file" (include "earshot.secretFile" (dict "root" .root "component" .component "kind" "encryption"))) }}
{{- end }}
{{- if eq $name "api-gateway" }}
{{- $_ := set $config "gateway" (dict "listen" (printf "%s:8080" .root.Values.listenAddress)) }}
{{- end }}
{{- include "earshot.overlay" (dict "base" $config "over" (deepCopy $component.config)) }}
{{- include "earshot.toml" (dict "path" "" "map" $config) | trim }}
{{- end }}
