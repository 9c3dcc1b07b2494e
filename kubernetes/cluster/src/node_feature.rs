//! The `NodeFeature` object of a node: which labels Node Feature Discovery is to set.

use std::collections::BTreeMap;

use http::Method;
use serde_json::json;

use crate::client::{Body, Call, percent_encoded};
use crate::error::NODE_FEATURES;
use crate::{Client, ClusterError, Node};

/// The group and version of the kind.
const API: &str = "nfd.k8s-sigs.io/v1alpha1";
/// The label that names the node to which an object belongs.
const NODE_NAME: &str = "nfd.node.kubernetes.io/node-name";
/// The label that names the program to which an object belongs.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

impl Client {
    /// Makes `labels` the labels that Node Feature Discovery is to set on `node`, which is called
    /// `name`. The object is in the namespace of this program and belongs to the node: it is
    /// deleted with the node.
    pub async fn apply_node_feature(
        &mut self,
        name: &str,
        manager: &str,
        node: &Node,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), ClusterError> {
        // Node Feature Discovery's own object has the name of the node.
        let object = format!("{manager}-{name}");
        let namespace = percent_encoded(self.namespace());
        let path = format!(
            "/apis/{API}/namespaces/{namespace}{NODE_FEATURES}{}?fieldManager={manager}&force=true",
            percent_encoded(&object)
        );
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid()});
        let body = json!({
            "apiVersion": API, "kind": "NodeFeature",
            "metadata": {
                "name": object,
                "labels": {NODE_NAME: name, MANAGED_BY: manager},
                "ownerReferences": [owner],
            },
            // Early releases require every kind of feature.
            "spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": labels},
        });
        self.call(Call { method: Method::PATCH, path, body: Body::Apply(body) }).await.map(drop)
    }
}
