//! The `NodeFeature` object of a node: which labels Node Feature Discovery is to set.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch};
use serde_json::json;

use crate::{Client, ClusterError, Node};

pub(crate) const APPLY_FEATURE: &str = "apply the NodeFeature object";
/// The label that names the node to which an object belongs.
const NODE_NAME: &str = "nfd.node.kubernetes.io/node-name";
/// The label that names the program to which an object belongs.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

impl Client {
    /// Makes `labels` the labels that Node Feature Discovery is to set on `node`. The object is in the
    /// namespace of this program and belongs to the node: it is deleted with the node.
    pub async fn apply_node_feature(
        &self,
        node: &Node,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), ClusterError> {
        let kind = GroupVersionKind::gvk("nfd.k8s-sigs.io", "v1alpha1", "NodeFeature");
        let resource = ApiResource::from_gvk(&kind);
        let features: Api<DynamicObject> =
            Api::default_namespaced_with(self.kube.clone(), &resource);
        // Node Feature Discovery's own object has the name of the node.
        let name = format!("{}-{}", self.program, self.node);
        let owner =
            json!({"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": node.uid()});
        let object = Patch::Apply(json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {
                "name": name,
                "labels": {NODE_NAME: self.node, MANAGED_BY: self.program},
                "ownerReferences": [owner],
            },
            // Early releases require every kind of feature.
            "spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": labels},
        }));
        let params = self.apply();
        self.answer(APPLY_FEATURE, features.patch(&name, &params, &object)).await.map(drop)
    }
}
