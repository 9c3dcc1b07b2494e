//! How the supervisor follows changes of what it serves: it adds, replaces and ends resources.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::{ManagedResource, RunError, Supervisor};
use crate::endpoint;
use crate::resource::Resource;
use crate::transport::Transport;

impl<T: Transport> Supervisor<T> {
    /// Manages exactly the resources that are served now. A resource that stays keeps its
    /// registration.
    ///
    /// # Errors
    /// The resources cannot be served, now or at all.
    pub(super) fn follow_served(&mut self) -> Result<(), RunError> {
        let listed = self.served.borrow_and_update().resources.clone();
        check(&listed)?;
        let now = Instant::now();
        let before = self.resources.drain(..).chain(self.ending.drain(..));
        let mut before: HashMap<String, ManagedResource> =
            before.map(|managed| (managed.resource.name().to_owned(), managed)).collect();
        for resource in listed {
            // A resource that is still ending must not be registered before it has ended.
            let managed = before.remove(resource.name());
            let mut managed =
                managed.unwrap_or_else(|| ManagedResource::new(Arc::clone(&resource), now));
            if !Arc::ptr_eq(&managed.resource, &resource) {
                managed.resource = resource;
                managed.registration.resource_replaced();
            }
            self.resources.push(managed);
        }
        for (_, removed) in before {
            self.end(removed);
        }
        Ok(())
    }

    /// Ends a resource: its streams, its calls and its connections, and removes its socket.
    fn end(&mut self, mut managed: ManagedResource) {
        if let Some(endpoint) = managed.registration.end() {
            tracing::info!(resource = managed.resource.name(), "resource removed");
            self.close_endpoint(endpoint);
        }
        // Ignored: the log has the error of the attempt.
        let _ = endpoint::remove_leftover(&self.transport, &mut managed.leftover);
        self.ending.push(managed);
    }

    /// Forgets removed resources to which no kubelet is connected any more.
    pub(super) fn forget_ended(&mut self) {
        let now = Instant::now();
        self.ending.retain(|managed| !managed.registration.has_ended(now));
    }
}

fn check(resources: &[Arc<dyn Resource>]) -> Result<(), RunError> {
    let mut names: Vec<&str> = resources.iter().map(|resource| resource.name()).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Err(RunError::NoResources);
    }
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(duplicate) => Err(RunError::Duplicate(duplicate[0].to_owned())),
        None => Ok(()),
    }
}
