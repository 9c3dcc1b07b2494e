#!/usr/bin/env bash
# Builds an AMI for Windows GPU nodes of EKS: the EKS optimized Windows Server AMI with AWS's GRID driver.
# Prints the ID of the AMI. NOT RUN yet. Takes about an hour, on one GPU instance that Image Builder ends afterwards.
#
# Environment:
#   AWS_REGION          region
#   INSTANCE_PROFILE    instance profile with the policies EC2InstanceProfileForImageBuilder,
#                       AmazonSSMManagedInstanceCore and AmazonS3ReadOnlyAccess
#   DRIVER_KEY          installer in s3://ec2-windows-nvidia-drivers, for example latest/NAME.exe
#   KUBERNETES_VERSION  version of the cluster, for example 1.35
#   NAME                prefix of everything that is created (default directx-node)
#   WINDOWS             2022 or 2025 (default 2022); 2025 needs Kubernetes 1.35 or newer
#   INSTANCE_TYPE       instance that builds the AMI; it needs the GPU (default g4dn.xlarge)
set -euo pipefail

: "${AWS_REGION:?is not set}" "${INSTANCE_PROFILE:?is not set}" "${DRIVER_KEY:?is not set}" "${KUBERNETES_VERSION:?is not set}"
name=${NAME:-directx-node}
windows=${WINDOWS:-2022}
instance_type=${INSTANCE_TYPE:-g4dn.xlarge}
export AWS_REGION AWS_PAGER=''
folder=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=windows-version.sh
. "$folder/windows-version.sh"
check_windows_version "$windows" "$KUBERNETES_VERSION"
# Image Builder versions are MAJOR.MINOR.PATCH, and each may be used once.
version=1.0.$(date +%s)

parent=$(aws ssm get-parameter --query Parameter.Value --output text \
    --name "/aws/service/ami-windows-latest/Windows_Server-$windows-English-Full-EKS_Optimized-$KUBERNETES_VERSION/image_id")
echo "parent image: $parent" >&2

component=$(aws imagebuilder create-component --name "$name-driver" --semantic-version "$version" --platform Windows \
    --data "file://$folder/driver-component.yml" --query componentBuildVersionArn --output text)
recipe=$(aws imagebuilder create-image-recipe --name "$name" --semantic-version "$version" --parent-image "$parent" \
    --components "[{\"componentArn\":\"$component\",\"parameters\":[{\"name\":\"DriverKey\",\"value\":[\"$DRIVER_KEY\"]}]}]" \
    --query imageRecipeArn --output text)
infrastructure=$(aws imagebuilder create-infrastructure-configuration --name "$name-${version##*.}" \
    --instance-types "$instance_type" --instance-profile-name "$INSTANCE_PROFILE" --terminate-instance-on-failure \
    --query infrastructureConfigurationArn --output text)
image=$(aws imagebuilder create-image --image-recipe-arn "$recipe" --infrastructure-configuration-arn "$infrastructure" \
    --image-tests-configuration imageTestsEnabled=false --query imageBuildVersionArn --output text)
echo "building $image" >&2

# Two hours, one look a minute.
for _ in $(seq 120); do
    state=$(aws imagebuilder get-image --image-build-version-arn "$image" --query image.state.status --output text)
    case $state in
    AVAILABLE)
        aws imagebuilder get-image --image-build-version-arn "$image" \
            --query 'image.outputResources.amis[0].image' --output text
        exit 0
        ;;
    FAILED | CANCELLED)
        aws imagebuilder get-image --image-build-version-arn "$image" --query image.state.reason --output text >&2
        exit 1
        ;;
    esac
    sleep 60
done
echo "error: the image is not ready after two hours; it is in state $state" >&2
exit 1
