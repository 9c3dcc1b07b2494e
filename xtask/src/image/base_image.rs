//! A Windows image that an example image is built on.
//!
//! The licence of Windows does not permit everybody to copy its layers, and they are large.
//! The example's manifest therefore refers to them: whoever pulls the example gets them
//! from their own registry.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::digest::Digest;
use super::options::BaseOptions;

/// The media type of a layer that a registry need not have itself.
const FOREIGN_LAYER: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";

/// How to get the two files.
const HINT: &str = "get both files with `skopeo inspect --raw docker://IMAGE@DIGEST` and `skopeo \
                    inspect --config --raw docker://IMAGE@DIGEST`, where DIGEST is that of the \
                    manifest for windows/amd64";

/// A base image.
pub(super) struct BaseImage {
    /// Such as `mcr.microsoft.com/windows/server:ltsc2022`.
    pub(super) name: Option<String>,
    /// The digest of its manifest.
    pub(super) digest: Digest,
    pub(super) config: Value,
    /// The descriptors of its layers as foreign layers, lowest first.
    pub(super) layers: Vec<Value>,
}

impl BaseImage {
    /// Reads the files of `options`.
    pub(super) fn read(options: &BaseOptions) -> Result<BaseImage> {
        let manifest = read(&options.manifest)?;
        let config = read(&options.config)?;
        BaseImage::new(options.name.clone(), &manifest, &config)
            .with_context(|| format!("cannot use the base image in {}", options.manifest.display()))
    }

    fn new(name: Option<String>, manifest_bytes: &[u8], config_bytes: &[u8]) -> Result<BaseImage> {
        let manifest = parse(manifest_bytes).context("invalid manifest")?;
        if manifest.get("manifests").is_some() {
            bail!("it is an index of several images, not a manifest\nhint: {HINT}");
        }
        let layers = manifest.get("layers").and_then(Value::as_array);
        let layers = layers.filter(|layers| !layers.is_empty()).with_context(|| {
            format!("it is not an image manifest: it lists no layers\nhint: {HINT}")
        })?;
        check_config(&manifest, config_bytes)?;
        let config = parse(config_bytes).context("invalid configuration")?;
        for (key, expected) in [("os", "windows"), ("architecture", "amd64")] {
            let found = config[key].as_str().unwrap_or_default();
            if found != expected {
                bail!("its {key} is `{found}`, expected `{expected}`");
            }
        }
        let version = config["os.version"].as_str().unwrap_or_default();
        if version.is_empty() {
            bail!(
                "its configuration has no `os.version`, so it is not a Windows image for containers"
            );
        }
        let diff_ids = config["rootfs"]["diff_ids"].as_array().map_or(0, Vec::len);
        if diff_ids != layers.len() {
            bail!("its manifest lists {} layers, its configuration {diff_ids}", layers.len());
        }
        let layers = layers.iter().map(|layer| foreign_layer(layer, name.as_deref()));
        let layers = layers.collect::<Result<_>>()?;
        Ok(BaseImage { name, digest: Digest::of(manifest_bytes), config, layers })
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn parse(bytes: &[u8]) -> Result<Value> {
    let value: Value =
        serde_json::from_slice(bytes).with_context(|| format!("not JSON\nhint: {HINT}"))?;
    if !value.is_object() {
        bail!("not a JSON object\nhint: {HINT}");
    }
    Ok(value)
}

/// The configuration must be the one that the manifest names.
fn check_config(manifest: &Value, config: &[u8]) -> Result<()> {
    let expected = manifest["config"]["digest"].as_str().unwrap_or_default();
    let found = Digest::of(config).to_string();
    if found != expected {
        bail!(
            "the configuration has the digest {found}, the manifest names `{expected}`\nhint: {HINT}"
        );
    }
    Ok(())
}

/// The descriptor of a foreign layer: where it can be downloaded, and its digest.
fn foreign_layer(layer: &Value, base: Option<&str>) -> Result<Value> {
    let media_type = layer["mediaType"].as_str().unwrap_or_default();
    // Docker's `…tar.gzip` and OCI's `…tar+gzip`.
    if !media_type.ends_with("gzip") {
        bail!("the media type of a layer is `{media_type}`, expected a tar archive with gzip");
    }
    let digest = layer["digest"].as_str().unwrap_or_default();
    let size = layer["size"].as_u64();
    let size = size.filter(|_| digest.starts_with("sha256:"));
    let size = size.with_context(|| format!("a layer has no digest or size: {layer}"))?;
    let urls = match (layer.get("urls").and_then(Value::as_array), base) {
        (Some(urls), _) if !urls.is_empty() => json!(urls),
        (_, Some(base)) => json!([blob_url(base, digest)?]),
        (_, None) => bail!(
            "its layers name no address\nhint: name the image with --base-name, such as \
             mcr.microsoft.com/windows/server:ltsc2022"
        ),
    };
    Ok(json!({"mediaType": FOREIGN_LAYER, "digest": digest, "size": size, "urls": urls}))
}

/// Where a registry has the layers of the image `base`.
fn blob_url(base: &str, digest: &str) -> Result<String> {
    let (registry, rest) =
        base.split_once('/').filter(|(registry, _)| registry.contains(['.', ':'])).with_context(
            || format!("invalid base image name `{base}`\nhint: name it REGISTRY/REPOSITORY[:TAG]"),
        )?;
    let repository = rest.split(['@', ':']).next().unwrap_or(rest);
    Ok(format!("https://{registry}/v2/{repository}/blobs/{digest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "mcr.microsoft.com/windows/server:ltsc2022";

    fn config() -> Value {
        json!({"os": "windows", "architecture": "amd64", "os.version": "10.0.20348.1",
               "rootfs": {"type": "layers", "diff_ids": ["sha256:1"]}})
    }

    fn manifest(config: &Value, layer: &Value) -> Value {
        let digest = Digest::of(config.to_string().as_bytes()).to_string();
        json!({"schemaVersion": 2, "config": {"digest": digest}, "layers": [layer]})
    }

    fn layer() -> Value {
        json!({"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
               "digest": "sha256:2", "size": 7})
    }

    fn image(name: Option<&str>, manifest: &Value, config: &Value) -> Result<BaseImage> {
        let bytes = |value: &Value| value.to_string().into_bytes();
        BaseImage::new(name.map(str::to_owned), &bytes(manifest), &bytes(config))
    }

    fn error(name: Option<&str>, manifest: &Value, config: &Value) -> String {
        format!("{:#}", image(name, manifest, config).err().expect("the image is invalid"))
    }

    #[test]
    fn layers_refer_to_the_registry_of_the_base_image() {
        let base = image(Some(NAME), &manifest(&config(), &layer()), &config()).unwrap();
        let url = "https://mcr.microsoft.com/v2/windows/server/blobs/sha256:2";
        let expected =
            json!({"mediaType": FOREIGN_LAYER, "digest": "sha256:2", "size": 7, "urls": [url]});
        assert_eq!(base.layers, [expected]);
    }

    #[test]
    fn addresses_in_the_manifest_are_kept() {
        let mut layer = layer();
        layer["urls"] = json!(["http://127.0.0.1/layer"]);
        let base = image(None, &manifest(&config(), &layer), &config()).unwrap();
        assert_eq!(base.layers[0]["urls"], json!(["http://127.0.0.1/layer"]));
    }

    #[test]
    fn a_layer_without_address_needs_the_name_of_the_image() {
        let manifest = manifest(&config(), &layer());
        let found = error(None, &manifest, &config());
        assert!(found.starts_with("its layers name no address\nhint: "), "{found}");
        let found = error(Some("windows/server"), &manifest, &config());
        assert!(found.starts_with("invalid base image name `windows/server`\nhint: "), "{found}");
    }

    #[test]
    fn other_documents_are_rejected() {
        let index = json!({"schemaVersion": 2, "manifests": []});
        let found = error(Some(NAME), &index, &config());
        assert!(found.starts_with("it is an index of several images"), "{found}");
        let found = error(Some(NAME), &json!({"layers": []}), &config());
        assert!(found.starts_with("it is not an image manifest"), "{found}");
        let found = error(Some(NAME), &json!(1), &config());
        assert!(found.starts_with("invalid manifest: not a JSON object\nhint: "), "{found}");
        let found = BaseImage::new(None, b"<html>", b"{}").err().unwrap();
        assert!(
            format!("{found:#}").starts_with("invalid manifest: not JSON\nhint: "),
            "{found:#}"
        );
    }

    #[test]
    fn the_configuration_must_be_that_of_the_manifest() {
        let other = json!({"os": "windows"});
        let found = error(Some(NAME), &manifest(&config(), &layer()), &other);
        assert!(found.starts_with("the configuration has the digest sha256:"), "{found}");
    }

    #[test]
    fn only_windows_images_are_accepted() {
        let with = |key: &str, value: Value| {
            let mut config = config();
            config[key] = value;
            error(Some(NAME), &manifest(&config, &layer()), &config)
        };
        assert_eq!(with("os", "linux".into()), "its os is `linux`, expected `windows`");
        let found = with("architecture", "arm64".into());
        assert_eq!(found, "its architecture is `arm64`, expected `amd64`");
        assert!(with("os.version", Value::Null).contains("has no `os.version`"));
        let found = with("rootfs", json!({"diff_ids": []}));
        assert_eq!(found, "its manifest lists 1 layers, its configuration 0");
        let mut zstd = layer();
        zstd["mediaType"] = "application/vnd.oci.image.layer.v1.tar+zstd".into();
        let found = error(Some(NAME), &manifest(&config(), &zstd), &config());
        assert!(found.ends_with("expected a tar archive with gzip"), "{found}");
        let broken = json!({"mediaType": "x+gzip", "digest": "sha256:2"});
        let found = error(Some(NAME), &manifest(&config(), &broken), &config());
        assert!(found.starts_with("a layer has no digest or size: "), "{found}");
    }
}
