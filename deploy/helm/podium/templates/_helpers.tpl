{{- define "podium.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "podium.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default .Release.Name -}}
{{- else -}}
{{- required "serviceAccount.name: is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- /* The configuration with the lease that the role is for, unless another is given. */ -}}
{{- define "podium.configuration" -}}
{{- $lease := dict "resourceNamespace" .Release.Namespace "resourceName" .Release.Name -}}
{{- $given := .Values.configuration.leaderElection | default dict -}}
{{- $head := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" -}}
{{- merge $head (dict "leaderElection" (merge (deepCopy $given) $lease)) .Values.configuration | toYaml -}}
{{- end }}

{{- define "podium.lease" -}}
{{- (include "podium.configuration" . | fromYaml).leaderElection | toJson -}}
{{- end }}
