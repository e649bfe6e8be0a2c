//! The table of producers: for which kinds controllers create objects, and the names of those.
//!
//! The names come from the projects' sources or documentation; a wrong row only turns an error into a note.

/// Group and kind; kinds that are made, and the templates of their names.
pub(super) type Row = (&'static str, &'static str, &'static str, &'static str);

/// Those that make something in their own namespace.
pub(super) const PRODUCERS: &[Row] = &[
    // Secrets from elsewhere.
    (
        "external-secrets.io",
        "ExternalSecret",
        "Secret ConfigMap",
        "{spec.target.name|name}",
    ),
    ("bitnami.com", "SealedSecret", "Secret", "{name}"),
    (
        "isindir.github.com",
        "SopsSecret",
        "Secret",
        "{spec.secretTemplates[].name}",
    ),
    ("onepassword.com", "OnePasswordItem", "Secret", "{name}"),
    (
        "secrets.infisical.com",
        "InfisicalSecret",
        "Secret",
        "{spec.managedSecretReference.secretName} {spec.managedKubeSecretReferences[].secretName}",
    ),
    (
        "secrets.infisical.com",
        "InfisicalSecret",
        "ConfigMap",
        "{spec.managedKubeConfigMapReferences[].configMapName}",
    ),
    (
        "secrets.infisical.com",
        "InfisicalDynamicSecret",
        "Secret",
        "{spec.managedSecretReference.secretName}",
    ),
    (
        "secrets.hashicorp.com",
        "VaultStaticSecret",
        "Secret",
        "{spec.destination.name}",
    ),
    (
        "secrets.hashicorp.com",
        "VaultDynamicSecret",
        "Secret",
        "{spec.destination.name}",
    ),
    (
        "secrets.hashicorp.com",
        "VaultPKISecret",
        "Secret",
        "{spec.destination.name}",
    ),
    (
        "secrets.hashicorp.com",
        "HCPVaultSecretsApp",
        "Secret",
        "{spec.destination.name}",
    ),
    (
        "k8s.bitwarden.com",
        "BitwardenSecret",
        "Secret",
        "{spec.secretName}",
    ),
    (
        "secrets.doppler.com",
        "DopplerSecret",
        "Secret",
        "{spec.managedSecret.name}",
    ),
    (
        "secrets-store.csi.x-k8s.io",
        "SecretProviderClass",
        "Secret",
        "{spec.secretObjects[].secretName}",
    ),
    (
        "spv.no",
        "AzureKeyVaultSecret",
        "Secret",
        "{spec.output.secret.name}",
    ),
    (
        "infra.contrib.fluxcd.io",
        "Terraform",
        "Secret",
        "{spec.writeOutputsToSecret.name}",
    ),
    // Certificates.
    (
        "cert-manager.io",
        "Certificate",
        "Secret",
        "{spec.secretName}",
    ),
    (
        "cert-manager.io",
        "Issuer",
        "Secret",
        "{spec.acme.privateKeySecretRef.name}",
    ),
    // Buckets and volumes.
    (
        "objectbucket.io",
        "ObjectBucketClaim",
        "Secret ConfigMap",
        "{name}",
    ),
    (
        "ceph.rook.io",
        "CephCluster",
        "Secret ConfigMap Service ServiceAccount",
        "rook-ceph-* rook-csi-* rook-config-override",
    ),
    (
        "ceph.rook.io",
        "CephObjectStore",
        "Service",
        "rook-ceph-rgw-{name}",
    ),
    (
        "ceph.rook.io",
        "CephObjectStoreUser",
        "Secret",
        "rook-ceph-object-user-{spec.store}-{name}",
    ),
    (
        "ceph.rook.io",
        "CephClient",
        "Secret",
        "rook-ceph-client-{name}",
    ),
    (
        "ceph.rook.io",
        "CephNFS",
        "Service",
        "rook-ceph-nfs-{name}-*",
    ),
    (
        "volsync.backube",
        "ReplicationDestination",
        "PersistentVolumeClaim",
        "volsync-{name}-dest volsync-*{name}-cache",
    ),
    (
        "volsync.backube",
        "ReplicationDestination",
        "Secret Service",
        "volsync-*-{name}",
    ),
    (
        "volsync.backube",
        "ReplicationSource",
        "PersistentVolumeClaim",
        "volsync-{name}-src volsync-*{name}-cache",
    ),
    (
        "volsync.backube",
        "ReplicationSource",
        "Secret Service",
        "volsync-*-{name}",
    ),
    (
        "minio.min.io",
        "Tenant",
        "Service",
        "minio {name}-console {name}-hl",
    ),
    (
        "minio.min.io",
        "Tenant",
        "Secret",
        "{name}-secret {name}-tls",
    ),
    // Databases and brokers.
    (
        "postgresql.cnpg.io",
        "Cluster",
        "Secret",
        "{name}-app {name}-superuser {name}-ca {name}-server {name}-replication {name}-pull-secret",
    ),
    (
        "postgresql.cnpg.io",
        "Cluster",
        "Service",
        "{name}-rw {name}-ro {name}-r {name}-any {spec.managed.services.additional[].serviceTemplate.metadata.name}",
    ),
    ("postgresql.cnpg.io", "Cluster", "ServiceAccount", "{name}"),
    (
        "postgresql.cnpg.io",
        "Cluster",
        "PersistentVolumeClaim",
        "{name}-*",
    ),
    (
        "postgresql.cnpg.io",
        "Pooler",
        "Service Deployment ServiceAccount",
        "{name}",
    ),
    (
        "postgres-operator.crunchydata.com",
        "PostgresCluster",
        "Secret Service ConfigMap PersistentVolumeClaim",
        "{name}-*",
    ),
    (
        "postgres-operator.crunchydata.com",
        "PGAdmin",
        "Service",
        "{spec.serviceName}",
    ),
    (
        "pgv2.percona.com",
        "PerconaPGCluster",
        "Secret Service ConfigMap PersistentVolumeClaim",
        "{name}-*",
    ),
    (
        "pxc.percona.com",
        "PerconaXtraDBCluster",
        "Secret",
        "{spec.secretsName} {name}-secrets internal-{name} {name}-ssl {name}-ssl-internal {name}-env-vars-*",
    ),
    (
        "pxc.percona.com",
        "PerconaXtraDBCluster",
        "Service",
        "{name}-pxc {name}-pxc-unready {name}-haproxy {name}-haproxy-replicas {name}-proxysql {name}-proxysql-unready",
    ),
    (
        "psmdb.percona.com",
        "PerconaServerMongoDB",
        "Secret",
        "{spec.secrets.users} {name}-secrets internal-{name}-users {name}-ssl {name}-ssl-internal {name}-mongodb-keyfile {name}-mongodb-encryption-key",
    ),
    (
        "psmdb.percona.com",
        "PerconaServerMongoDB",
        "Service",
        "{name}-*",
    ),
    (
        "acid.zalan.do",
        "postgresql",
        "Secret",
        "*.{name}.credentials *.{name}.credentials.postgresql.acid.zalan.do",
    ),
    (
        "acid.zalan.do",
        "postgresql",
        "Service",
        "{name} {name}-repl {name}-pooler {name}-pooler-repl",
    ),
    (
        "k8s.mariadb.com",
        "MariaDB",
        "Secret",
        "{name}-root {name}-password {name}-repl-password {name}-ca {name}-ca-bundle {name}-server-cert {name}-client-cert {name}-metrics-password {name}-metrics-config {spec.rootPasswordSecretKeyRef.name} {spec.passwordSecretKeyRef.name} {spec.connection.secretName}",
    ),
    (
        "k8s.mariadb.com",
        "MariaDB",
        "Service",
        "{name} {name}-internal {name}-primary {name}-secondary {name}-metrics",
    ),
    (
        "k8s.mariadb.com",
        "MariaDB",
        "ConfigMap",
        "{name}-config {name}-config-default {name}-config-tls",
    ),
    (
        "k8s.mariadb.com",
        "MariaDB",
        "ServiceAccount",
        "{spec.serviceAccountName|name}",
    ),
    (
        "k8s.mariadb.com",
        "MaxScale",
        "Service",
        "{name} {name}-internal {name}-gui",
    ),
    (
        "k8s.mariadb.com",
        "Connection",
        "Secret",
        "{spec.secretName|name}",
    ),
    (
        "mysql.oracle.com",
        "InnoDBCluster",
        "Service",
        "{name} {name}-instances",
    ),
    (
        "mongodbcommunity.mongodb.com",
        "MongoDBCommunity",
        "Secret",
        "{name}-*",
    ),
    (
        "mongodbcommunity.mongodb.com",
        "MongoDBCommunity",
        "Service",
        "{name}-svc",
    ),
    (
        "dragonflydb.io",
        "Dragonfly",
        "Service StatefulSet",
        "{name}",
    ),
    (
        "redis.redis.opstreelabs.in",
        "Redis",
        "Service StatefulSet",
        "{name} {name}-headless {name}-additional",
    ),
    (
        "redis.redis.opstreelabs.in",
        "RedisReplication",
        "Service StatefulSet",
        "{name} {name}-*",
    ),
    (
        "redis.redis.opstreelabs.in",
        "RedisSentinel",
        "Service StatefulSet",
        "{name}-sentinel {name}-sentinel-*",
    ),
    (
        "redis.redis.opstreelabs.in",
        "RedisCluster",
        "Service StatefulSet",
        "{name}-*",
    ),
    (
        "rabbitmq.com",
        "RabbitmqCluster",
        "Secret",
        "{name}-default-user {name}-erlang-cookie",
    ),
    (
        "rabbitmq.com",
        "RabbitmqCluster",
        "Service",
        "{name} {name}-nodes",
    ),
    ("rabbitmq.com", "User", "Secret", "{name}-user-credentials"),
    ("kafka.strimzi.io", "Kafka", "Secret Service", "{name}-*"),
    (
        "kafka.strimzi.io",
        "KafkaConnect",
        "Service",
        "{name}-connect-api",
    ),
    (
        "kafka.strimzi.io",
        "KafkaBridge",
        "Service",
        "{name}-bridge-service",
    ),
    ("kafka.strimzi.io", "KafkaUser", "Secret", "{name}"),
    (
        "apps.emqx.io",
        "EMQX",
        "Service",
        "{name}-dashboard {name}-listeners {name}-headless",
    ),
    (
        "clickhouse.altinity.com",
        "ClickHouseInstallation",
        "Service",
        "clickhouse-{name} chi-{name}-*",
    ),
    (
        "opensearch.opster.io",
        "OpenSearchCluster",
        "Secret",
        "{name}-admin-password {name}-admin-cert {name}-http-cert {name}-transport-cert {name}-ca",
    ),
    (
        "opensearch.opster.io",
        "OpenSearchCluster",
        "Service",
        "{spec.general.serviceName|name} {name}-dashboards",
    ),
    (
        "elasticsearch.k8s.elastic.co",
        "Elasticsearch",
        "Secret Service ConfigMap",
        "{name}-es-*",
    ),
    (
        "kibana.k8s.elastic.co",
        "Kibana",
        "Secret Service",
        "{name}-kb-*",
    ),
    (
        "apm.k8s.elastic.co",
        "ApmServer",
        "Secret Service",
        "{name}-apm-*",
    ),
    (
        "agent.k8s.elastic.co",
        "Agent",
        "Secret Service",
        "{name}-agent-*",
    ),
    ("beat.k8s.elastic.co", "Beat", "Secret", "{name}-beat-*"),
    (
        "logstash.k8s.elastic.co",
        "Logstash",
        "Secret Service",
        "{name}-ls-*",
    ),
    (
        "enterprisesearch.k8s.elastic.co",
        "EnterpriseSearch",
        "Secret Service",
        "{name}-ent-*",
    ),
    // Metrics, logs and traces.
    (
        "monitoring.coreos.com",
        "Prometheus",
        "Service",
        "prometheus-operated {spec.serviceName}",
    ),
    (
        "monitoring.coreos.com",
        "Prometheus",
        "Secret StatefulSet",
        "prometheus-{name} prometheus-{name}-*",
    ),
    (
        "monitoring.coreos.com",
        "Alertmanager",
        "Service",
        "alertmanager-operated {spec.serviceName}",
    ),
    (
        "monitoring.coreos.com",
        "Alertmanager",
        "Secret StatefulSet",
        "alertmanager-{name} alertmanager-{name}-*",
    ),
    (
        "monitoring.coreos.com",
        "ThanosRuler",
        "Service",
        "thanos-ruler-operated {spec.serviceName}",
    ),
    (
        "operator.victoriametrics.com",
        "VMSingle",
        "Service Deployment ServiceAccount",
        "vmsingle-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VMAgent",
        "Service Deployment ServiceAccount",
        "vmagent-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VMAlert",
        "Service Deployment ServiceAccount",
        "vmalert-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VMAlertmanager",
        "Service StatefulSet ServiceAccount",
        "vmalertmanager-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VMAuth",
        "Service Deployment ServiceAccount",
        "vmauth-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VMCluster",
        "Service ServiceAccount",
        "vmselect-{name} vminsert-{name} vmstorage-{name} vmcluster-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VMUser",
        "Secret",
        "vmuser-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VLogs",
        "Service Deployment ServiceAccount",
        "vlogs-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VLSingle",
        "Service Deployment ServiceAccount",
        "vlsingle-{name}",
    ),
    (
        "operator.victoriametrics.com",
        "VLCluster",
        "Service ServiceAccount",
        "vlselect-{name} vlinsert-{name} vlstorage-{name}",
    ),
    (
        "grafana.integreatly.org",
        "Grafana",
        "Secret",
        "{name}-admin-credentials",
    ),
    (
        "grafana.integreatly.org",
        "Grafana",
        "Service",
        "{name}-service",
    ),
    (
        "grafana.integreatly.org",
        "Grafana",
        "ServiceAccount",
        "{name}-sa",
    ),
    (
        "grafana.integreatly.org",
        "GrafanaServiceAccount",
        "Secret",
        "{spec.tokens[].secretName}",
    ),
    (
        "opentelemetry.io",
        "OpenTelemetryCollector",
        "Service ServiceAccount",
        "{name}-collector {name}-collector-headless {name}-collector-monitoring {name}-targetallocator",
    ),
    (
        "jaegertracing.io",
        "Jaeger",
        "Service",
        "{name}-query {name}-collector {name}-agent",
    ),
    // Logins, machines and networks.
    (
        "pocketid.internal",
        "PocketIDOIDCClient",
        "Secret",
        "{name}-oidc-credentials {spec.secret.name}",
    ),
    ("pocketid.internal", "PocketIDInstance", "Service", "{name}"),
    (
        "pocketid.internal",
        "PocketIDInstance",
        "Secret",
        "{name}-static-api-key",
    ),
    (
        "k8s.keycloak.org",
        "Keycloak",
        "Secret",
        "{name}-initial-admin",
    ),
    ("k8s.keycloak.org", "Keycloak", "Service", "{name}-service"),
    (
        "kaniop.rs",
        "KanidmOAuth2Client",
        "Secret",
        "{name}-kanidm-oauth2-credentials",
    ),
    ("talos.dev", "ServiceAccount", "Secret", "{name}"),
    (
        "cluster.x-k8s.io",
        "Cluster",
        "Secret",
        "{name}-kubeconfig {name}-ca {name}-etcd {name}-proxy {name}-sa",
    ),
    (
        "gateway.networking.k8s.io",
        "Gateway",
        "Service",
        "{name}-istio cilium-gateway-{name}",
    ),
    // Flux itself.
    (
        "fluxcd.controlplane.io",
        "FluxInstance",
        "Service",
        "notification-controller source-controller source-watcher webhook-receiver",
    ),
    (
        "fluxcd.controlplane.io",
        "FluxInstance",
        "ServiceAccount",
        "flux-operator kustomize-controller helm-controller source-controller notification-controller image-reflector-controller image-automation-controller source-watcher",
    ),
];

/// Those that make something in every namespace that they select.
pub(super) const EVERYWHERE: &[Row] = &[
    (
        "external-secrets.io",
        "ClusterExternalSecret",
        "Secret ConfigMap",
        "{spec.externalSecretSpec.target.name|spec.externalSecretName|name}",
    ),
    (
        "trust.cert-manager.io",
        "Bundle",
        "ConfigMap Secret",
        "{name}",
    ),
    (
        "trust-manager.io",
        "ClusterBundle",
        "ConfigMap Secret",
        "{name}",
    ),
    (
        "cert-manager.io",
        "ClusterIssuer",
        "Secret",
        "{spec.acme.privateKeySecretRef.name}",
    ),
];

/// Controllers that are told by the image of their workload: a part of the image's name, the kind and the names of what
/// they make.
pub(super) const IMAGES: &[(&str, &str, &str)] = &[
    ("kedacore/keda", "Secret", "kedaorg-certs"),
    (
        "cilium/certgen",
        "Secret",
        "cilium-ca hubble-* clustermesh-*",
    ),
    (
        "envoyproxy/gateway:",
        "Secret",
        "envoy-gateway envoy envoy-rate-limit envoy-oidc-hmac",
    ),
    ("metallb/controller", "Secret", "*memberlist"),
    (
        "kyverno/kyverno:",
        "Secret",
        "*.kyverno-tls-pair *.kyverno-tls-ca",
    ),
    ("velero/velero:", "Secret", "velero-repo-credentials"),
];

/// Controllers that make something in every namespace, told in the same way.
pub(super) const IMAGES_EVERYWHERE: &[(&str, &str, &str)] =
    &[("/pilot:", "ConfigMap", "istio-ca-root-cert")];

/// Images of jobs that make the Secret which their arguments name.
pub(super) const CERTIFICATE_JOBS: &[&str] = &["kube-webhook-certgen"];

/// Annotations by which a Secret or ConfigMap is copied to other namespaces.
pub(super) const COPIED: &[&str] = &[
    "reflector.v1.k8s.emberstack.com/reflection-auto-enabled",
    "replicator.v1.mittwald.de/replicate-to",
    "replicator.v1.mittwald.de/replicate-to-matching",
];

/// Annotations by which a Secret or ConfigMap gets its content from another one.
pub(super) const FILLED: &[&str] = &[
    "fluxcd.controlplane.io/copyFrom",
    "reflector.v1.k8s.emberstack.com/reflects",
    "replicator.v1.mittwald.de/replicate-from",
];

/// Annotations by which cert-manager makes the certificates that an Ingress or a Gateway names.
pub(super) const CERTIFIED: &[&str] = &[
    "cert-manager.io/issuer",
    "cert-manager.io/cluster-issuer",
    "kubernetes.io/tls-acme",
];
