{{- define "podium.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "podium.estimatorLabels" -}}
app.kubernetes.io/name: {{ .Release.Name }}-estimator
{{- end }}

{{- define "podium.fleetsLabels" -}}
app.kubernetes.io/name: {{ .Release.Name }}-fleets
{{- end }}

{{- define "podium.provisionerLabels" -}}
app.kubernetes.io/name: {{ .Release.Name }}-provisioner
{{- end }}

{{- /* A binding of the provisioner's account to the ClusterRole of that name. */ -}}
{{- define "podium.provisionerBinding" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .role }}
  labels:
    {{- include "podium.provisionerLabels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ .Release.Name }}-provisioner
    namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "podium.serviceAccount" -}}
{{- .Values.serviceAccount.name | default .Release.Name -}}
{{- end }}

{{- /* The plugins of each feature: a feature that is off needs no rights, since its plugins are disabled. */ -}}
{{- define "podium.features" -}}
volumes: [NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone]
preemption: [DefaultPreemption]
devices: [DynamicResources]
{{- end }}

{{- define "podium.disabled" -}}
{{- $disabled := list -}}
{{- range $feature, $plugins := include "podium.features" . | fromYaml -}}
{{- if not (get $.Values.features $feature) -}}
{{- $disabled = concat $disabled $plugins -}}
{{- end -}}
{{- end -}}
{{- toJson $disabled -}}
{{- end }}

{{- /* The configuration with its lease, and without the plugins of features that are off. */ -}}
{{- define "podium.configuration" -}}
{{- $configuration := deepCopy .Values.configuration -}}
{{- $lease := dict "resourceNamespace" .Release.Namespace "resourceName" .Release.Name -}}
{{- if .Values.asDefaultScheduler -}}
{{- $lease = dict "resourceNamespace" "kube-system" "resourceName" "kube-scheduler" -}}
{{- end -}}
{{- $_ := set $configuration "leaderElection" (merge ($configuration.leaderElection | default dict) $lease) -}}
{{- range $profile := $configuration.profiles -}}
{{- $plugins := $profile.plugins | default dict -}}
{{- $multiPoint := $plugins.multiPoint | default dict -}}
{{- $disabled := $multiPoint.disabled | default list -}}
{{- $named := list -}}
{{- range $disabled -}}
{{- $named = append $named .name -}}
{{- end -}}
{{- range include "podium.disabled" $ | fromJsonArray -}}
{{- if not (or (has . $named) (has "*" $named)) -}}
{{- $disabled = append $disabled (dict "name" .) -}}
{{- end -}}
{{- end -}}
{{- if $.Values.coscheduling.enabled -}}
{{- /* It is the only QueueSort of all profiles, with the same args. */ -}}
{{- if not (or (has "PrioritySort" $named) (has "*" $named)) -}}
{{- $disabled = append $disabled (dict "name" "PrioritySort") -}}
{{- end -}}
{{- $_ := set $multiPoint "enabled" (append ($multiPoint.enabled | default list) (dict "name" "Coscheduling")) -}}
{{- with $.Values.coscheduling.args -}}
{{- $_ := set $profile "pluginConfig" (append ($profile.pluginConfig | default list) (dict "name" "Coscheduling" "args" .)) -}}
{{- end -}}
{{- end -}}
{{- if or $disabled $.Values.coscheduling.enabled -}}
{{- $_ := set $profile "plugins" (set $plugins "multiPoint" (set $multiPoint "disabled" $disabled)) -}}
{{- end -}}
{{- end -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{{ omit $configuration "apiVersion" "kind" | toYaml }}
{{- end }}

{{- /* The names of the plugins that some profile enables. */ -}}
{{- define "podium.plugins" -}}
{{- $names := list -}}
{{- range .Values.configuration.profiles -}}
{{- range $point, $set := .plugins -}}
{{- range $set.enabled -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- uniq $names | toJson -}}
{{- end }}

{{- define "podium.lease" -}}
{{- (include "podium.configuration" . | fromYaml).leaderElection | toJson -}}
{{- end }}

{{- /* The ConfigMap or image that plugin files come from, as a volume. */ -}}
{{- define "podium.pluginVolume" -}}
{{- if .Values.plugins.image -}}
image:
  reference: {{ .Values.plugins.image }}
{{- else if .Values.plugins.configMap -}}
configMap:
  name: {{ .Values.plugins.configMap }}
{{- else if .Values.plugins.files -}}
configMap:
  name: {{ .Release.Name }}-plugins
{{- end -}}
{{- end }}

{{- /* A role for what is in one namespace only. */ -}}
{{- define "podium.namespacedRole" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .namespace }}
  labels:
    {{- include "podium.labels" . | nindent 4 }}
rules:
  {{- if .hasLease }}
  # The lease of the replica that leads. Making one cannot be limited to a name.
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  {{- if .Values.shards.group }}
  # Each shard has a Lease of its own, and lists those of all.
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, list, update]
  {{- else }}
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ .lease }}]
    verbs: [get, update]
  {{- end }}
  {{- end }}
  {{- if eq .namespace "kube-system" }}
  # Whose client certificates are believed.
  - apiGroups: [""]
    resources: [configmaps]
    resourceNames: [extension-apiserver-authentication]
    verbs: [get]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .namespace }}
  labels:
    {{- include "podium.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .Release.Name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "podium.serviceAccount" . }}
    namespace: {{ .Release.Namespace }}
{{- end }}
