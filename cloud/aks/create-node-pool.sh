#!/usr/bin/env bash
# Adds a Windows GPU node pool to an AKS cluster, without AKS's GPU driver and device plugin. NOT RUN yet. The pool costs
# money until it is deleted.
#
# Environment:
#   RESOURCE_GROUP, CLUSTER  the existing cluster; it must be able to have Windows pools
#   POOL                     name, at most 6 characters for Windows (default wgpu)
#   VM_SIZE                  default Standard_NV6ads_A10_v5: one sixth of an A10
#   OS_SKU                   Windows2022 (default; not with Kubernetes 1.37 and newer) or Windows2025 (with Kubernetes
#                            1.32 and newer)
#   NODES                    default 1
set -euo pipefail

: "${RESOURCE_GROUP:?is not set}" "${CLUSTER:?is not set}"
pool=${POOL:-wgpu}
if [[ ! $pool =~ ^[a-z][a-z0-9]{0,5}$ ]]; then
    echo "error: invalid name \`$pool\` for a Windows node pool" >&2
    echo "hint: use 1 to 6 lower-case letters and digits, beginning with a letter" >&2
    exit 2
fi
os_sku=${OS_SKU:-Windows2022}
# AKS rejects pools of Windows Server 2025 without FIPS mode.
case $os_sku in
Windows2022) fips=() ;;
Windows2025) fips=(--enable-fips-image) ;;
*)
    echo "error: unknown OS_SKU \`$os_sku\`" >&2
    echo "hint: use Windows2022 or Windows2025" >&2
    exit 2
    ;;
esac

az aks nodepool add \
    --resource-group "$RESOURCE_GROUP" \
    --cluster-name "$CLUSTER" \
    --name "$pool" \
    --os-type Windows \
    --os-sku "$os_sku" \
    ${fips[@]+"${fips[@]}"} \
    --node-vm-size "${VM_SIZE:-Standard_NV6ads_A10_v5}" \
    --node-count "${NODES:-1}" \
    --gpu-driver none \
    --labels example.com/gpu=nvidia
