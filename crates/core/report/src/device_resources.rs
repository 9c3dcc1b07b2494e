//! The resource to which each device belongs, and devices that moved to another one: because their
//! driver model changed, or the configuration.

use std::collections::HashMap;

use devices::ResourceName;
use host::PnpId;

use crate::node_report::{NodeReport, ReportedDevice};

/// The resource that each device had when it was seen the last time. A device that is away for
/// long, as during the installation of a driver, is not forgotten.
#[derive(Clone, Debug, Default)]
pub struct DeviceResources(HashMap<PnpId, ResourceName>);

/// A device that belongs to another resource than before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MovedDevice {
    pub id: PnpId,
    /// The name that Device Manager shows.
    pub description: String,
    /// Its resource before.
    pub from: ResourceName,
    /// Its resource now.
    pub to: ResourceName,
}

impl DeviceResources {
    /// Keeps the resources of the devices in `report`, and returns the devices that moved.
    pub fn update(&mut self, report: &NodeReport) -> Vec<MovedDevice> {
        let present: Vec<(&ResourceName, &ReportedDevice)> = report
            .resources
            .iter()
            .flat_map(|resource| resource.devices.iter().map(|device| (&resource.name, device)))
            .filter(|(_, device)| device.is_present())
            .collect();
        let mut moved = Vec::new();
        for (name, device) in present {
            let before = self.0.insert(device.id.clone(), name.clone());
            moved.extend(before.filter(|from| from != name).map(|from| MovedDevice {
                id: device.id.clone(),
                description: device.description.clone(),
                from,
                to: name.clone(),
            }));
        }
        moved
    }
}
