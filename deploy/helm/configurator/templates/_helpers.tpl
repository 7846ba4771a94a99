{{- define "configurator.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "configurator.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "configurator.name" .) }}
{{- end }}

{{- define "configurator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "configurator.labels" -}}
{{ include "configurator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The settings file: what the chart decides, over what the values say. Tables come last, as TOML wants it. */ -}}
{{- define "configurator.settings" -}}
{{- $etcd := deepCopy (.Values.settings.etcd | default dict) }}
{{- if .Values.etcd.endpoints }}
{{- $_ := set $etcd "endpoints" .Values.etcd.endpoints }}
{{- $_ := set $etcd "prefix" .Values.etcd.prefix }}
{{- if .Values.etcd.tlsSecret }}
{{- $_ := set $etcd "ca" "/etcd/ca.crt" }}
{{- $_ := set $etcd "cert" "/etcd/tls.crt" }}
{{- $_ := set $etcd "key" "/etcd/tls.key" }}
{{- end }}
{{- end }}
{{- $settings := deepCopy .Values.settings }}
{{- $_ := set $settings "in_cluster" true }}
{{- $_ := set $settings "metrics_listen" (printf "0.0.0.0:%d" (int .Values.metrics.port)) }}
{{- $_ := set $settings "modules" (list "/modules") }}
{{- $_ := set $settings "module_cache" "/cache/modules" }}
{{- $_ := set $settings "module_copies" "/cache/copies" }}
{{- if not (hasKey $settings "log_format") }}
{{- $_ := set $settings "log_format" "json" }}
{{- end }}
{{- if $etcd }}
{{- $_ := set $settings "etcd" $etcd }}
{{- end }}
{{- if .Values.shards }}
{{- if not $etcd }}
{{- fail "replicas share objects by a config store in common: set etcd.endpoints, or replicas: 1 and shards: 0" }}
{{- end }}
{{- if not $settings.vault }}
{{- fail "replicas need one secret store: without it each generates secrets of its own and rejects the states that the others have sealed: set settings.vault, or replicas: 1 and shards: 0" }}
{{- end }}
{{- $sharding := deepCopy (.Values.settings.sharding | default dict) }}
{{- $_ := set $sharding "shards" .Values.shards }}
{{- $_ := set $sharding "name" (include "configurator.name" .) }}
{{- $_ := set $settings "sharding" $sharding }}
{{- else if gt (int .Values.replicas) 1 }}
{{- fail "more than one replica would do everything more than once: set shards, or replicas: 1" }}
{{- end }}
{{- /* To Helm every number of a values file is a fraction; no setting is one. */}}
{{- regexReplaceAll "(?m)^(\\s*\\w+ = -?[0-9]+)\\.0$" (toToml $settings | trim) "${1}" }}
{{- end }}
