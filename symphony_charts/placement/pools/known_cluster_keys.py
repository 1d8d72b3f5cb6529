"""The keys of clusters are listed as those of node pools are.

What a cluster says holds for all of its pools; most of it is about its control plane and its network. An add-on that
runs something on each node is used, and any other key makes PACKABLE of PROVEN.
"""

from __future__ import annotations

from symphony_charts.placement.pools.known_keys import Keys, keys

__all__ = ["GCLOUD_CLUSTER", "TERRAFORM_CLUSTER"]

_SWITCH = keys("enabled disabled", weight="PACKABLE")


def _addons(switches: str, **others: Keys) -> Keys:
    return Keys(blocks={**dict.fromkeys(switches.split(), _SWITCH), **others}, weight="PACKABLE")


TERRAFORM_CLUSTER = keys(
    "name location zone region node_locations datapath_provider default_max_pods_per_node remove_default_node_pool"
    " node_config node_pool enable_autopilot initial_node_count node_version autoscaling management",
    "project description network subnetwork networking_mode cluster_ipv4_cidr ip_allocation_policy"
    " min_master_version release_channel logging_service monitoring_service logging_config maintenance_policy"
    " master_auth master_authorized_networks_config private_cluster_config control_plane_endpoints_config"
    " deletion_protection deletion_policy resource_labels terraform_labels effective_labels"
    " vertical_pod_autoscaling workload_identity_config database_encryption binary_authorization"
    " enable_kubernetes_alpha enable_k8s_beta_apis enable_legacy_abac enable_shielded_nodes"
    " enable_intranode_visibility enable_l4_ilb_subsetting enable_multi_networking enable_tpu"
    " enable_fqdn_network_policy enable_cilium_clusterwide_network_policy"
    " disable_l4_lb_firewall_reconciliation default_snat_status dns_config gateway_api_config"
    " authenticator_groups_config cost_management_config resource_usage_export_config notification_config"
    " security_posture_config service_external_ips_config mesh_certificates identity_service_config fleet"
    " enterprise_config protect_config secret_manager_config secret_sync_config user_managed_keys_config"
    " rbac_binding_config anonymous_authentication_config pod_security_policy_config pod_autoscaling"
    " workload_alts_config in_transit_encryption_config gke_auto_upgrade_config network_performance_config"
    " private_ipv6_google_access tpu_config tpu_ipv4_cidr_block allow_net_admin node_pool_auto_config"
    " resource_manager_tags timeouts lifecycle depends_on provider id self_link endpoint master_version"
    " services_ipv4_cidr operation label_fingerprint cluster_telemetry pod_cidr_overprovision_config"
    " control_plane_egress rollback_safe_upgrade max_pods_per_node placement_policy queued_provisioning"
    " network_config upgrade_settings version node_count",
    "PACKABLE",
    network_policy=keys("enabled", "provider", "PACKABLE"),
    confidential_nodes=keys("enabled", "confidential_instance_type", "PACKABLE"),
    node_pool_defaults=keys(
        weight="PACKABLE",
        node_config_defaults=keys(
            "logging_variant",
            "containerd_config insecure_kubelet_readonly_port_enabled",
            gcfs_config=keys("enabled"),
        ),
    ),
    cluster_autoscaling=keys(
        "enabled",
        "autoscaling_profile resource_limits auto_provisioning_defaults auto_provisioning_locations"
        " default_compute_class_enabled",
        "PACKABLE",
    ),
    monitoring_config=keys(
        harmless="enable_components advanced_datapath_observability_config",
        weight="PACKABLE",
        managed_prometheus=keys("enabled", "auto_monitoring_config", "PACKABLE"),
    ),
    addons_config=_addons(
        "http_load_balancing horizontal_pod_autoscaling network_policy_config dns_cache_config"
        " gce_persistent_disk_csi_driver_config gcp_filestore_csi_driver_config gcs_fuse_csi_driver_config"
        " parallelstore_csi_driver_config lustre_csi_driver_config config_connector_config gke_backup_agent_config"
        " stateful_ha_config pod_snapshot_config",
        ray_operator_config=keys("enabled", "ray_cluster_logging_config ray_cluster_monitoring_config", "PACKABLE"),
        cloudrun_config=keys("disabled", "load_balancer_type", "PACKABLE"),
    ),
)
GCLOUD_CLUSTER = keys(
    "name nodePools locations",
    "description initialNodeCount nodeConfig masterAuth loggingService monitoringService network subnetwork"
    " clusterIpv4Cidr enableKubernetesAlpha alphaClusterFeatureGates resourceLabels labelFingerprint"
    " legacyAbac ipAllocationPolicy masterAuthorizedNetworksConfig maintenancePolicy binaryAuthorization"
    " resourceUsageExportConfig authenticatorGroupsConfig privateClusterConfig databaseEncryption"
    " verticalPodAutoscaling shieldedNodes releaseChannel workloadIdentityConfig meshCertificates"
    " costManagementConfig notificationConfig identityServiceConfig selfLink zone endpoint"
    " initialClusterVersion currentMasterVersion currentNodeVersion createTime status statusMessage"
    " nodeIpv4CidrSize servicesIpv4Cidr instanceGroupUrls currentNodeCount expireTime location enableTpu"
    " tpuIpv4CidrBlock conditions id loggingConfig nodePoolAutoConfig fleet securityPostureConfig"
    " controlPlaneEndpointsConfig enableK8sBetaApis enterpriseConfig secretManagerConfig"
    " compliancePostureConfig satisfiesPzs satisfiesPzi userManagedKeysConfig rbacBindingConfig"
    " gkeAutoUpgradeConfig anonymousAuthenticationConfig podAutoscaling parentProductConfig etag"
    " defaultMaxPodsConstraint",
    "PACKABLE",
    networkPolicy=keys("enabled", "provider", "PACKABLE"),
    networkConfig=keys(
        "datapathProvider",
        "network subnetwork enableIntraNodeVisibility defaultSnatStatus enableL4ilbSubsetting dnsConfig"
        " serviceExternalIpsConfig gatewayApiConfig enableMultiNetworking networkPerformanceConfig"
        " enableFqdnNetworkPolicy inTransitEncryptionConfig enableCiliumClusterwideNetworkPolicy"
        " defaultEnablePrivateNodes disableL4LbFirewallReconciliation privateIpv6GoogleAccess",
        "PACKABLE",
    ),
    confidentialNodes=keys("enabled", "confidentialInstanceType", "PACKABLE"),
    nodePoolDefaults=keys(
        weight="PACKABLE",
        nodeConfigDefaults=keys(
            harmless="containerdConfig nodeKubeletConfig",
            gcfsConfig=keys("enabled"),
            loggingConfig=keys(variantConfig=keys("variant")),
        ),
    ),
    autopilot=keys("enabled", "workloadPolicyConfig privilegedAdmissionConfig", "PACKABLE"),
    autoscaling=keys(
        "enableNodeAutoprovisioning",
        "resourceLimits autoprovisioningNodePoolDefaults autoprovisioningLocations autoscalingProfile"
        " defaultComputeClassConfig",
        "PACKABLE",
    ),
    monitoringConfig=keys(
        harmless="componentConfig advancedDatapathObservabilityConfig",
        weight="PACKABLE",
        managedPrometheusConfig=keys("enabled", "autoMonitoringConfig", "PACKABLE"),
    ),
    addonsConfig=_addons(
        "httpLoadBalancing horizontalPodAutoscaling kubernetesDashboard networkPolicyConfig dnsCacheConfig"
        " gcePersistentDiskCsiDriverConfig gcpFilestoreCsiDriverConfig gcsFuseCsiDriverConfig"
        " parallelstoreCsiDriverConfig lustreCsiDriverConfig configConnectorConfig gkeBackupAgentConfig"
        " statefulHaConfig podSnapshotConfig",
        rayOperatorConfig=keys("enabled", "rayClusterLoggingConfig rayClusterMonitoringConfig", "PACKABLE"),
        cloudRunConfig=keys("disabled", "loadBalancerType", "PACKABLE"),
    ),
)
