#!/usr/bin/env bash
# Adds a Windows GPU node pool to an AKS cluster, without AKS's GPU driver and device plugin. NOT RUN yet. The pool costs
# money until it is deleted.
#
# Environment:
#   RESOURCE_GROUP, CLUSTER  the existing cluster; it must be able to have Windows pools
#   POOL                     name, at most 6 characters for Windows (default wgpu)
#   VM_SIZE                  default Standard_NV6ads_A10_v5: one sixth of an A10
#   OS_SKU                   Windows2022 or Windows2025; without it, AKS chooses: Windows2025 from Kubernetes 1.37 on
#   NODES                    default 1
set -euo pipefail

: "${RESOURCE_GROUP:?is not set}" "${CLUSTER:?is not set}"
pool=${POOL:-wgpu}
if [[ ! $pool =~ ^[a-z][a-z0-9]{0,5}$ ]]; then
    echo "error: invalid name \`$pool\` for a Windows node pool" >&2
    echo "hint: use 1 to 6 lower-case letters and digits, beginning with a letter" >&2
    exit 2
fi

az aks nodepool add \
    --resource-group "$RESOURCE_GROUP" \
    --cluster-name "$CLUSTER" \
    --name "$pool" \
    --os-type Windows \
    ${OS_SKU:+--os-sku "$OS_SKU"} \
    --node-vm-size "${VM_SIZE:-Standard_NV6ads_A10_v5}" \
    --node-count "${NODES:-1}" \
    --gpu-driver none \
    --labels example.com/gpu=nvidia
