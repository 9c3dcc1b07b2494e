//! A pod, and the request that annotates it.

use http::Method;
use serde_json::json;

use crate::client::{Body, Call, percent_encoded};
use crate::{Client, ClusterError};

/// A pod by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The unique ID of the object, to change no later pod with the same name. Empty if it is not
    /// known.
    pub uid: String,
}

impl Client {
    /// Sets one annotation of `pod` as `manager`. Others stay.
    ///
    /// # Errors
    /// [`ClusterError::is_not_found`] if the pod is gone, and [`ClusterError::is_other_object`] if
    /// another pod has its name.
    pub async fn annotate(
        &mut self,
        pod: &Pod,
        manager: &str,
        name: &str,
        value: &str,
    ) -> Result<(), ClusterError> {
        let mut metadata = json!({"annotations": {name: value}});
        if !pod.uid.is_empty() {
            metadata["uid"] = pod.uid.as_str().into();
        }
        let (namespace, pod) = (percent_encoded(&pod.namespace), percent_encoded(&pod.name));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}?fieldManager={manager}");
        let body = Body::Merge(json!({"metadata": metadata}));
        self.call(Call { method: Method::PATCH, path, body }).await.map(drop)
    }
}
