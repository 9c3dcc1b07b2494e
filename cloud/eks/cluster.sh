#!/usr/bin/env bash
# Creates or deletes a small EKS cluster with one Windows GPU node. NOT RUN yet. `create` starts machines that cost
# money until `delete` has ended.
#
#   cluster.sh config|create|delete
#
# Environment:
#   AWS_REGION          region
#   AMI_ID              AMI of build-ami.sh (not for delete)
#   CLUSTER             name (default directx-demo)
#   KUBERNETES_VERSION  default 1.35; the version that the AMI was built for
#   WINDOWS             2022 or 2025 (default 2022); 2025 needs Kubernetes 1.35 or newer, and eksctl 0.222.0 or newer
#   INSTANCE_TYPE       Windows nodes (default g4dn.xlarge: one T4)
#   NODES               number of Windows nodes (default 1)
set -euo pipefail

usage() {
    echo "usage: AWS_REGION=REGION AMI_ID=AMI $0 config|create|delete" >&2
    exit 2
}

config() {
    cat <<YAML
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata:
  name: $cluster
  region: $AWS_REGION
  version: "$kubernetes"
# CoreDNS and other system pods run only on Linux.
managedNodeGroups:
- name: linux
  instanceType: t3.large
  amiFamily: AmazonLinux2023
  minSize: 1
  maxSize: 1
  desiredCapacity: 1
# Self-managed, because eksctl supports custom Windows AMIs only there.
nodeGroups:
- name: windows-gpu
  instanceType: ${INSTANCE_TYPE:-g4dn.xlarge}
  amiFamily: WindowsServer${windows}FullContainer
  ami: $AMI_ID
  volumeSize: 100
  minSize: 0
  maxSize: ${NODES:-1}
  desiredCapacity: ${NODES:-1}
  labels:
    example.com/gpu: nvidia
  tags:
    # The cluster autoscaler learns from these tags what a node of an empty group has. Without the label of the system, it
    # expects Linux. EKS may let Windows pods request an address; one is enough for the pod with the GPU.
    k8s.io/cluster-autoscaler/node-template/label/kubernetes.io/os: windows
    k8s.io/cluster-autoscaler/node-template/label/example.com/gpu: nvidia
    k8s.io/cluster-autoscaler/node-template/resources/directx.microsoft.com/display: "1"
    k8s.io/cluster-autoscaler/node-template/resources/vpc.amazonaws.com/PrivateIPv4Address: "1"
YAML
}

[[ $# -eq 1 && -n "${AWS_REGION:-}" ]] || usage
cluster=${CLUSTER:-directx-demo}
kubernetes=${KUBERNETES_VERSION:-1.35}
windows=${WINDOWS:-2022}
case $1 in
config | create)
    [[ -n "${AMI_ID:-}" ]] || usage
    # shellcheck source=windows-version.sh
    . "$(dirname "$0")/windows-version.sh"
    check_windows_version "$windows" "$kubernetes"
    if [[ $1 == config ]]; then
        config
    else
        config | eksctl create cluster --config-file -
    fi
    ;;
delete)
    eksctl delete cluster --name "$cluster" --region "$AWS_REGION" --wait --disable-nodegroup-eviction
    ;;
*) usage ;;
esac
