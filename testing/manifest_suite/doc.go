package manifests
