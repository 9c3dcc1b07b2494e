//! The pods that use a driver which was replaced, and what follows for the cluster. Pure.
//!
//! In come the containers that the device plugin reports and the reaction that the configuration
//! demands; out go whether the node is to be tainted, which pods to annotate, and the containers
//! that are new.

use std::collections::{BTreeMap, BTreeSet};

use cluster::Pod;
use kubelet::OutdatedContainer;
use settings::OnDriverChange;

/// The pods that use a driver which was replaced.
#[derive(Default)]
pub(crate) struct OutdatedPods {
    reaction: OnDriverChange,
    /// `None` until the plugin has reported them.
    containers: Option<BTreeSet<OutdatedContainer>>,
    /// The annotations that were set since the reaction was last changed.
    annotated: BTreeMap<Pod, String>,
}

impl OutdatedPods {
    /// The configuration demands this reaction.
    pub(crate) fn react(&mut self, reaction: OnDriverChange) {
        if self.reaction != reaction {
            self.reaction = reaction;
            self.annotated.clear();
        }
    }

    /// Takes note of a report of the plugin; `None` if it does not know. Returns the containers that
    /// are new.
    pub(crate) fn reported(
        &mut self,
        containers: Option<BTreeSet<OutdatedContainer>>,
    ) -> Vec<OutdatedContainer> {
        let Some(containers) = containers else { return Vec::new() };
        let known = self.containers.take().unwrap_or_default();
        let new = containers.difference(&known).cloned().collect();
        self.containers = Some(containers);
        let values = self.values();
        self.annotated.retain(|pod, _| values.contains_key(pod));
        new
    }

    /// Whether the node is to be tainted; `None` if that is not known, so that its taint stays.
    pub(crate) fn taints_node(&self) -> Option<bool> {
        match self.reaction {
            OnDriverChange::Taint => self.containers.as_ref().map(|known| !known.is_empty()),
            OnDriverChange::Ignore | OnDriverChange::Annotate => Some(false),
        }
    }

    /// The next pod to annotate, and the value.
    pub(crate) fn next_annotation(&self) -> Option<(Pod, String)> {
        if self.reaction != OnDriverChange::Annotate {
            return None;
        }
        self.values().into_iter().find(|(pod, value)| self.annotated.get(pod) != Some(value))
    }

    /// The pod was annotated, or no longer exists.
    pub(crate) fn annotated(&mut self, pod: Pod, value: String) {
        self.annotated.insert(pod, value);
    }

    /// The annotation of each pod: its drivers, each with the one that has replaced it.
    fn values(&self) -> BTreeMap<Pod, String> {
        let mut changes: BTreeMap<Pod, BTreeSet<String>> = BTreeMap::new();
        for container in self.containers.iter().flatten() {
            let OutdatedContainer { namespace, pod, pod_uid, before, now, .. } = container.clone();
            let pod = Pod { namespace, name: pod, uid: pod_uid };
            changes.entry(pod).or_default().insert(format!("{before} -> {now}"));
        }
        let joined = |changes: BTreeSet<String>| changes.into_iter().collect::<Vec<_>>().join(", ");
        changes.into_iter().map(|(pod, changes)| (pod, joined(changes))).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A container of this pod that uses the first version of a driver.
    pub(crate) fn container(pod: &str, name: &str) -> OutdatedContainer {
        OutdatedContainer {
            namespace: "default".to_owned(),
            pod: pod.to_owned(),
            pod_uid: "1-2".to_owned(),
            container: name.to_owned(),
            device: r"PCI\A".to_owned(),
            before: "1.0.0.1".to_owned(),
            now: "1.0.0.2".to_owned(),
        }
    }

    fn containers(pods: &[&str]) -> BTreeSet<OutdatedContainer> {
        pods.iter().map(|pod| container(pod, "main")).collect()
    }

    #[test]
    fn the_node_is_tainted_while_pods_use_an_earlier_driver_and_the_configuration_demands_it() {
        let mut pods = OutdatedPods::default();
        assert_eq!(pods.taints_node(), Some(false), "a taint from before a restart is removed");
        pods.react(OnDriverChange::Taint);
        assert_eq!(pods.taints_node(), None, "a taint from before a restart stays");
        assert_eq!(pods.reported(Some(containers(&["a", "b"]))).len(), 2);
        assert_eq!(pods.taints_node(), Some(true));
        assert_eq!(pods.reported(None), []);
        assert_eq!(pods.taints_node(), Some(true), "a plugin that does not answer changes nothing");
        assert_eq!(pods.reported(Some(containers(&["b"]))), []);
        pods.react(OnDriverChange::Annotate);
        assert_eq!(pods.taints_node(), Some(false));
        pods.react(OnDriverChange::Taint);
        assert_eq!(pods.taints_node(), Some(true));
        pods.reported(Some(containers(&[])));
        assert_eq!(pods.taints_node(), Some(false));
    }

    #[test]
    fn each_pod_is_annotated_once_with_all_its_drivers() {
        let mut pods = OutdatedPods::default();
        let other = OutdatedContainer {
            before: "a".to_owned(),
            now: "b".to_owned(),
            ..container("a", "z")
        };
        let several = [container("a", "x"), container("a", "y"), other, container("b", "x")];
        pods.reported(Some(several.into()));
        assert_eq!(pods.next_annotation(), None);
        pods.react(OnDriverChange::Annotate);
        let mut set = Vec::new();
        while let Some((pod, value)) = pods.next_annotation() {
            set.push((pod.name.clone(), value.clone()));
            pods.annotated(pod, value);
        }
        let one = "1.0.0.1 -> 1.0.0.2";
        let expected = [("a", format!("{one}, a -> b")), ("b", one.to_owned())];
        assert_eq!(set, expected.map(|(pod, value)| (pod.to_owned(), value)));
        // Another driver again.
        let later = OutdatedContainer { now: "1.0.0.3".to_owned(), ..container("b", "x") };
        assert_eq!(pods.reported(Some([later].into())).len(), 1);
        let (pod, value) = pods.next_annotation().unwrap();
        assert_eq!((&*pod.name, &*pod.uid, &*value), ("b", "1-2", "1.0.0.1 -> 1.0.0.3"));
        pods.annotated(pod, value);
        // A pod that was reported again after it had gone is another one.
        pods.reported(Some(containers(&[])));
        pods.reported(Some(containers(&["a"])));
        assert_eq!(pods.next_annotation().unwrap().0.name, "a");
    }
}
