{{/* The name of everything in a release: its own, with the chart's if it does not say so. */}}
{{- define "rota.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The service that gives nodes their names. */}}
{{- define "rota.nodes" -}}
{{ include "rota.name" . }}-nodes
{{- end -}}

{{- define "rota.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rota.labels" -}}
{{ include "rota.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The secret with the key. */}}
{{- define "rota.secret" -}}
{{- if and .Values.key.existingSecret .Values.key.value -}}
{{- fail "key.existingSecret and key.value exclude each other" -}}
{{- else if .Values.key.existingSecret -}}
{{- .Values.key.existingSecret -}}
{{- else if .Values.key.value -}}
{{- include "rota.name" . }}-key
{{- else -}}
{{- fail "a cluster needs a key: `rota key new cluster.key`, then --set-file key.value=cluster.key, or key.existingSecret" -}}
{{- end -}}
{{- end -}}

{{/* Whether the engine votes. */}}
{{- define "rota.votes" -}}
{{- if or (eq .Values.engine "ring-paxos") (eq .Values.engine "u-ring-paxos") -}}true{{- end -}}
{{- end -}}

{{/* The configuration of all nodes. */}}
{{- define "rota.config" -}}
cluster = {{ int64 .Values.cluster }}
key_file = "/etc/rota-key/cluster.key"
engine = {{ .Values.engine | quote }}
# Pod networks seldom carry multicast.
transport = "unicast"
timing = {{ .Values.timing | quote }}
{{- if .Values.persistence.enabled }}
state_dir = "/var/lib/rota"
{{- end }}
{{- with .Values.settings }}
{{ . | trim }}
{{- end }}
{{- if include "rota.votes" . }}

[paxos]
storage = {{ ternary "sync" "memory" .Values.persistence.enabled | quote }}
{{- end }}
{{- $name := include "rota.name" . }}
{{- $domain := printf "%s.%s.svc.%s" (include "rota.nodes" .) .Release.Namespace .Values.clusterDomain }}
{{- range $ordinal := until (int .Values.replicas) }}

[[node]]
id = {{ add1 $ordinal }}
name = "n{{ add1 $ordinal }}"
address = "{{ $name }}-{{ $ordinal }}.{{ $domain }}"
data_port = {{ int $.Values.ports.data }}
token_port = {{ int $.Values.ports.token }}
{{- end }}

[daemon]
socket = "/run/rota/rota.sock"
admin = "/run/rota/admin.sock"
metrics = "0.0.0.0:{{ int .Values.ports.metrics }}"
# Other pods can reach it: a network policy may say which.
metrics_insecure = true
{{- with .Values.daemonSettings }}
{{ . | trim }}
{{- end }}
{{- if .Values.tls.secret }}

[daemon.tls]
listen = ["0.0.0.0:{{ int .Values.ports.clients }}"]
certificate = "/etc/rota-tls/tls.crt"
key = "/etc/rota-tls/tls.key"
client_ca = "/etc/rota-tls/ca.crt"
{{- end }}
{{- end -}}
