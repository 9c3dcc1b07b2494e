//! The GPUs and NPUs that `--gpu` can name: those of a table, and any other whose vendor is in its
//! name.

use std::fmt::Write as _;

use anyhow::anyhow;
use clap::ValueEnum;
use command_line::Failure;
use config::closest;
use devices::DriverModel;
use host::Vendor;

/// A value of `--gpu`.
pub(crate) struct GpuArgument {
    pub(crate) model: Model,
    /// How its driver runs, if the user says so.
    pub(crate) mode: Option<Mode>,
}

pub(crate) enum Model {
    Known(&'static Gpu),
    /// Only the name is known, and what follows from it.
    Other(OtherGpu),
}

pub(crate) struct OtherGpu {
    pub(crate) name: String,
    pub(crate) vendor: u32,
    /// Whether it is a part of a processor.
    pub(crate) integrated: bool,
}

/// What follows the name after a colon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Mode {
    /// A GPU for display and compute.
    Wddm,
    /// A compute-only GPU.
    Mcdm,
    /// No GPU, but a neural processor.
    Npu,
}

/// A known GPU or NPU.
pub(crate) struct Gpu {
    /// The name of its model in short, which users write.
    pub(crate) name: &'static str,
    /// The name that its driver gives it.
    pub(crate) description: &'static str,
    pub(crate) vendor: u32,
    /// Its PCI device ID.
    pub(crate) device: u32,
    /// The memory of one GPU in GB.
    pub(crate) memory_gb: u64,
    /// Whether it can start in MCDM mode.
    pub(crate) mcdm: McdmStart,
}

/// Whether a GPU can start in MCDM mode. NVIDIA's data center GPUs, which started in TCC mode, can
/// from driver R595 on (`docs/installation.md`, driver mode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum McdmStart {
    FromR595,
    /// Not a data center GPU, or too old for that driver: R580 is the last one for Maxwell, Pascal and
    /// Volta ("Unix graphics feature deprecation schedule" of NVIDIA, which shares its branches with
    /// Windows).
    Never,
}
use McdmStart::{FromR595, Never};

// Vendor IDs of the PCI ID Repository (pci.ids).
pub(crate) const AMD: u32 = Vendor::Amd.pci_id();
pub(crate) const INTEL: u32 = Vendor::Intel.pci_id();
pub(crate) const NVIDIA: u32 = Vendor::Nvidia.pci_id();
pub(crate) const QUALCOMM: u32 = Vendor::Qualcomm.pci_id();

/// GPUs of Windows nodes in clouds and data centers, in the order of their names.
///
/// Device IDs are from the PCI ID Repository (pci.ids, 2025-07-11), whose name of the device is in
/// the comment. The memory is from the data sheets of NVIDIA (nvidia.com/en-us/data-center), the
/// table of GPU specifications of AMD's `ROCm`, and the product page of Intel.
pub(crate) const GPUS: [Gpu; 17] = [
    // GA102GL [A10]
    nvidia("A10", "NVIDIA A10", 0x2236, 24, FromR595),
    // GA100 [A100 PCIe 80GB]
    nvidia("A100", "NVIDIA A100 80GB PCIe", 0x20B5, 80, FromR595),
    // GA107GL [A2 / A16]; the board has four GPUs with 16 GB each.
    nvidia("A16", "NVIDIA A16", 0x25B6, 16, FromR595),
    // GA107GL [A2 / A16]
    nvidia("A2", "NVIDIA A2", 0x25B6, 16, FromR595),
    // ATS-M [Data Center GPU Flex 170]
    Gpu {
        name: "Flex 170",
        description: "Intel(R) Data Center GPU Flex 170",
        vendor: INTEL,
        device: 0x56C0,
        memory_gb: 16,
        mcdm: Never,
    },
    // GH100 [H100 PCIe]
    nvidia("H100", "NVIDIA H100 PCIe", 0x2331, 80, FromR595),
    // AD104GL [L4]
    nvidia("L4", "NVIDIA L4", 0x27B8, 24, FromR595),
    // AD102GL [L40]
    nvidia("L40", "NVIDIA L40", 0x26B5, 48, FromR595),
    // AD102GL [L40S]
    nvidia("L40S", "NVIDIA L40S", 0x26B9, 48, FromR595),
    // GM204GL [Tesla M60]; the board has two GPUs with 8 GB each.
    nvidia("M60", "NVIDIA Tesla M60", 0x13F2, 8, Never),
    // GP102GL [Tesla P40]
    nvidia("P40", "NVIDIA Tesla P40", 0x1B38, 24, Never),
    // AD102GL [RTX 6000 Ada Generation]; a workstation GPU, which starts in WDDM mode.
    nvidia("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation", 0x26B1, 48, Never),
    // GB202GL [RTX PRO 6000 Blackwell Server Edition]
    nvidia(
        "RTX PRO 6000 Blackwell Server",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        0x2BB5,
        96,
        FromR595,
    ),
    // TU104GL [Tesla T4]
    nvidia("T4", "NVIDIA Tesla T4", 0x1EB8, 16, FromR595),
    // GV100GL [Tesla V100 PCIe 16GB]
    nvidia("V100", "NVIDIA Tesla V100-PCIE-16GB", 0x1DB4, 16, Never),
    // Navi 21 [Radeon Pro V620]
    amd("V620", "AMD Radeon PRO V620", 0x73A1, 32),
    // Navi32 GL-XL [AMD Radeon PRO V710]
    amd("V710", "AMD Radeon PRO V710", 0x7460, 28),
];

const fn nvidia(
    name: &'static str,
    description: &'static str,
    device: u32,
    memory_gb: u64,
    mcdm: McdmStart,
) -> Gpu {
    Gpu { name, description, vendor: NVIDIA, device, memory_gb, mcdm }
}

const fn amd(name: &'static str, description: &'static str, device: u32, memory_gb: u64) -> Gpu {
    Gpu { name, description, vendor: AMD, device, memory_gb, mcdm: Never }
}

/// A word in a name that says who makes the device.
struct Brand {
    word: &'static str,
    vendor: u32,
    /// Whether all GPUs of this brand are parts of processors.
    integrated: bool,
}

const BRANDS: [Brand; 20] = [
    brand("adreno", QUALCOMM, true),
    brand("amd", AMD, false),
    brand("arc", INTEL, false),
    brand("firepro", AMD, false),
    brand("flex", INTEL, false),
    brand("geforce", NVIDIA, false),
    brand("grid", NVIDIA, false),
    brand("gtx", NVIDIA, false),
    brand("hexagon", QUALCOMM, true),
    brand("instinct", AMD, false),
    brand("intel", INTEL, false),
    brand("iris", INTEL, true),
    brand("nvidia", NVIDIA, false),
    brand("quadro", NVIDIA, false),
    brand("qualcomm", QUALCOMM, false),
    brand("radeon", AMD, false),
    brand("rtx", NVIDIA, false),
    brand("snapdragon", QUALCOMM, true),
    brand("tesla", NVIDIA, false),
    brand("uhd", INTEL, true),
];

const fn brand(word: &'static str, vendor: u32, integrated: bool) -> Brand {
    Brand { word, vendor, integrated }
}

impl GpuArgument {
    /// Parses `NAME[:MODE]`.
    pub(crate) fn parse(text: &str) -> Result<GpuArgument, Failure> {
        let (name, mode) = match text.rsplit_once(':') {
            None => (text, None),
            Some((name, mode)) => {
                let known = Mode::from_str(mode, true).map_err(|_| unknown_mode(text, mode))?;
                (name, Some(known))
            }
        };
        let model = Model::named(name.trim())?;
        if mode == Some(Mode::Npu) && !model.can_be_npu() {
            let error = anyhow!("`{name}` is a GPU, and `:npu` is for neural processors");
            return Err(Failure::usage(error).hint(
                "leave out `:npu`, or name an NPU with its vendor, such as --gpu 'Intel AI Boost:npu'",
            ));
        }
        Ok(GpuArgument { model, mode })
    }
}

fn unknown_mode(text: &str, mode: &str) -> Failure {
    let advice = DriverModel::advice(mode).map(|advice| format!("; {advice}")).unwrap_or_default();
    Failure::usage(anyhow!("unknown mode `{mode}` in `--gpu {text}`")).hint(format!(
        "write `:mcdm` for a compute-only GPU, `:npu` for an NPU, or `:wddm` for a GPU for display and \
         compute{advice}"
    ))
}

impl Model {
    /// The model that the user means.
    ///
    /// A name without a vendor must be in the table. One with a vendor can be of any model: a name
    /// that differs from a known one by a letter or a digit is another model, such as A10G or A40.
    /// Only if it has the same characters, with other separators or in another order, it is a typing
    /// mistake.
    fn named(name: &str) -> Result<Model, Failure> {
        if let Some(gpu) = GPUS.iter().find(|gpu| gpu.has_name(name)) {
            return Ok(Model::Known(gpu));
        }
        let similar = most_similar(name);
        let Some(other) = OtherGpu::named(name) else {
            let is_brand = words(name).all(|word| brand_of(word).is_some());
            return Err(unknown(name, similar.filter(|_| !is_brand).map(|(gpu, _)| gpu)));
        };
        match similar {
            Some((gpu, spelling)) if sorted(&spelling) == sorted(&squeezed(name)) => {
                Err(unknown(name, Some(gpu)))
            }
            _ => Ok(Model::Other(other)),
        }
    }

    /// The name for notes.
    pub(crate) fn description(&self) -> &str {
        match self {
            Model::Known(gpu) => gpu.description,
            Model::Other(other) => &other.name,
        }
    }

    fn can_be_npu(&self) -> bool {
        // NVIDIA makes only GPUs.
        matches!(self, Model::Other(other) if other.vendor != NVIDIA)
    }
}

impl OtherGpu {
    /// The device with this name, if it has a vendor and more in it.
    fn named(name: &str) -> Option<OtherGpu> {
        let brands: Vec<&Brand> = words(name).filter_map(brand_of).collect();
        let vendor = brands.first()?.vendor;
        words(name).any(|word| brand_of(word).is_none()).then(|| OtherGpu {
            name: name.to_owned(),
            vendor,
            integrated: brands.iter().any(|brand| brand.integrated),
        })
    }
}

/// The words of a name, of letters and digits.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn brand_of(word: &str) -> Option<&'static Brand> {
    BRANDS.iter().find(|brand| brand.word.eq_ignore_ascii_case(word))
}

impl Gpu {
    /// The ways to write the name: in short, with or without the vendor, and as much of the end of
    /// the driver's name as contains the short one.
    fn spellings(&self) -> Vec<String> {
        let words: Vec<&str> = self.description.split(' ').collect();
        let ends = (0..words.len()).map(|n| words[n..].join(" "));
        let vendor = words[0].trim_end_matches("(R)");
        let mut spellings = vec![self.name.to_owned(), format!("{vendor} {}", self.name)];
        spellings.extend(ends.filter(|end| end.contains(self.name)));
        spellings
            .extend(self.description.contains("(R)").then(|| self.description.replace("(R)", "")));
        spellings
    }

    /// Whether this is a name of the GPU, in any case.
    fn has_name(&self, name: &str) -> bool {
        self.spellings().iter().any(|spelling| spelling.eq_ignore_ascii_case(name))
    }
}

/// The known GPU whose name is most similar, and the spelling of it, squeezed.
fn most_similar(name: &str) -> Option<(&'static Gpu, String)> {
    let squeezed_spellings: Vec<(&Gpu, String)> = GPUS
        .iter()
        .flat_map(|gpu| gpu.spellings().into_iter().map(move |spelling| (gpu, squeezed(&spelling))))
        .collect();
    let candidates = squeezed_spellings.iter().map(|(_, spelling)| spelling.as_str());
    let best = closest(&squeezed(name), candidates)?.to_owned();
    squeezed_spellings.into_iter().find(|(_, spelling)| *spelling == best)
}

/// The letters and digits of a name, in lower case.
fn squeezed(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn sorted(text: &str) -> Vec<char> {
    let mut characters: Vec<char> = text.chars().collect();
    characters.sort_unstable();
    characters
}

fn unknown(name: &str, meant: Option<&Gpu>) -> Failure {
    let meant = meant.map(|gpu| format!("; did you mean {}?", gpu.name)).unwrap_or_default();
    Failure::usage(anyhow!("unknown GPU `{name}`{meant}")).hint(
        "`--list-gpus` lists the known GPUs; write the name of another one with its vendor, such as \
         'NVIDIA GeForce RTX 4090' or 'AMD Radeon PRO W7900'",
    )
}

/// The table of the known GPUs.
pub(crate) fn list() -> String {
    let width = |cell: fn(&Gpu) -> &str| GPUS.iter().map(|gpu| cell(gpu).len()).max().unwrap_or(0);
    let names = width(|gpu| gpu.name);
    let descriptions = width(|gpu| gpu.description);
    let mut text = format!("{:names$}  {:descriptions$}  memory\n", "name", "GPU");
    for Gpu { name, description, memory_gb, .. } in &GPUS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:names$}  {description:descriptions$}  {memory_gb} GB");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short name of a known GPU, `other` for another one, or the error.
    fn found(text: &str) -> String {
        match GpuArgument::parse(text) {
            Ok(GpuArgument { model: Model::Known(gpu), .. }) => gpu.name.to_owned(),
            Ok(GpuArgument { model: Model::Other(other), .. }) => {
                assert_eq!(text.split(':').next(), Some(other.name.as_str()));
                "other".to_owned()
            }
            Err(error) => error.chain(),
        }
    }

    #[test]
    fn every_known_gpu_has_its_own_names_in_any_case() {
        for gpu in &GPUS {
            for name in gpu.spellings() {
                assert_eq!(found(&name), gpu.name);
                assert_eq!(found(&name.to_uppercase()), gpu.name);
                assert_eq!(found(&name.to_lowercase()), gpu.name);
            }
        }
        for (name, expected) in [
            ("tesla t4", "T4"),
            ("NVIDIA T4", "T4"),
            ("H100 PCIe", "H100"),
            ("Radeon PRO V620", "V620"),
            ("Intel Data Center GPU Flex 170", "Flex 170"),
            ("intel flex 170", "Flex 170"),
            ("NVIDIA RTX 6000 Ada", "RTX 6000 Ada"),
        ] {
            assert_eq!(found(name), expected, "{name}");
        }
        assert!(GPUS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn the_chart_has_the_known_gpus() {
        let mut text = String::from(
            "# The GPUs of demonstration.gpus. They are those of `directx-device-plugin simulate --list-gpus`; \
             `cargo xtask update` writes this file.\n",
        );
        for Gpu { name, description, vendor, device, memory_gb, .. } in &GPUS {
            let memory = memory_gb * 1024;
            writeln!(
                text,
                "- {{name: {name}, description: {description}, vendor: '0x{vendor:04X}', \
                 device: '0x{device:04X}', memoryMiB: {memory}}}"
            )
            .unwrap();
        }
        doc_pages::assert_file("deploy/charts/directx-device-plugin/gpus.yaml", &text);
    }

    #[test]
    fn another_model_needs_a_vendor_in_its_name() {
        // Models of vendors. Some differ from a known one by a character.
        for name in [
            "NVIDIA A30",
            "NVIDIA A40",
            "NVIDIA A10G",
            "NVIDIA T4G",
            "Tesla T40",
            "Tesla P4",
            "NVIDIA H100 80GB HBM3",
            "NVIDIA A10-24Q",
            "GeForce RTX 4090",
            "Quadro RTX 6000",
            "AMD Radeon Pro V520",
            "Intel Data Center GPU Flex 140",
        ] {
            assert_eq!(found(name), "other", "{name}");
        }
        for name in ["", "RTX4090", "Voodoo 2", "NVIDIA", "AMD Radeon", "PCIe", "Edition"] {
            assert_eq!(found(name), format!("unknown GPU `{name}`"));
        }
    }

    #[test]
    fn a_typing_mistake_is_an_error_with_the_name_that_was_meant() {
        for (name, meant) in [
            ("T-4", "T4"),
            ("A 10", "A10"),
            ("TeslaT4", "T4"),
            ("Tesla T-4", "T4"),
            ("NVIDIA Telsa T4", "T4"),
            ("L4S", "L4"),
            ("H200", "H100"),
            ("Radeon PRO V602", "V620"),
            ("AMD Radeon-PRO V710", "V710"),
        ] {
            assert_eq!(found(name), format!("unknown GPU `{name}`; did you mean {meant}?"));
        }
    }

    #[test]
    fn a_mode_follows_the_last_colon() {
        let mode = |text| GpuArgument::parse(text).ok().map(|argument| argument.mode);
        assert_eq!(mode("T4"), Some(None));
        assert_eq!(mode("T4:wddm"), Some(Some(Mode::Wddm)));
        assert_eq!(mode("t4:MCDM"), Some(Some(Mode::Mcdm)));
        assert_eq!(mode("Intel AI Boost:npu"), Some(Some(Mode::Npu)));
        for (text, error) in [
            ("T4:tcc", "unknown mode `tcc` in `--gpu T4:tcc`"),
            ("T4:", "unknown mode `` in `--gpu T4:`"),
            ("T4:npu", "`T4` is a GPU, and `:npu` is for neural processors"),
            ("NVIDIA A30:npu", "`NVIDIA A30` is a GPU, and `:npu` is for neural processors"),
            (":npu", "unknown GPU ``"),
        ] {
            assert_eq!(found(text), error);
        }
    }
}
