//! Whether the lists of Windows contain the same adapters.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::api::Api;
use crate::outcome::{Kind, Outcome};

/// The lists that are compared. Other APIs contain only the devices whose drivers support them.
const LISTS: [Api; 3] = [Api::D3dkmt, Api::Dxgi, Api::Dxcore];

/// An adapter that not every list contains.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Difference {
    pub(crate) luid: i64,
    pub(crate) listed_by: Vec<&'static str>,
    pub(crate) not_listed_by: Vec<&'static str>,
}

/// The hardware adapters that some of the lists lack, by their LUIDs. A list that could not be
/// read is not compared.
pub(crate) fn differences(outcomes: &[(Api, &Outcome)]) -> Vec<Difference> {
    let lists: Vec<(Api, BTreeSet<i64>)> = outcomes
        .iter()
        .filter(|(api, _)| LISTS.contains(api))
        .filter_map(|(api, outcome)| Some((*api, luids(outcome)?)))
        .collect();
    let all: BTreeSet<i64> = lists.iter().flat_map(|(_, luids)| luids).copied().collect();
    let mut differences = Vec::new();
    for luid in all {
        let (with, without): (Vec<_>, Vec<_>) =
            lists.iter().partition(|(_, luids)| luids.contains(&luid));
        if !without.is_empty() {
            let [listed_by, not_listed_by] =
                [with, without].map(|lists| lists.iter().map(|(api, _)| api.name()).collect());
            differences.push(Difference { luid, listed_by, not_listed_by });
        }
    }
    differences
}

fn luids(outcome: &Outcome) -> Option<BTreeSet<i64>> {
    let Outcome::Listed { devices, .. } = outcome else { return None };
    let hardware = devices.iter().filter(|device| device.info.kind == Kind::Hardware);
    Some(hardware.filter_map(|device| device.info.luid).collect())
}

impl Difference {
    /// The meaning of the difference, if it is known.
    pub(crate) fn meaning(&self) -> Option<&'static str> {
        if self.not_listed_by.contains(&Api::Dxgi.name())
            && self.listed_by.contains(&Api::Dxcore.name())
        {
            Some("a compute-only device, which only DXCore and Direct3D 12 offer")
        } else if self.listed_by == [Api::D3dkmt.name()] {
            Some("the driver's files for DirectX are not visible in the container")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{DeviceInfo, DeviceOutcome, Fault, Library};

    fn listed(luids: &[i64]) -> Outcome {
        let devices = luids.iter().map(|luid| DeviceOutcome {
            info: DeviceInfo { luid: Some(*luid), ..DeviceInfo::default() },
            fault: None,
            first_run_milliseconds: None,
        });
        Outcome::Listed { library: Library::new("x"), devices: devices.collect() }
    }

    #[test]
    fn adapters_that_a_list_lacks_are_named_with_their_meaning() {
        let kernel = listed(&[1, 2, 3]);
        let dxgi = listed(&[1]);
        let dxcore = listed(&[1, 2]);
        let outcomes = [(Api::D3dkmt, &kernel), (Api::Dxgi, &dxgi), (Api::Dxcore, &dxcore)];
        let found = differences(&outcomes);
        assert_eq!(found.iter().map(|found| found.luid).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(found[0].listed_by, ["d3dkmt", "dxcore"]);
        assert!(found[0].meaning().unwrap().starts_with("a compute-only device"));
        assert!(found[1].meaning().unwrap().contains("files for DirectX are not visible"));
    }

    #[test]
    fn lists_that_cannot_be_read_and_other_apis_are_not_compared() {
        let broken = Outcome::Broken { library: None, fault: Fault::new("x") };
        let dxgi = listed(&[1]);
        let vulkan = listed(&[5]);
        let outcomes = [(Api::Dxgi, &dxgi), (Api::Dxcore, &broken), (Api::Vulkan, &vulkan)];
        assert_eq!(differences(&outcomes), []);
    }
}
