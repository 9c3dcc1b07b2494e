//! The settings of a driver model: what a configuration file, the environment and the defaults say.

use serde::Deserialize;
use serde_saphyr::Spanned;

use devices::{
    AllocationPolicy, DeviceName, DriverModel, FileName, MultiDevice, ResourceName, RuntimeMounts,
    SharedRequests, Visibility,
};

use crate::any_case::AnyCase;
use crate::rules::RuleFile;
use crate::setting_types::{AtLine, Class, Integrated, List, Mounts, PerModel, Resets, Switch};
use crate::values::{Choice, MAX_MULTITENANCY, MAX_REMOVAL_GRACE, Number, Parsed};

/// The type of a value in a file.
macro_rules! in_file {
    ($type:ty) => { $type };
    ($type:ty, model) => { PerModel<$type> };
}

/// What a value in a file means for a driver model.
macro_rules! of_model {
    ($value:expr, $model:ident) => {
        $value
    };
    ($value:expr, $model:ident, model) => {
        $value.and_then(|values| values.of($model))
    };
}

/// Defines the settings: for each one its field, its key, its type and its default for a driver
/// model. `docs/configuration.md` has them in this order.
///
/// The value of a key that is marked `per model` may be one for each driver model.
macro_rules! settings {
    ($($field:ident $key:literal $(per $model:ident)?: $type:ty = $default:expr;)*) => {
        /// What a file sets, or the environment. Its keys are those of a file, matched without
        /// case.
        ///
        /// An empty value means unset: the earlier plugins read it so, and a list whose entries
        /// are all commented out has one.
        #[derive(Deserialize, Default)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct SetValues {
            $(#[serde(rename = $key)] pub(crate) $field: Option<in_file!($type $(, $model)?)>,)*
            pub(crate) resources: Option<Vec<Spanned<AnyCase<RuleFile>>>>,
        }

        /// The value of every setting.
        pub(crate) struct Settings {
            $(pub(crate) $field: $type,)*
        }

        impl SetValues {
            /// The keys of the settings that are set.
            pub(crate) fn keys(&self) -> Vec<&'static str> {
                let keys = [$(self.$field.as_ref().map(|_| $key),)*];
                keys.into_iter().flatten().collect()
            }

            /// Every setting: its value here, else in `file`, else the default for `model`.
            pub(crate) fn or(self, file: SetValues, model: DriverModel) -> Settings {
                Settings {
                    $($field: {
                        let set = self.$field.or(file.$field);
                        let default: fn(DriverModel) -> $type = $default;
                        of_model!(set, model $(, $model)?).unwrap_or_else(|| default(model))
                    },)*
                }
            }
        }

        impl Settings {
            /// Every setting as text, by its key.
            pub(crate) fn texts(&self) -> Vec<(&'static str, String)> {
                vec![$(($key, self.$field.to_string()),)*]
            }
        }
    };
}

settings! {
    multitenancy "multitenancy": Number<0, MAX_MULTITENANCY> = |_| Number(1);
    include_integrated "includeIntegrated": Integrated = Integrated::default_for;
    include_detachable "includeDetachable": Switch = |model| Switch(model == DriverModel::Legacy);
    additional_mounts "additionalMounts": Mounts = |_| Mounts::default();
    additional_mounts_wow64 "additionalMountsWow64": Mounts = |_| Mounts::default();
    runtime_mounts "runtimeMounts": Parsed<Choice<RuntimeMounts>> = |_| Parsed::default();
    runtime_files_wow64 "runtimeFilesWow64": Switch = |_| Switch(true);
    exclude_mounts "excludeMounts": List<FileName> = |_| List(Vec::new());
    allocation_policy "allocationPolicy": Parsed<Choice<AllocationPolicy>> = |_| Parsed::default();
    multi_device "multiDevice": Parsed<Choice<MultiDevice>> = |_| Parsed::default();
    device_class "deviceClass" per model: Class = Class::default_for;
    shared_requests "sharedRequests": Parsed<Choice<SharedRequests>> = |_| Parsed::default();
    rename_shared "renameShared": AtLine<Switch> = |_| AtLine::nowhere(Switch(false));
    publish_numa "publishNuma": Switch = |_| Switch(false);
    removal_grace "removalGraceSeconds": Number<0, MAX_REMOVAL_GRACE> = |_| Number(60);
    environment_hints "environmentHints": Switch = |_| Switch(true);
    visibility "visibility": AtLine<Parsed<Choice<Visibility>>> = |_| AtLine::nowhere(Parsed::default());
    cdi_devices "cdiDevices": Switch = |_| Switch(false);
    cordoned_devices "cordonedDevices": List<DeviceName> = |_| List(Vec::new());
    unhealthy_after_resets "unhealthyAfterResets": Resets = |_| Resets::default();
    resource_name "resourceName": AtLine<Parsed<ResourceName>> = default_resource;
}

/// The default resource name of a driver model, as in the earlier plugins.
fn default_resource(model: DriverModel) -> AtLine<Parsed<ResourceName>> {
    let name = match model {
        DriverModel::Wddm => "directx.microsoft.com/display",
        DriverModel::Mcdm => "directx.microsoft.com/compute",
        DriverModel::Legacy => "microsoft.com/directx",
    };
    let name = name.parse().expect("the default names are extended resource names");
    AtLine::nowhere(Parsed(name))
}
