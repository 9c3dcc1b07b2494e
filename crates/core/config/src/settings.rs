//! The settings of a driver model: what a configuration file and the environment change of its
//! default policy.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use devices::{
    AdditionalMounts, AllocationPolicy, ContainerPolicy, DeviceClass, DriverModel, ModelPolicy,
    MultiDevice, ResourceName, RuntimeMounts, SharedRequests, Visibility,
};
use host::{DeviceName, FileName};
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::any_case::AnyCase;
use crate::reference::{Described, KeyReference};
use crate::rules::{self, RuleFile};
use crate::setting_types::{AtLine, InFile, List, Mounts, PerModel, Setting, Switch};
use crate::values::{Choice, MAX_MULTITENANCY, MAX_REMOVAL_GRACE, Number, Parsed, positive};

/// What is configured for a driver model.
pub(crate) struct Settings {
    pub(crate) policy: ModelPolicy,
    /// Whether the names of resources whose devices are shared get the suffix `.shared`.
    pub(crate) rename_shared: bool,
}

impl Settings {
    /// The settings without a configuration.
    pub(crate) fn defaults(model: DriverModel) -> Settings {
        Settings { policy: ModelPolicy::for_model(model), rename_shared: false }
    }

    fn container(&mut self) -> &mut ContainerPolicy {
        Arc::make_mut(&mut self.policy.container)
    }
}

/// Defines the settings in the order of `docs/configuration.md`, which is generated from them: the
/// meaning in Markdown, the field, the key, the type and an example of a value that is not the
/// default. The first closure reads what applies from [`Settings`], the second one sets it.
///
/// A driver model that ignores the key stands behind the key.
///
/// The settings belong to one driver model. Each model may have its own file, so a file may give
/// every key another value for it. A key whose type is [`PerModel`] may also map driver models to
/// values within one file, which several models read.
macro_rules! settings {
    ($(
        $(#[doc = $meaning:literal])+
        $field:ident $key:literal $(not for $ignoring:ident)?: $type:ty = $example:literal,
            $get:expr, $set:expr;
    )*) => {
        /// What a file sets, or the environment. Its keys are those of a file, matched without
        /// case.
        ///
        /// An empty value means unset: the earlier plugins read it so, and a list whose entries
        /// are all commented out has one.
        #[derive(Deserialize, Default)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct SetValues {
            $(#[serde(rename = $key)] pub(crate) $field: Option<InFile<$type>>,)*
            pub(crate) resources: Option<Vec<Spanned<AnyCase<RuleFile>>>>,
        }

        impl SetValues {
            /// What is set here, else what is set in `file`.
            pub(crate) fn or(self, file: SetValues) -> SetValues {
                SetValues {
                    $($field: self.$field.or(file.$field),)*
                    resources: self.resources.or(file.resources),
                }
            }

            /// The keys that are set and that `model` ignores.
            pub(crate) fn ignored_by(&self, model: DriverModel) -> Vec<&'static str> {
                let keys = [$($(
                    (self.$field.is_some() && model == DriverModel::$ignoring).then_some($key),
                )?)*];
                keys.into_iter().flatten().collect()
            }

            /// Changes `settings` to what is set.
            pub(crate) fn apply(self, settings: &mut Settings) {
                let model = settings.policy.model;
                $(if let Some(value) = self.$field.and_then(|set| <$type>::of(set, model)) {
                    let set: fn(&mut Settings, $type) = $set;
                    set(settings, value);
                })*
            }
        }

        impl Settings {
            /// Every setting as text, by its key.
            pub(crate) fn texts(&self) -> Vec<(&'static str, String)> {
                vec![$(($key, {
                    let get: fn(&Settings) -> _ = $get;
                    get(self).to_string()
                }),)*]
            }
        }

        /// The keys of the settings, with the keys of a mapping in their values.
        pub(crate) fn nested_keys() -> Vec<(&'static str, &'static [&'static str])> {
            vec![$(($key, <$type>::nested_keys()),)*]
        }

        /// The keys of a configuration file, in the order of the documentation.
        #[must_use]
        pub fn reference() -> Vec<KeyReference> {
            let defaults = Settings::defaults(DriverModel::Wddm).texts();
            let mut defaults = defaults.into_iter().map(|(_, text)| text);
            let mut keys = vec![$(KeyReference {
                key: $key,
                values: <$type>::values(),
                default: defaults.next(),
                meaning: concat!($($meaning),+).trim(),
                example: $example,
            },)*];
            keys.push(rules::reference());
            keys
        }
    };
}

settings! {
    /// number of containers that [share](sharing.md) one device; 0 means 1
    multitenancy "multitenancy": Number<0, MAX_MULTITENANCY> = "4",
        |s| s.policy.sharing.replicas,
        |s, number| s.policy.sharing.replicas = positive(number);

    /// whether to advertise integrated adapters, which are built into the processor
    include_integrated "includeIntegrated": Switch = "true",
        |s| s.policy.include_integrated,
        |s, Switch(on)| s.policy.include_integrated = on;

    /// whether to advertise detachable adapters, which can be removed while the host runs
    include_detachable "includeDetachable": Switch = "true",
        |s| s.policy.include_detachable,
        |s, Switch(on)| s.policy.include_detachable = on;

    /// files of the driver store to mount into `C:\Windows\System32`, in addition to those that the
    /// driver names
    additional_mounts "additionalMounts" not for Legacy: Mounts
        = r"{nvidia: [{source: 'sub\a.dll', destination: b.dll}], '0x1a03': [{source: c.dll}]}",
        |s| mounts_text(&s.policy.container.additional),
        |s, Mounts(mounts)| s.container().additional = mounts;

    /// the same for `C:\Windows\SysWOW64`, on hosts that have it
    additional_mounts_wow64 "additionalMountsWow64" not for Legacy: Mounts
        = r"{amd: [{source: 'B*\amfrt32.dll', destination: amfrt32.dll}]}",
        |s| mounts_text(&s.policy.container.additional_wow64),
        |s, Mounts(mounts)| s.container().additional_wow64 = mounts;

    /// which [runtime files](#runtime-files) to mount
    runtime_mounts "runtimeMounts" not for Legacy: Parsed<Choice<RuntimeMounts>> = "always",
        |s| s.policy.container.runtime_mounts,
        |s, Parsed(Choice(files))| s.container().runtime_mounts = files;

    /// whether to mount the driver's [files for 32-bit programs](#runtime-files)
    runtime_files_wow64 "runtimeFilesWow64" not for Legacy: Switch = "false",
        |s| !s.policy.container.omit_wow64,
        |s, Switch(on)| s.container().omit_wow64 = !on;

    /// destinations that are never mounted; case-insensitive
    exclude_mounts "excludeMounts" not for Legacy: List<FileName> = "[nvcuda.dll, OpenCL.dll]",
        |s| list_text(&s.policy.container.exclude_mounts),
        |s, names| s.container().exclude_mounts = names.into();

    /// which device a container gets: the one with the fewest replicas in use (`distributed`), or
    /// with the most ([`packed`](sharing.md#spread-or-pack))
    allocation_policy "allocationPolicy": Parsed<Choice<AllocationPolicy>> = "packed",
        |s| s.policy.sharing.allocation,
        |s, Parsed(Choice(policy))| s.policy.sharing.allocation = policy;

    /// what a container gets that requests [several
    /// devices](#several-devices-in-one-container)
    multi_device "multiDevice" not for Legacy: Parsed<Choice<MultiDevice>> = "reject",
        |s| s.policy.container.multi_device,
        |s, Parsed(Choice(answer))| s.container().multi_device = answer;

    /// the device interface class for [several devices](#several-devices-in-one-container); `mcdm`
    /// has no default
    device_class "deviceClass": PerModel<DeviceClass>
        = "{wddm: '{1024e4c9-47c9-48d3-b4a8-f9df78523b53}'}",
        |s| text_or(s.policy.device_class(), "none"),
        |s, PerModel(class)| s.container().device_class = Some(class);

    /// how many replicas of a [shared
    /// resource](sharing.md#keep-pods-from-requesting-several-replicas) one container may request
    shared_requests "sharedRequests": Parsed<Choice<SharedRequests>> = "one",
        |s| s.policy.sharing.shared_requests,
        |s, Parsed(Choice(number))| s.policy.sharing.shared_requests = number;

    /// whether the names of shared resources end with
    /// [`.shared`](sharing.md#keep-pods-from-getting-a-shared-device-by-mistake)
    rename_shared "renameShared": AtLine<Switch> = "true",
        |s| s.rename_shared,
        |s, AtLine { value: Switch(on), .. }| s.rename_shared = on;

    /// whether to report each device's NUMA node to the kubelet. Most Windows kubelets ignore it;
    /// some refuse pods because of it
    publish_numa "publishNuma": Switch = "true",
        |s| s.policy.publish_numa,
        |s, Switch(on)| s.policy.publish_numa = on;

    /// how long a [device that disappeared](drivers.md#devices-that-disappear) stays listed as
    /// unhealthy
    removal_grace "removalGraceSeconds": Number<0, MAX_REMOVAL_GRACE> = "5",
        |s| s.policy.removal_grace.as_secs(),
        |s, Number(seconds)| s.policy.removal_grace = Duration::from_secs(seconds);

    /// whether to set [variables](visibility.md#variables) that name the devices of a container
    environment_hints "environmentHints": Switch = "false",
        |s| !s.policy.container.omit_environment_hints,
        |s, Switch(on)| s.container().omit_environment_hints = !on;

    /// `launcher`: containers also get [`directx-visible`](visibility.md). `required`: devices are
    /// also unhealthy while the node lacks it. Both need `environmentHints`
    visibility "visibility": AtLine<Parsed<Choice<Visibility>>> = "off",
        |s| s.policy.container.visibility,
        |s, AtLine { value: Parsed(Choice(visibility)), .. }| s.container().visibility = visibility;

    /// devices that are [out of service](health.md#take-a-device-out-of-service)
    cordoned_devices "cordonedDevices": List<DeviceName>
        = r"['PCIROOT(0)#PCI(1B00)', 'PCI\VEN_10DE\1']",
        |s| list_text(&s.policy.cordoned),
        |s, names| s.policy.cordoned = names.into();

    /// the resource's name. `mcdm` has the default `directx.microsoft.com/compute`, and `legacy`
    /// `microsoft.com/directx`
    resource_name "resourceName": AtLine<Parsed<ResourceName>> = "example.com/gpu",
        |s| s.policy.resource.clone(),
        |s, AtLine { value: Parsed(name), .. }| s.policy.resource = name;
}

impl Described for FileName {
    fn values() -> String {
        "file names".to_owned()
    }
}

impl Described for DeviceName {
    fn values() -> String {
        "device IDs or location paths".to_owned()
    }
}

impl Described for DeviceClass {
    fn values() -> String {
        "a GUID".to_owned()
    }
}

impl Described for ResourceName {
    fn values() -> String {
        "`domain/name`".to_owned()
    }
}

fn text_or<T: Display>(value: Option<T>, otherwise: &str) -> String {
    value.map_or_else(|| otherwise.to_owned(), |value| value.to_string())
}

fn list_text<T: Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(T::to_string).collect();
    format!("[{}]", texts.join(", "))
}

fn mounts_text(mounts: &AdditionalMounts) -> String {
    let mounts = mounts.iter().flat_map(|(vendor, files)| {
        files.iter().map(move |f| format!("{vendor}: {} => {}", f.source, f.destination))
    });
    list_text(&mounts.collect::<Vec<_>>())
}
