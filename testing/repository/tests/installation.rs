//! No command of the documentation installs an image that does not exist: the manifests and the
//! chart of a clone name images at a registry that users replace.

#![allow(clippy::unwrap_used, reason = "part of the tests")]

use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// The registry in the files of a clone, which `cargo xtask release` replaces.
const NO_REGISTRY: &str = "registry.example.com";

/// The repository in the files of the chart, which `cargo xtask release` replaces.
const PAGES_OF_THE_REPOSITORY: &str = "https://github.com/OWNER/REPOSITORY/blob/main/";

#[test]
fn documented_commands_install_images_that_exist() {
    let root = root();
    let blocks: Vec<_> = pages(&root).iter().flat_map(|page| blocks(&root, page)).collect();
    let mut faults = Vec::new();
    let mut checked = 0;
    for block in blocks {
        let text: Vec<_> = block.iter().map(|(_, command)| command.as_str()).collect();
        let text = text.join("\n");
        for (place, command) in &block {
            let manifests = manifests(&root, command);
            checked += usize::from(!manifests.is_empty());
            if manifests.iter().any(|manifest| has_no_image(command, &text, manifest)) {
                faults.push(format!("{place}: {command}"));
            }
        }
    }
    assert!(checked > 10, "only {checked} commands apply something of this repository");
    assert!(faults.is_empty(), "replace {NO_REGISTRY}:\n{}", faults.join("\n"));
}

/// Commands that the test above must refuse, and their corrections.
#[test]
fn a_command_must_replace_the_registry() {
    let is_refused = |block: &str| {
        let manifests = manifests(&root(), block);
        assert!(!manifests.is_empty(), "{block}");
        manifests.iter().any(|manifest| has_no_image(block, block, manifest))
    };
    for refused in [
        "kubectl apply -f deploy/ack.yml",
        "kubectl --namespace default create --filename=deploy/ack.yml",
        "kubectl replace -f cloud/install-nvidia-driver.yaml,deploy/ack.yml",
        "sed 's|windows.alibabacloud.com|x|' deploy/ack.yml | kubectl apply -f -",
        "kubectl apply --kustomize deploy",
        "kubectl apply -k deploy/",
        "helm install name deploy/charts/directx-device-plugin --namespace kube-system",
        "helm upgrade name deploy/charts/directx-device-plugin --set image.repository=registry.example.com/a",
        "helm template name deploy/charts/directx-device-plugin --set visibility.enabled=true",
        "ctr images import target/images/directx-device-plugin.tar\nkubectl apply -f deploy/linux.yml",
    ] {
        assert!(is_refused(refused), "{refused}");
    }
    for accepted in [
        "sed 's|registry.example.com|registry.your-company.example|' deploy/ack.yml | kubectl apply -f -",
        "(Get-Content deploy\\ack.yml) -replace 'registry\\.example\\.com', $a | kubectl apply -f -",
        "kubectl apply -f cloud/install-nvidia-driver.yaml",
        "kubectl apply --kustomize examples/kustomize",
        "helm upgrade name deploy/charts/directx-device-plugin --set image.repository=a.example/b",
        "helm upgrade name deploy/charts/directx-device-plugin --reset-then-reuse-values",
        "ctr images import target/images/directx-device-plugin-linux.tar\nkubectl apply -f deploy/linux.yml",
    ] {
        assert!(!is_refused(accepted), "{accepted}");
    }
    assert!(manifests(&root(), "kubectl delete -f deploy/ack.yml").is_empty());
}

/// Registries accept no name with capitals, but owners on GitHub may have them.
#[test]
fn pages_say_that_the_owner_is_in_lower_case() {
    let root = root();
    for page in pages(&root) {
        let text = fs::read_to_string(root.join(&page)).unwrap();
        let is_complete = !text.contains("oci://ghcr.io/OWNER") || text.contains("in lower case");
        assert!(is_complete, "{}: OWNER is in lower case", page.display());
    }
}

/// The chart's README is also shown without the repository, so its links contain the repository's
/// address, which no checker of links knows.
#[test]
fn links_of_the_chart_lead_to_pages_and_headings() {
    let root = root();
    let readme = root.join("deploy/charts/directx-device-plugin/README.md");
    let readme = fs::read_to_string(readme).unwrap();
    assert!(!readme.contains("](../") && !readme.contains("](docs"), "a link is relative");
    let links = readme.lines().filter_map(|line| line.split_once("]: "));
    let links: Vec<_> = links.map(|(_, link)| link).collect();
    assert!(links.len() > 5, "only {} links", links.len());
    for link in links {
        let link = link.strip_prefix(PAGES_OF_THE_REPOSITORY).unwrap_or_else(|| panic!("{link}"));
        let (page, heading) = link.split_once('#').unwrap_or((link, ""));
        let page =
            fs::read_to_string(root.join(page)).unwrap_or_else(|error| panic!("{link}: {error}"));
        let mut headings = page.lines().filter(|line| line.starts_with('#')).map(anchor);
        assert!(heading.is_empty() || headings.any(|found| found == heading), "{link}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages with instructions for users and developers, relative to the root.
fn pages(root: &Path) -> Vec<PathBuf> {
    let folders = ["README.md", "CONTRIBUTING.md", "docs", "cloud", "examples", "deploy"];
    let files = folders.iter().flat_map(|folder| WalkDir::new(root.join(folder)));
    let files = files.map(|entry| entry.unwrap().into_path());
    let pages = files.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.map(|page| page.strip_prefix(root).unwrap().to_owned()).collect()
}

/// The commands in each block of a page, with their places. A backslash or a backtick at the end of
/// a line continues a command.
fn blocks(root: &Path, page: &Path) -> Vec<Vec<(String, String)>> {
    let text = fs::read_to_string(root.join(page)).unwrap();
    let mut lines = text.lines().enumerate();
    let mut blocks = Vec::new();
    while let Some((_, line)) = lines.next() {
        if !line.trim_start().starts_with("```") {
            continue;
        }
        let mut commands: Vec<(String, String)> = Vec::new();
        let mut is_continued = false;
        for (number, line) in lines.by_ref().take_while(|(_, line)| line.trim() != "```") {
            let command = line.trim_end_matches(['\\', '`']);
            if is_continued {
                commands.last_mut().unwrap().1.push_str(command);
            } else {
                commands.push((format!("{}:{}", page.display(), number + 1), command.to_owned()));
            }
            is_continued = command != line;
        }
        blocks.push(commands);
    }
    blocks
}

/// The files or folders of this repository that a command installs in a cluster, or renders with
/// helm, which refuses the registry of a clone.
fn manifests(root: &Path, command: &str) -> Vec<PathBuf> {
    let words: Vec<_> = command.split([' ', '\n', ',', '=', '\'', '"', '(', ')']).collect();
    let has = |names: &[&str]| names.iter().any(|name| words.contains(name));
    let is_installed = has(&["kubectl"]) && has(&["apply", "create", "replace"])
        || has(&["helm"]) && has(&["install", "upgrade", "template"]);
    let paths = words.iter().filter(|word| word.contains(['/', '\\']) || **word == "deploy");
    let paths = paths.map(|word| root.join(word.replace('\\', "/")));
    let manifests = paths.filter(|path| {
        let is_manifest = path.extension().is_some_and(|name| name == "yml" || name == "yaml");
        path.is_dir() || is_manifest && path.is_file()
    });
    if is_installed { manifests.collect() } else { Vec::new() }
}

/// Whether a command, in its block, installs a manifest, a kustomization or a chart whose image
/// nobody can pull.
fn has_no_image(command: &str, block: &str, manifest: &Path) -> bool {
    if manifest.join("Chart.yaml").exists() {
        let keeps_values = command.contains("--reset-then-reuse-values");
        let sets_image = command.contains("image.repository=");
        let is_placeholder = command.contains(&format!("image.repository={NO_REGISTRY}"));
        return is_placeholder || !keeps_values && !sets_image;
    }
    if manifest.is_dir() {
        let names = ["kustomization.yaml", "kustomization.yml"];
        let text = names.iter().find_map(|name| fs::read_to_string(manifest.join(name)).ok());
        let has_line = |line: &str| line.starts_with("  newName: ");
        return !text.unwrap_or_default().lines().any(has_line);
    }
    let text = fs::read_to_string(manifest).unwrap();
    let prefix = format!("{NO_REGISTRY}/");
    let mut images = text.split(&prefix).skip(1).map(|rest| rest.split(':').next().unwrap());
    let is_replaced = command.contains(&format!("s|{NO_REGISTRY}|"))
        || command.contains(&format!("-replace '{}'", NO_REGISTRY.replace('.', "\\.")));
    // An archive of `cargo xtask image` has the image's name in the manifest.
    let is_imported = |image| block.contains(&format!("target/images/{image}.tar"));
    !is_replaced && !images.all(is_imported)
}

/// The fragment of GitHub's address for a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let text = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    text.collect::<String>().replace(' ', "-")
}
