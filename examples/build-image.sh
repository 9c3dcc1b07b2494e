#!/usr/bin/env bash
# Builds and pushes the image of one example with files of others. Runs on Linux: the Dockerfiles only copy files, so
# nothing has to run Windows.
#
#   REGISTRY=registry.your-company.example examples/build-image.sh ffmpeg FOLDER
#
# FOLDER contains the files that the example's Dockerfile copies; files that this repository has are added to them.
# TAG (default ltsc2022) is also the tag of the Windows base image. Needs docker with buildx, and `docker login`.
set -euo pipefail

if [[ $# -ne 2 || -z "${REGISTRY:-}" ]]; then
    echo "usage: REGISTRY=REGISTRY $0 EXAMPLE FOLDER" >&2
    exit 2
fi
example=$1
files=$2
tag=${TAG:-ltsc2022}
source=$(cd "$(dirname "$0")" && pwd)/$example
if [[ ! -f $source/Dockerfile ]]; then
    echo "error: no Dockerfile in $source" >&2
    echo "hint: \`cargo xtask image --examples\` builds gpu-probe and device-discovery; README.md lists the other examples" >&2
    exit 1
fi

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp -r "$files/." "$context"
find "$source" -name '*.cmd' -exec cp {} "$context" \;

docker buildx build \
    --platform windows/amd64 \
    --build-arg "BASE=mcr.microsoft.com/windows/server:$tag" \
    --file "$source/Dockerfile" \
    --tag "$REGISTRY/directx-examples/$example:$tag" \
    --provenance=false \
    --push \
    "$context"
