#!/usr/bin/env bash
# For build-ami.sh and cluster.sh.

# Ends with an error unless EKS has AMIs of Windows Server $1 for Kubernetes $2.
check_windows_version() {
    if [[ $1 != 2022 && $1 != 2025 ]]; then
        echo "error: unknown version \`$1\` of Windows Server" >&2
        echo "hint: set WINDOWS to 2022 or 2025" >&2
        exit 2
    fi
    if [[ ! $2 =~ ^1\.([0-9]+)$ ]]; then
        echo "error: invalid Kubernetes version \`$2\`" >&2
        echo "hint: set KUBERNETES_VERSION to a version such as 1.35" >&2
        exit 2
    fi
    if [[ $1 == 2025 && ${BASH_REMATCH[1]} -lt 35 ]]; then
        echo "error: EKS has no AMI of Windows Server 2025 for Kubernetes $2" >&2
        echo "hint: use Kubernetes 1.35 or newer, or WINDOWS=2022" >&2
        exit 2
    fi
}
