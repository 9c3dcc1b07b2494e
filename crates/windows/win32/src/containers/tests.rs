use super::*;

/// The name of a container of the pod `pod` in namespace `default`.
pub(crate) fn name(pod: &str, container: &str) -> ContainerName {
    let [namespace, pod, container] = ["default", pod, container].map(str::to_owned);
    ContainerName { namespace, pod, container }
}

/// Writes the specification of a container, as containerd 2.1 does.
pub(crate) fn write(folder: &Path, id: &str, name: &ContainerName) {
    let text = format!(
        r#"{{"ociVersion":"1.2.1","process":{{"args":["render.exe"],"cwd":"C:\\"}},
        "annotations":{{"io.kubernetes.cri.container-name":"{}",
        "io.kubernetes.cri.container-type":"container",
        "io.kubernetes.cri.image-name":"example.com/render:1",
        "io.kubernetes.cri.sandbox-id":"5c8b","io.kubernetes.cri.sandbox-name":"{}",
        "io.kubernetes.cri.sandbox-namespace":"{}","io.kubernetes.cri.sandbox-uid":"1-2-3"}},
        "windows":{{"layerFolders":["C:\\l"],"devices":[{{"idType":"vpci-location-path"}}]}}}}"#,
        name.container, name.pod, name.namespace
    );
    write_text(folder, id, &text);
}

fn write_text(folder: &Path, id: &str, text: &str) {
    std::fs::create_dir_all(folder.join(id)).unwrap();
    std::fs::write(folder.join(id).join(SPECIFICATION), text).unwrap();
}

fn found(
    containers: &mut Containers,
    folder: &Path,
    wanted: &[&ContainerName],
) -> Vec<(String, ContainerName)> {
    containers.find(folder, &wanted.iter().map(|name| (*name).clone()).collect()).unwrap()
}

#[test]
fn only_wanted_containers_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let main = name("render", "main");
    let sidecar = name("render", "sidecar");
    write(folder.path(), "a1", &main);
    write(folder.path(), "a2", &sidecar);
    write(folder.path(), "a3", &name("other", "main"));
    let sandbox = r#"{"annotations":{"io.kubernetes.cri.container-type":"sandbox",
        "io.kubernetes.cri.sandbox-name":"render","io.kubernetes.cri.sandbox-namespace":"default"}}"#;
    write_text(folder.path(), "5c8b", sandbox);
    write_text(folder.path(), "buildkit", "{}");
    let mut containers = Containers::default();
    for _ in 0..2 {
        let wanted = [&main, &name("gone", "main")];
        assert_eq!(
            found(&mut containers, folder.path(), &wanted),
            [("a1".to_owned(), main.clone())]
        );
    }
    assert_eq!(found(&mut containers, folder.path(), &[&sidecar]).len(), 1);
    assert!(found(&mut containers, folder.path(), &[]).is_empty());
}

#[test]
fn containers_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let main = name("render", "main");
    let mut containers = Containers::default();
    assert!(found(&mut containers, folder.path(), &[&main]).is_empty());
    write(folder.path(), "a1", &main);
    assert_eq!(found(&mut containers, folder.path(), &[&main]).len(), 1);
    std::fs::remove_dir_all(folder.path().join("a1")).unwrap();
    assert!(found(&mut containers, folder.path(), &[&main]).is_empty());
    assert!(containers.known.is_empty());
}

/// containerd may still be writing the file.
#[test]
fn an_incomplete_specification_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let main = name("render", "main");
    let mut containers = Containers::default();
    write_text(folder.path(), "a1", r#"{"annotations":{"io.kuber"#);
    std::fs::create_dir(folder.path().join("a2")).unwrap();
    assert!(found(&mut containers, folder.path(), &[&main]).is_empty());
    write(folder.path(), "a1", &main);
    write(folder.path(), "a2", &main);
    assert_eq!(found(&mut containers, folder.path(), &[&main]).len(), 2);
}

#[test]
fn hostile_folders_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let main = name("render", "main");
    write_text(folder.path(), "deep", &"[".repeat(100_000));
    write_text(folder.path(), "numbers", r#"{"annotations":{"io.kubernetes.cri.sandbox-name":7}}"#);
    write_text(folder.path(), "list", "[]");
    std::fs::create_dir_all(folder.path().join("folder").join(SPECIFICATION)).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let mut containers = Containers::default();
    assert!(found(&mut containers, folder.path(), &[&main]).is_empty());
}
