{{/* Names, labels and the parts that several workloads share. */}}

{{- define "headway.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Takes a dict of root and component. */}}
{{- define "headway.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "headway.labels" -}}
{{ include "headway.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "headway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "headway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Environment of gateway and dispatcher. */}}
{{- define "headway.env" -}}
- name: HEADWAY_DATA_DIR
  value: /data
- name: HEADWAY_POLICY
  value: /etc/headway/policy.yaml
- name: HEADWAY_REDIS_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redis.existingSecret | default (printf "%s-redis" (include "headway.fullname" .)) }}
      key: redis-url
- name: HEADWAY_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.keys.existingSecret | default (printf "%s-key" (include "headway.fullname" .)) }}
      key: api-key
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "headway.mounts" -}}
- {name: data, mountPath: /data}
- {name: policy, mountPath: /etc/headway, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "headway.volumes" -}}
- name: data
  {{- if .Values.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim | default (printf "%s-data" (include "headway.fullname" .)) }}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: policy
  configMap:
    name: {{ include "headway.fullname" . }}-policy
- name: tmp
  emptyDir: {}
{{- end -}}

{{/* A volume that one node alone can mount must never be wanted by an old and a new pod at once. */}}
{{- define "headway.strategy" -}}
{{- if and .Values.persistence.enabled (eq .Values.persistence.accessMode "ReadWriteOnce") -}}
type: Recreate
{{- else -}}
type: RollingUpdate
rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
{{- end -}}
{{- end -}}

{{- define "headway.scheduling" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Refuses what cannot work. */}}
{{- define "headway.check" -}}
{{- $once := eq .Values.persistence.accessMode "ReadWriteOnce" -}}
{{- if and .Values.persistence.enabled $once (gt (int .Values.gateway.replicas) 1) -}}
{{- fail "gateway.replicas is over 1, but persistence.accessMode is ReadWriteOnce: use ReadWriteMany" -}}
{{- end -}}
{{- if and .Values.persistence.enabled $once .Values.dispatcher.enabled (gt (int .Values.dispatcher.replicas) 1) -}}
{{- fail "dispatcher.replicas is over 1, but persistence.accessMode is ReadWriteOnce: use ReadWriteMany" -}}
{{- end -}}
{{- if and .Values.dispatcher.enabled (not .Values.persistence.enabled) -}}
{{- fail "gateway and dispatcher share files: turn persistence.enabled on, or dispatcher.enabled off" -}}
{{- end -}}
{{- if not (or .Values.redis.url .Values.redis.existingSecret) -}}
{{- fail "set redis.url or redis.existingSecret" -}}
{{- end -}}
{{- end -}}
